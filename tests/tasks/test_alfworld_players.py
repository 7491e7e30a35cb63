"""ALFWorld's two players: the oracle from any state, the demonstrator by what it has seen."""

import random

import pytest

from lmgym.env.registry import build
from lmgym.tasks.alfworld import oracle
from lmgym.tasks.alfworld.demonstrator import Errand, HouseholdMemory, understand
from lmgym.tasks.alfworld.engine import HouseholdGame
from lmgym.tasks.alfworld.households import draw, write

pytest.importorskip("alfworld", reason="the alfworld package is not installed")

OPENING = """-= Welcome to TextWorld, ALFRED! =-

You are in the middle of a room. Looking quickly around you, you see a cabinet 2, a cabinet 1, a fridge 1, and a oven 1.

Your task is to: put a hot apple in cabinet."""


def test_the_oracle_wins_from_any_state() -> None:
    rng = random.Random(4)
    for index in range(150):
        game = HouseholdGame.read(write(draw("train", index, receptacles=12, objects=14)))
        for _ in range(rng.randrange(40)):
            game.step(rng.choice(game.commands()))
        for command, _ in zip(oracle.play(game), range(50), strict=False):
            game.step(command)
        assert game.won


def test_the_demonstrator_wins_nearly_always_within_30_turns_also_after_wrong_actions() -> None:
    assert demonstrator_wins(240, wrong=0.0) >= 0.95 * 240
    assert demonstrator_wins(240, wrong=0.08) >= 0.95 * 240


def demonstrator_wins(count: int, *, wrong: float) -> int:
    env, rng, wins = build("alfworld", split="test"), random.Random(5), 0
    for index in range(count):
        env.reset(options={"index": index})
        over = False
        while not over:
            action = next(env.unwrapped.demonstrator())  # asked anew at every turn
            if rng.random() < wrong:
                action = rng.choice(env.unwrapped.admissible())
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        wins += info["success"]
    return wins


def test_the_demonstrator_searches_in_listing_order() -> None:
    memory = HouseholdMemory(OPENING, understand("put a hot apple in cabinet."))
    assert memory.next_action() == "go to cabinet 2"
    memory.take_in("go to cabinet 2", "You arrive at cabinet 2. The cabinet 2 is closed.")
    assert memory.next_action() == "open cabinet 2"
    memory.take_in("open cabinet 2", "You open the cabinet 2. The cabinet 2 is open. In it, you see nothing.")
    assert memory.next_action() == "go to cabinet 1"
    memory.take_in("go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed.")
    memory.take_in("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a mug 1.")
    assert memory.next_action() == "go to oven 1"


@pytest.mark.parametrize(
    ("sentence", "errand"),
    [
        ("put some laptop on sidetable.", Errand("laptop", "sidetable")),
        ("put a clean mug in shelf.", Errand("mug", "shelf", "clean")),
        ("heat some egg and put it in fridge.", Errand("egg", "fridge", "heat")),
        ("cool some pan and put it in countertop.", Errand("pan", "countertop", "cool")),
        ("find two cd and put them in safe.", Errand("cd", "safe", count=2)),
        ("put two cd in safe.", Errand("cd", "safe", count=2)),
        ("look at bowl under the desklamp.", Errand("bowl", lamp="desklamp")),
        ("examine the pen with the floorlamp.", Errand("pen", lamp="floorlamp")),
    ],
)
def test_goal_sentences_are_understood(sentence: str, errand: Errand) -> None:
    assert understand(f"Your task is to: {sentence}") == errand
