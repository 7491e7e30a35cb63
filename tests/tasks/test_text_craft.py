"""TextCraft: commands, kinds, depths, plans, and Minecraft's recipes as files."""

import itertools
import json
from collections import Counter

import pytest

from lmgym.env.golden import at_random, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.text_craft.generator import LONGEST, problem
from lmgym.tasks.text_craft.official import read_book
from lmgym.tasks.text_craft.recipes import CraftingRecipe, Ingredient, RecipeBook, without_cycles

PLANKS = CraftingRecipe("cedar planks", 4, (Ingredient("cedar log", 1),))
STICK = CraftingRecipe("stick", 4, (Ingredient("planks", 2, kind=True),))
LADDER = CraftingRecipe("ladder", 3, (Ingredient("stick", 7), Ingredient("cedar planks", 1)))
BOOK = RecipeBook([PLANKS, STICK, LADDER], {"cedar planks": "planks"})


def opened(book=BOOK, goal="ladder"):
    env = build("text_craft")
    env.reset(seed=0, options={"index": 0})
    env.unwrapped.book, env.unwrapped.goal, env.unwrapped.listed = book, goal, book.recipes
    return env


def answers(env, *commands):
    return [env.step(command)[0]["text"] for command in commands]


def test_an_item_is_crafted_from_its_parts():
    env = opened()
    first = ["get 3 cedar log", *["craft 4 cedar planks using 1 cedar log"] * 3]
    assert answers(env, *first) == ["Got 3 cedar log", *["Crafted 4 cedar planks"] * 3]
    assert answers(env, *["craft 4 stick using 2 cedar planks"] * 2) == ["Crafted 4 stick"] * 2
    assert answers(env, "inventory") == ["Inventory: [cedar planks] (8) [stick] (8)"]
    observation, reward, terminated, _, info = env.step("craft 3 ladder using 7 stick, 1 cedar planks")
    assert (observation["text"], reward, terminated, info["score"]) == ("Crafted 3 ladder", 1.0, True, 1.0)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("get 1 cedar planks", "Could not find cedar planks"),  # it is crafted
        ("get 1 planks", "Could not find planks"),  # a kind
        ("get 1 unicorn", "Could not find unicorn"),
        ("get 0 cedar log", "Could not find cedar log"),
        ("craft 4 stick using 2 planks", "Could not find enough items to craft stick"),  # nobody has "planks"
        ("craft 4 stick using 9 cedar planks", "Could not find enough items to craft stick"),
        ("craft 4 stick using 1 cedar planks", "Could not find a valid recipe for stick"),
        ("craft 8 stick using 4 cedar planks", "Could not find a valid recipe for stick"),  # two applications
        ("craft 4 sword using 2 cedar planks", "Could not find a valid recipe for sword"),
        ("craft 4 stick using cedar planks", "Wrong item format: cedar planks"),
        ("craft 4 stick using 2 cedar planks, 0 cedar log", "Wrong item format: 0 cedar log"),
        ("craft stick", "Could not execute craft stick"),
        ("", "Could not execute "),
    ],
)
def test_a_command_that_fails_says_why_and_changes_nothing(command, answer):
    env = opened()
    answers(env, "get 1 cedar log", "craft 4 cedar planks using 1 cedar log")
    observation, reward, _, _, info = env.step(command)
    assert (observation["text"], reward, info["valid"]) == (answer, 0.0, False)
    assert answers(env, "inventory") == ["Inventory: [cedar planks] (4)"]


def test_the_announced_number_of_outputs_is_not_compared():
    assert answers(opened(), "get 1 cedar log", "craft cedar planks using 1 cedar log")[1] == "Crafted 4 cedar planks"


def test_depth_counts_the_steps_of_the_easiest_recipe():
    assert BOOK.depth == {"cedar log": 0, "cedar planks": 1, "planks": 1, "stick": 2, "ladder": 3}
    easy = RecipeBook([*BOOK.recipes, CraftingRecipe("ladder", 1, (Ingredient("cedar log", 9),))], BOOK.kind_of)
    assert easy.depth["ladder"] == 1


def test_a_plan_uses_what_is_there():
    assert BOOK.plan("ladder", {"stick": 6, "cedar planks": 3}) == [
        "craft 4 stick using 2 cedar planks",
        "craft 3 ladder using 7 stick, 1 cedar planks",
    ]


def test_an_item_and_its_kind_may_be_asked_for_together():
    both = CraftingRecipe("box", 1, (Ingredient("planks", 2, kind=True), Ingredient("cedar planks", 1)))
    book = RecipeBook([PLANKS, both], {"cedar planks": "planks"})
    assert book.match("box", {"cedar planks": 3}) == both
    assert book.match("box", {"cedar planks": 2}) is None


