"""ALFWorld's own behaviour: two grammars, slips of the stock game, goals, households, options."""

from typing import Any

import gymnasium
import pytest

import lmgym  # noqa: F401  # registers the ids
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.alfworld import oracle
from lmgym.tasks.alfworld.engine import HouseholdGame
from lmgym.tasks.alfworld.grammar import read_grammar, split_task
from lmgym.tasks.alfworld.households import MOST, TREATED, TYPES, HouseholdPlan, HouseholdTarget, draw, write
from lmgym.tasks.alfworld.rooms import BLOCKS, NUMBERS, room, tables

pytest.importorskip("alfworld", reason="the alfworld package is not installed")

KITCHEN = HouseholdPlan(
    target=HouseholdTarget("pick_heat_then_place_in_recep", "Mug", "Cabinet"),
    sentence="put a hot mug in cabinet",
    receptacles=("Cabinet", "CounterTop", "Microwave", "Fridge", "SinkBasin", "Cabinet"),
    things=(("Apple", 1), ("Knife", 1), ("Mug", 1), ("Apple", 3)),
)


def kitchen(**replace: str) -> HouseholdGame:
    """A small known house; `replace` maps a key of the game file to `old -> new` in its text."""
    contents: dict[str, Any] = write(KITCHEN)
    for key, change in replace.items():
        old, new = change.split(" -> ")
        assert old in contents[key]
        contents[key] = contents[key].replace(old, new)
    return HouseholdGame.read(contents)


def say(game: HouseholdGame, *commands: str) -> str | None:
    """Play commands; the last answer."""
    return [game.step(command) for command in commands][-1]


def test_listings_follow_ids_and_numbers_count_down() -> None:
    assert "you see a cabinet 2, a cabinet 1, a countertop 1, a fridge 1" in kitchen().opening()
    assert kitchen().step("go to countertop 1") == (
        "You arrive at countertop 1. On the countertop 1, you see a apple 2, a knife 1, and a mug 1."
    )


TAKE = ("go to countertop 1", "take apple 2 from countertop 1")
COOL = (*TAKE, "go to fridge 1", "cool apple 2 with fridge 1")
OPEN = ("go to fridge 1", "open fridge 1")


@pytest.mark.parametrize(
    ("commands", "answer"),
    [
        (("look",), "You are in the middle of a room. Looking quickly around you, you see nothing."),
        (("go to countertop 1", "examine apple 2"), None),
        ((*TAKE, "examine apple 2"), "There's nothing special about apple 2."),
        (("go to fridge 1", "take apple 1 from fridge 1"), None),
        (OPEN, "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1."),
        ((*OPEN, "take apple 1 from fridge 1", "close fridge 1", "move apple 1 to fridge 1"), None),
        ((*COOL, "examine apple 2"), "This is a cold apple 2."),
        (
            (*COOL, "go to microwave 1", "heat apple 2 with microwave 1", "examine apple 2"),  # its door is closed
            "This is a hot apple 2.",
        ),
    ],
    ids=["start", "not held", "held", "closed", "open", "closed again", "cold", "hot"],
)
def test_a_command_is_answered_by_the_state_of_its_things(commands: tuple[str, ...], answer: str | None) -> None:
    assert say(kitchen(), *commands) == answer


def test_the_file_s_grammar_words_the_game() -> None:
    game = HouseholdGame.read(
        {
            **write(KITCHEN),
            "grammar": str(write(KITCHEN)["grammar"])
            .replace("move {o} to {r}", "put {o} in/on {r}")
            .replace("You arrive at {r.name}.", "You arrive at {lend.name}."),
        }
    )
    answer = say(game, "go to countertop 1")
    assert answer == "You arrive at loc 5. On the countertop 1, you see a apple 2, a knife 1, and a mug 1."
    say(game, "take mug 1 from countertop 1")
    assert "put mug 1 in/on countertop 1" in game.commands()
    assert game.step("move mug 1 to countertop 1") is None


def test_the_pddl_goal_decides_and_not_the_sentence() -> None:
    game = kitchen(grammar="put a hot mug in cabinet -> put some apple on fridge")
    for command in oracle.play(game):
        game.step(command)
    assert game.won
    assert any(game.house.things[o].startswith("mug") for o in game.contents[0] + game.contents[1])


def test_receptacles_that_share_a_location_are_both_at_hand() -> None:
    game = kitchen(pddl_problem="Microwave_bar_01 loc_bar_03) -> Microwave_bar_01 loc_bar_02)")
    assert say(game, "go to countertop 1", "go to microwave 1") is None
    assert say(game, "look") == "You are facing the countertop 1, and microwave 1. Next to it, you see nothing."
    say(game, "take mug 1 from countertop 1", "open microwave 1", "move mug 1 to microwave 1")
    assert say(game, "look") == "You are facing the countertop 1, and microwave 1. Next to it, you see a mug 1."


