"""TextCraft as an environment."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.text_craft import SPEC, VARIANTS
from lmgym.tasks.text_craft.generator import DEEPEST, DISTRACTORS, STREAM, problem
from lmgym.tasks.text_craft.official import NAMESPACE, goals, read_book
from lmgym.tasks.text_craft.recipes import CraftingRecipe, RecipeBook

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
GET = re.compile(r"get (\d{1,4}) (.+)")
CRAFT = re.compile(r"craft (?:\d{1,4} )?(.+?) using (.+)")
AMOUNT = re.compile(r"(?!0+ )(\d{1,4}) (.+)")  # above 0
LONGEST = 1000  # characters of a command


class TextCraft(TextEnv):
    """Craft the item of the goal: reward and score 1.

    `depth` is the number of crafting steps in a row that the goal takes, 1 to 4; 0 deals all four in turn.
    """

    SPEC: ClassVar[TaskSpec] = SPEC

    def __init__(self, *, depth: int = 0, **common: Any) -> None:
        super().__init__(**common)
        if not 0 <= depth <= DEEPEST:
            raise InstanceError(f"{self.task.id} takes depth 1 to {DEEPEST}, or 0 for all; got {depth}")
        self.depth = depth

    def begin(self, index: int) -> Reply:
        """Open a problem with an empty inventory."""
        self.inventory: Counter[str] = Counter()
        self.book, self.goal, self.listed = self.deal(index)
        commands = "\n".join(map(str, self.listed))
        return Reply(f"{PROMPT}\n\nCrafting commands:\n{commands}\n\nGoal: craft {self.goal}.")

    def deal(self, index: int) -> tuple[RecipeBook, str, Sequence[CraftingRecipe]]:
        """Return the recipes that hold, the goal, and the recipes that are shown."""
        dealt = problem(self.split, index, self.depth or 1 + index % DEEPEST)
        return dealt.book, dealt.goal, dealt.book.recipes

    def act(self, action: str) -> Reply:
        """Execute one command."""
        command = parse_command(action[-LONGEST:]).lower().rstrip(".")
        if command == "inventory":
            items = " ".join(f"[{item}] ({count})" for item, count in self.inventory.items())
            return Reply(f"Inventory: {items or 'You are not carrying anything.'}")
        if get := GET.fullmatch(command):
            return self._get(int(get[1]), get[2])
        if craft := CRAFT.fullmatch(command):
            return self._craft(craft[1], craft[2])
        return Reply(f"Could not execute {command}", valid=False)

    def oracle(self) -> Iterator[str]:
        """Get what is missing and craft, by the easiest recipe of each item."""
        while True:
            yield self.book.plan(self.goal, self.inventory)[0]

    def admissible(self) -> list[str]:
        """Return commands that work: look, get one of a listed raw item, craft by a listed recipe."""
        needs = {each.name: None for recipe in self.listed for each in recipe.ingredients}
        gets = [f"get 1 {name}" for name in needs if name in self.book.raw]
        return ["inventory", *gets, *self._crafts()]

    def fingerprint(self) -> str:
        """Return the recipes and the goal."""
        return "\n".join([*sorted(map(str, self.listed)), self.goal])

    def identifier(self, item: str) -> str:
        """Return the name of an item that was crafted."""
        return item

    def _get(self, count: int, item: str) -> Reply:
        if item not in self.book.raw or not count:
            return Reply(f"Could not find {item}", valid=False)
        self.inventory[item] += count
        return Reply(f"Got {count} {item}")

    def _craft(self, output: str, amounts: str) -> Reply:
        """Craft by the recipe that takes exactly these amounts; the announced number of outputs does not matter."""
        used: Counter[str] = Counter()
        for part in amounts.split(","):
            amount = AMOUNT.fullmatch(part.strip())
            if amount is None:
                return Reply(f"Wrong item format: {part.strip()}", valid=False)
            used[amount[2]] += int(amount[1])
        if not used <= self.inventory:
            return Reply(f"Could not find enough items to craft {output}", valid=False)
        recipe = self.book.match(output, used)
        if recipe is None:
            return Reply(f"Could not find a valid recipe for {output}", valid=False)
        self.inventory -= used
        self.inventory[output] += recipe.count
        won = output == self.goal
        text = f"Crafted {recipe.count} {self.identifier(output)}"
        return Reply(text, reward=float(won), done=won, score=1.0 if won else None)

    def _crafts(self) -> Iterator[str]:
        """Yield the listed crafts for which there is enough."""
        for recipe in self.listed:
            amounts = []
            for each in recipe.ingredients:
                items = [item for item in self.inventory if self.book.kind_of.get(item) == each.name]
                candidates = items if each.kind else [each.name]
                amounts.append(
                    next((f"{each.count} {item}" for item in candidates if self.inventory[item] >= each.count), "")
                )
            if all(amounts):
                yield f"craft {recipe.count} {recipe.output} using {', '.join(amounts)}"


class TextCraftOfficial(TextCraft):
    """TextCraft on Minecraft's recipes, read from `data` or `$TEXTCRAFT_DATA`: the folder `recipes` or its parent."""

    SPEC = VARIANTS[0]

    def __init__(self, *, data: str | os.PathLike[str] | None = None, **common: Any) -> None:
        super().__init__(**common)
        place = Path(data or os.environ.get("TEXTCRAFT_DATA", ""))
        folder = place / "recipes" if (place / "recipes").is_dir() else place
        if not (data or "TEXTCRAFT_DATA" in os.environ) or not any(folder.glob("*.json")):
            raise InstanceError(
                f"{self.task.id} needs the recipes of Minecraft 1.16.5: unzip 1.16.5.jar 'data/minecraft/recipes/*' "
                "(the file versions/1.16.5/1.16.5.jar of Minecraft's folder), and set TEXTCRAFT_DATA to the folder "
                "data/minecraft"
            )
        self.minecraft = read_book(folder)
        self.goals = goals(self.minecraft, self.split)

    def size(self) -> int:
        """Return the number of goals of the split."""
        return len(self.goals)

    def title(self, index: int) -> str:
        """Return the item of an instance."""
        return self.goals[index]

    def index_of(self, title: str) -> int | None:
        """Return the index of the instance with this goal; None if there is none."""
        return self.goals.index(title) if title in self.goals else None

    def deal(self, index: int) -> tuple[RecipeBook, str, Sequence[CraftingRecipe]]:
        """Return all of Minecraft's recipes, the goal, what it needs and up to ten that share an ingredient."""
        goal = self.goals[index]
        needed = self.minecraft.needed(goal)
        names = {each.name for recipe in needed for each in recipe.ingredients}
        others = [
            recipe
            for recipe in self.minecraft.recipes
            if recipe not in needed and names.intersection(each.name for each in recipe.ingredients)
        ]
        rng = np.random.default_rng([STREAM[self.split], index])
        drawn = rng.choice(len(others), min(DISTRACTORS, len(others)), replace=False)
        listed = [*needed, *(others[each] for each in drawn)]
        return self.minecraft, goal, [listed[each] for each in rng.permutation(len(listed))]

    def identifier(self, item: str) -> str:
        """Return Minecraft's id of an item."""
        return NAMESPACE + item.replace(" ", "_")
