from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from lmgym.baselines.recipes import gra, gra_swe
from lmgym.env.registry import build
from lmgym.errors import RecipeError
from lmgym.train.ranges import numbers
from tests.components import bubblewrap
from tests.train.test_parts import EPISODE, TURN


def of(*turns: dict[str, float]):
    made = tuple(replace(TURN, reward=sum(terms.values()), terms=terms) for terms in turns)
    return replace(EPISODE, turns=made)


@pytest.mark.parametrize(
    ("outcome", "edits", "rewards"),
    [
        (1.0, 0.5, [0.25 - 0.1, 1.0 + 0.5 + 0.25]),  # all gates open
        (0.5, 0.1, [-0.1, 0.5 + 0.1]),  # the one behind the edits is closed
        (0.2, 0.5, [-0.1, 0.2]),  # the first is, and with it all behind it
    ],
)
def test_a_term_counts_if_all_above_it_reach_their_thresholds(outcome, edits, rewards):
    played = of({"edits": 0.0, "steps": 0.25, "other": -0.1}, {"done": outcome, "edits": edits, "steps": 0.25})
    gate = gra.gated(played, terms=["done", "edits", "steps"], thresholds=[0.5, 0.2])
    assert [turn.reward for turn in gate.turns] == pytest.approx(rewards)
    assert all(sum(turn.terms.values()) == pytest.approx(turn.reward) for turn in gate.turns)


def test_gates_stand_between_terms():
    with pytest.raises(RecipeError, match="2 terms have 1 gates"):
        gra.recipe(gra.Args(thresholds="0.5,0.2"))
    for thresholds in ("half", "nan", "inf", ""):
        with pytest.raises(RecipeError, match="numbers with commas"):
            gra.recipe(gra.Args(thresholds=thresholds))
    with pytest.raises(RecipeError, match="one priority"):
        gra.recipe(gra.Args(terms="purchase,progress,purchase", thresholds="0.5,0.5"))
    assert gra.recipe(gra.Args(direct=True)).reward == []


def test_steps_of_swe_repair_count_behind_a_submission_only():
    bubblewrap()
    args = gra_swe.Args()
    terms, thresholds = args.terms.split(","), numbers("thresholds", args.thresholds, float)
    with closing(build("swe_repair", split="test", rewards="dense", protocol="tools")) as env:
        env.reset(options={"index": 0})
        turns = [env.step(action)[-1]["reward_terms"] for action in env.unwrapped.oracle()]
    assert gra_swe.recipe(args).reward_terms == set(terms) == set(turns[0])
    complete, unfinished = (
        gra.gated(of(*played), terms=terms, thresholds=thresholds) for played in (turns, turns[:-1])
    )
    assert sum(turn.reward for turn in complete.turns) == pytest.approx(1.0 + 3 * 0.05)
    assert sum(turn.reward for turn in of(*turns[:-1]).turns) == pytest.approx(2 * 0.05)
    assert sum(turn.reward for turn in unfinished.turns) == 0.0
