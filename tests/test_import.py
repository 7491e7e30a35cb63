"""`import lmgym` loads no engine, no tensors and no browser."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    *("torch", "transformers", "tokenizers", "datasets", "matplotlib", "tensorboard", "scipy", "pandas", "PIL"),
    *(
        "playwright",
        "docker",
        "openai",
        "httpx",
        "ray",
        "textworld",
        "alfworld",
        "typer",
        "rich",
        "hypothesis",
        "pytest",
    ),
}


def loaded(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_lmgym_loads_nothing_heavy_and_no_environment():
    modules = loaded("import lmgym")
    assert HEAVY & modules == set()
    assert [name for name in modules if name.startswith("lmgym.tasks.") and name.count(".") > 2] == []
    assert not any(name.startswith(("lmgym.policy.", "lmgym.train.", "lmgym.rollout.")) for name in modules)


PLAYED = "import gymnasium, lmgym; from lmgym.env.registry import build; build({task!r}).reset(seed=0)"


@pytest.mark.parametrize(
    ("code", "without"),
    [
        *((PLAYED.format(task=task), HEAVY) for task in ("guess_number", "wordle")),
        ("import lmgym.env.testing, lmgym.env.golden, lmgym.env.new", {"torch", "transformers"}),
        ("import lmgym.rollout.engine", {"torch", "transformers"}),
    ],
    ids=["guess_number", "wordle", "checks", "rollouts"],
)
def test_tasks_checks_and_rollouts_load_nothing_heavy(code, without):
    assert without & loaded(code) == set()


def test_one_import_name_gives_one_class():
    code = """
import lmgym
from lmgym.env.registry import build, find, load
from lmgym.tasks.wordle.env import Wordle
assert load(find("wordle")) is Wordle is type(build("wordle").unwrapped)
try:
    import tasks
except ImportError as error:
    assert "import this package as lmgym.tasks" in str(error) or "No module" in str(error), error
else:
    raise AssertionError("tasks was imported under a second name")
"""
    loaded(code)
