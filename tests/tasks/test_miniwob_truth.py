"""BrowserGym in a venv of its own: the same actions, and for our players' calls the same goals and raw rewards."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import venv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lmgym.backends.browser.actions import Actions
from lmgym.backends.browser.calls import SETS, action_names
from lmgym.env.registry import build
from tests.components import chromium

CHROMIUM = chromium()

HOME = Path(__file__).resolve().parents[2] / ".cache" / "browsergym"
VERSION = "0.14.3"
EXPECTED = "chromium-1117/chrome-linux/chrome"  # where the Playwright that this version wants looks for its browser
SEED = 7
PAGES = (
    *("click-button", "click-checkboxes", "click-collapsible", "enter-text", "choose-list", "click-option"),
    *("login-user", "click-dialog-2", "enter-date", "read-table", "click-tab-2-hard", "form-sequence-2"),
)
THEIRS = """
import json, sys
import browsergym.miniwob, gymnasium
from browsergym.core.action.highlevel import HighLevelActionSet

actions = HighLevelActionSet(subsets=["bid", "coord"], strict=False, multiaction=False)
answers = {}
for page, calls in json.load(sys.stdin).items():
    env = gymnasium.make(f"browsergym/miniwob.{page}", headless=True, action_mapping=actions.to_python_code)
    observation, info = env.reset(seed=int(sys.argv[1]))
    errors = []
    for call in calls:
        after, *_, info = env.step(call)
        errors += [after["last_action_error"]] if after["last_action_error"] else []
    answers[page] = [observation["goal"], info["task_info"]["RAW_REWARD_GLOBAL"], errors]
    env.close()
print(json.dumps(answers))
"""
NAMES = """
import inspect, json
from browsergym.core.action.highlevel import ACTION_SUBSETS

found = {name: {f.__name__: list(inspect.signature(f).parameters) for f in fs} for name, fs in ACTION_SUBSETS.items()}
print(json.dumps(found))
"""
MORE = {"bid": {"check", "uncheck"}, "coord": {"scroll"}}  # functions of BrowserGym's that these sets of it leave out


def python() -> Path:
    """The interpreter of BrowserGym's venv, made at the first call."""
    there = HOME / "bin" / "python"
    if not there.exists():
        venv.create(HOME, with_pip=True)
        subprocess.run([there, "-m", "pip", "install", "-q", f"browsergym-miniwob=={VERSION}"], check=True)
    link = HOME / "browsers" / EXPECTED
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(CHROMIUM)
    return there


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_our_action_sets_have_browsergyms_names_and_arguments():
    done = subprocess.run([python(), "-c", NAMES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    for part, names in SETS.items():
        assert set(names) - set(theirs[part]) == MORE.get(part, set())
        assert set(theirs[part]) <= set(names)
    ours = {name: list(inspect.signature(getattr(Actions, name)).parameters)[1:] for name in action_names(SETS)}
    differ = {name: given for part in SETS for name, given in theirs[part].items() if ours[name] != given}
    assert differ == {  # whose other words `bind` takes too; that one argument we have not
        "fill": ["bid", "value", "enable_autocomplete_menu"],
        "scroll_at": ["x", "y", "dx", "dy"],
    }


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_browsergym_gives_our_players_the_same_goals_and_raw_rewards():
    ours, calls = {}, {}
    seed = int(np.random.RandomState(SEED).randint(0, 1_000_000))  # what BrowserGym makes of its seed
    for page in PAGES:
        env = build(f"lmgym/MiniWoB-{page}-v0")
        env.reset(options={"instance": {"page": page, "seed": seed}})
        calls[page] = []
        info: dict = {}
        for call in env.unwrapped.oracle():
            calls[page].append(call)
            *_, info = env.step(call)
            if "score" in info:
                break
        ours[page] = [env.unwrapped.goal, info["reward_terms"]["raw"], []]
        env.close()
    pages = Path(next(iter(find_spec("miniwob").submodule_search_locations))) / "html" / "miniwob"
    settings = {"MINIWOB_URL": f"file://{pages}/", "PLAYWRIGHT_BROWSERS_PATH": str(HOME / "browsers")}
    theirs = subprocess.run(
        [python(), "-c", THEIRS, str(SEED)],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
    )
    assert theirs.returncode == 0, theirs.stderr[-2000:]
    assert json.loads(theirs.stdout.splitlines()[-1]) == ours
