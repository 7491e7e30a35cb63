from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines.recipes import gra
from lmgym.errors import RecipeError
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
    with pytest.raises(RecipeError, match="numbers with commas"):
        gra.recipe(gra.Args(thresholds="half"))
    assert gra.recipe(gra.Args(direct=True)).reward == []