@pytest.mark.parametrize(
    ("key", "change", "named"),
    [
        ("grammar", "inreceptacle(o:object, r:receptacle)}] -> wasinreceptacle(o:object, r:receptacle)}]", "wasinrec"),
        ("grammar", "openable(r:receptacle) & opened -> openable(r:receptacle) & full", "full"),
        ("grammar", '"rhs": "You close the {r.name}." -> "rhs": "You close {r.smell}."', "r.smell"),
        ("grammar", '"rhs": "You close the {r.name}." -> "rhs": "You close {o.name}."', "CloseObject.feedback"),
        ("grammar", "open {r} -> open it", "openobject"),
        ("grammar", "action help -> action assist", "help"),
        ("grammar", "list_last_separator -> list_first_separator", "list_last_separator"),
        ("pddl_domain", "(isClean ?o) -> (isHot ?o)", "cleanobject"),
        ("pddl_problem", "(isHot ?o) -> (isTasty ?o)", "istasty"),
        ("pddl_problem", "(atLocation agent1 loc_bar_00) -> (full Apple_bar_01)", "one agent"),
        ("pddl_problem", "(:init -> (:start", ":init"),
        ("pddl_problem", "(inReceptacle Mug_bar_01 CounterTop_bar_01) -> (inReceptacle Mug_bar_01)", "fit"),
        ("pddl_problem", "(exists -> (forall", "forall"),
        ("pddl_problem", "(pickupable Mug_bar_01) -> (edible Mug_bar_01)", "edible"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_not_guessed(key: str, change: str, named: str) -> None:
    with pytest.raises(InstanceError, match=named):
        kitchen(**{key: change})


def test_both_published_grammars_can_be_read() -> None:
    shipped, task = split_task(tables().grammar)
    assert task == "Your task is to: UNKNOWN GOAL."
    assert read_grammar(shipped).commands["putobject"] == "move {o} to {r}"


@pytest.mark.parametrize("split", ["train", "test"])
def test_households_have_what_their_goal_needs_and_own_locations(split: str) -> None:
    for index in range(120):
        plan = draw(split, index, receptacles=9, objects=8)
        game = HouseholdGame.read(write(plan))
        assert plan.target.type == TYPES[index % 6]
        assert not game.won
        assert len(plan.receptacles) <= 9
        assert len(plan.things) <= 8
        assert len(set(game.house.place)) == len(game.house.place)
        assert not plan.target.receptacle or plan.target.receptacle in plan.receptacles
        assert plan.target.type not in TREATED or TREATED[plan.target.type][1] in plan.receptacles
        for command in oracle.play(game):
            assert game.step(command) is not None


def test_a_household_depends_on_its_options_its_size_on_the_level_and_its_goal_on_the_types() -> None:
    assert draw("train", 7, receptacles=9, objects=8) == draw("train", 7, receptacles=9, objects=8)
    others = [draw("test", 7, receptacles=9, objects=8), draw("train", 7, receptacles=9, objects=7)]
    assert draw("train", 7, receptacles=9, objects=8) not in others
    assert not set(NUMBERS["train"]) & set(NUMBERS["test"])
    large = draw("train", 2, receptacles=20, objects=30)
    assert len(large.receptacles) == 20
    assert len(large.things) > 20
    only = [draw("train", i, receptacles=9, objects=8, types=("look_at_obj_in_light",)).target.lamp for i in range(5)]
    assert all(lamp.endswith("Lamp") for lamp in only)


def test_a_size_that_no_household_has_is_refused_with_those_there_are() -> None:
    rooms = [room(block + number) for block in BLOCKS.values() for numbers in NUMBERS.values() for number in numbers]
    assert max(len(one.receptacles) for one in rooms) == MOST
    for receptacles, objects, message in (
        (2, 8, "receptacles is 3 to 51, those of the largest room; got 2"),
        (1000, 8, "receptacles is 3 to 51, those of the largest room; got 1000"),
        (8, 1, "objects is 2 to 200; got 1"),
        (8, 201, "objects is 2 to 200; got 201"),
    ):
        with pytest.raises(InstanceError, match=message):
            draw("train", 0, receptacles=receptacles, objects=objects)
    assert draw("train", 0, receptacles=MOST, objects=200).receptacles


def test_a_cut_episode_is_no_success(opened: Any) -> None:
    env = opened("alfworld", max_turns=2)
    env.step("look")
    _, reward, terminated, truncated, info = env.step("look")
    assert (reward, terminated, truncated, info["score"], info["success"]) == (0.0, False, True, 0.0, False)


def test_winning_ends_the_episode_with_reward_1() -> None:
    env = gymnasium.make("lmgym/ALFWorld-v0", split="test")
    env.reset(options={"index": 0})
    for action in env.unwrapped.oracle():  # type: ignore[attr-defined]  # ours
        _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["score"], info["success"]) == (1.0, True, 1.0, True)


def test_instructions_stand_before_the_first_observation_only() -> None:
    plain, told = build("alfworld"), build("alfworld", instructions=True)
    first, _ = plain.reset(options={"index": 3})
    second, _ = told.reset(options={"index": 3})
    assert first["text"].startswith("-= Welcome")
    assert second["text"].endswith(first["text"])
    assert len(second["text"]) > len(first["text"])
    assert plain.step("look")[0] == told.step("look")[0]


def test_a_game_file_can_be_brought_along() -> None:
    env = build("alfworld")
    observation, _ = env.reset(options={"instance": write(KITCHEN)})
    assert "put a hot mug in cabinet." in observation["text"]
    with pytest.raises(InstanceError, match="grammar, pddl_problem"):
        env.reset(options={"instance": {"pddl_domain": ""}})


def test_an_adviser_speaks_first_in_a_game_that_was_brought_along() -> None:
    env = build("ALFWorldAdvised-v0", others="caller")
    _, info = env.reset(options={"instance": write(KITCHEN)})
    assert info["seat"] == "adviser"
    assert env.step("take mug")[0]["text"].endswith("\nStrategy: take mug")
    assert env.reset(options={"instance": write(KITCHEN)})[1]["seat"] == "adviser"