@pytest.mark.parametrize("split", ["train", "test"])
def test_problems_have_all_depths_and_short_plans(split):
    for index in range(80):
        dealt = problem(split, index, 1 + index % 4)
        assert dealt.book.depth[dealt.goal] == 1 + index % 4
        assert len(dealt.book.plan(dealt.goal, {})) <= LONGEST
        assert len(dealt.book.recipes) - len(dealt.book.needed(dealt.goal)) >= 10
        names = Counter(recipe.output for recipe in dealt.book.recipes)
        assert max(names.values()) == 1
        assert list(without_cycles(dealt.book.recipes, dealt.book.kind_of)) == list(dealt.book.recipes)


def test_the_oracle_wins_from_any_state():
    env = build("text_craft", split="test", max_turns=100)
    for index in range(20):
        trace = play(env, lambda e: itertools.chain(itertools.islice(at_random(e), 15), e.oracle()), index=index)
        assert trace.infos[-1]["score"] == 1.0


def test_another_depth_is_refused():
    with pytest.raises(InstanceError, match="takes depth 1 to 4, or 0 for all; got 5"):
        build("text_craft", depth=5)


def shaped(result, pattern, **key):
    return {"type": "minecraft:crafting_shaped", "pattern": pattern, "key": key, "result": result}


def shapeless(result, *ingredients):
    return {"type": "minecraft:crafting_shapeless", "ingredients": list(ingredients), "result": result}


def item(name):
    return {"item": f"minecraft:{name}"}


PLANKS_TAG = {"tag": "minecraft:planks"}
MINECRAFT = {  # a few recipes in the layout of Minecraft 1.16.5
    "oak_planks": {**shapeless({**item("oak_planks"), "count": 4}, {"tag": "minecraft:oak_logs"}), "group": "planks"},
    "stick": shaped({**item("stick"), "count": 4}, ["#", "#"], **{"#": PLANKS_TAG}),
    "ladder": shaped({**item("ladder"), "count": 3}, ["# #", "###", "# #"], **{"#": item("stick")}),
    "torch": shaped(item("torch"), ["X", "#"], X=[item("coal"), item("charcoal")], **{"#": item("stick")}),
    "book": shapeless("minecraft:book", item("paper"), item("paper"), item("paper"), item("leather")),
    "iron_ingot_from_iron_block": shapeless({**item("iron_ingot"), "count": 9}, item("iron_block")),
    "iron_ingot_from_nuggets": shaped(item("iron_ingot"), ["###", "###", "###"], **{"#": item("iron_nugget")}),
    "iron_nugget": shapeless({**item("iron_nugget"), "count": 9}, item("iron_ingot")),
    "charcoal": {"type": "minecraft:smelting", "ingredient": item("log"), "result": "minecraft:charcoal"},
}


@pytest.fixture(name="minecraft")
def recipe_files(tmp_path):
    folder = tmp_path / "recipes"
    folder.mkdir()
    for name, content in MINECRAFT.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_minecrafts_files_are_read_by_the_rules_of_textcraft(minecraft):
    book = read_book(minecraft / "recipes")
    assert [str(recipe) for recipe in book.recipes] == [
        "craft 1 book using 3 paper, 1 leather",
        "craft 1 iron ingot using 9 iron nugget",
        "craft 3 ladder using 7 stick",
        "craft 4 oak planks using 1 oak logs",
        "craft 4 stick using 2 planks",
        "craft 1 torch using 1 coal, 1 stick",
    ]
    assert book.raw == {"paper", "leather", "iron nugget", "oak logs", "coal"}
    assert (book.depth["ladder"], book.depth["stick"], book.depth["book"]) == (3, 2, 1)


def test_the_official_goals_are_the_deepest_first(minecraft):
    env = build("TextCraftOfficial-v0", data=str(minecraft), split="test")
    titles = [env.unwrapped.title(index) for index in range(env.unwrapped.size())]
    assert titles == ["ladder", "torch", "stick", "book", "iron ingot", "oak planks"]
    observation, _ = env.reset(options={"index": 0})
    assert observation["text"].endswith("\n\nGoal: craft ladder.")
    trace = play(env, lambda e: e.oracle(), index=0)
    assert trace.observations[2]["text"] == "Crafted 4 minecraft:oak_planks"
    assert trace.infos[-1]["score"] == 1.0


def test_the_official_id_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTCRAFT_DATA", raising=False)
    with pytest.raises(InstanceError, match=r"unzip 1\.16\.5\.jar .*set TEXTCRAFT_DATA to the folder data/minecraft$"):
        build("TextCraftOfficial-v0")
    (tmp_path / "broken.json").write_text("[]")
    with pytest.raises(InstanceError, match=r"broken\.json is no recipe of Minecraft 1\.16"):
        build("TextCraftOfficial-v0", data=str(tmp_path))
