"""Wrong moves come from the actions that a task lists; where it lists none, a run says that there are none."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from lmgym.baselines import mc
from lmgym.env import registry
from lmgym.env.env import TextEnv
from lmgym.train import loop
from lmgym.train.log import read_metrics
from tests.command import command
from tests.train import chain

FEW = {"warmup": 1, "warmup_episodes": 16, "demonstrated": 64, "sampled": 0, "steps": 1, "episodes": 4, "evaluate": 2}


class Mute(chain.Chain):
    """The same chain, whose actions nobody lists."""

    admissible = TextEnv.admissible


MUTE = replace(chain.SPEC, id="test/Mute-v0", entry_point=f"{__name__}:Mute")


@pytest.fixture(autouse=True)
def _mute(monkeypatch):
    known = MappingProxyType({**registry.specs(), MUTE.id: MUTE})
    monkeypatch.setattr(registry, "specs", lambda: known)


@pytest.mark.parametrize("spec", [chain.SPEC, MUTE])
def test_a_run_says_where_no_wrong_moves_can_be_interjected(tmp_path, capfd, spec):
    recipe = mc.recipe(mc.Args(**FEW, interject=0.3, autocast=False))
    loop.run(recipe, chain.chain_policy(), task=spec.id, folder=tmp_path / "run")
    said = [line for line in capfd.readouterr().err.splitlines() if "interjected" in line]
    words = f"no wrong moves are interjected, {spec.id} lists no admissible actions"
    assert said == ([f"{stage}: {words}" for stage in ("sft", "demonstrate")] if spec is MUTE else [])
    stumbles = [row["stumbles"] for row in read_metrics(tmp_path / "run") if row["stage"] in ("sft", "demonstrate")]
    assert len(stumbles) == 2
    assert all((share == 0) is (spec is MUTE) for share in stumbles)


@pytest.mark.parametrize("none", [{"interject": 0.0, "stumbles": 0.0}, {"warmup": 0, "demonstrated": 0, "sampled": 64}])
def test_a_run_without_wrong_moves_says_nothing_of_them(tmp_path, capfd, none):
    recipe = mc.recipe(mc.Args(**{**FEW, **none}, autocast=False))
    loop.run(recipe, chain.chain_policy(), task=MUTE.id, folder=tmp_path / "run")
    assert "interjected" not in capfd.readouterr().err


@pytest.mark.parametrize(("limit", "said"), [(2, True), (3, False)])
def test_a_stage_says_once_that_it_imitates_answers_which_would_be_cut(tmp_path, capfd, limit, said):
    recipe = mc.recipe(mc.Args(**{**FEW, "warmup": 2}, interject=0.1, autocast=False))
    loop.run(replace(recipe, max_tokens=limit), chain.chain_policy(), task=chain.SPEC.id, folder=tmp_path / "run")
    lines = [line for line in capfd.readouterr().err.splitlines() if "answers are cut" in line]
    words = "an imitated answer has 3 tokens, but answers are cut at 2; use --max-tokens"
    assert lines == ([f"{stage}: {words}" for stage in ("sft", "demonstrate", "values")] if said else [])


@pytest.mark.parametrize("words", [["--stumble", "0.2"], ["--wander", "0:2"]])
def test_a_record_of_what_cannot_be_played_is_refused(tmp_path, capfd, words):
    out = tmp_path / "data" / "games.jsonl"
    assert command("record", MUTE.id, "--episodes", "2", "--out", str(out), *words) == 2
    assert "lists no admissible actions" in capfd.readouterr().err
    assert not out.parent.exists()
