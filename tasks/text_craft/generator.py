"""Our own crafting problems: materials, forms and products whose recipes are drawn anew for each instance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lmgym.tasks.text_craft.recipes import CraftingRecipe, Ingredient, RecipeBook

STREAM = {"train": 0, "test": 1}
DEEPEST = 4
DISTRACTORS = 10  # recipes that the goal does not need
LONGEST = 30  # commands of a plan
MATERIALS = {  # raw item -> materials that it comes in
    "log": ("ash", "birch", "cedar", "elm", "maple", "willow"),
    "ore": ("cobalt", "copper", "nickel", "silver", "tin", "zinc"),
    "rubble": ("basalt", "chalk", "flint", "granite", "marble", "slate"),
    "fibre": ("cotton", "flax", "hemp", "jute", "nettle", "reed"),
}
FORMS = {  # raw item -> kinds of items that are made of it
    "log": ("planks", "beam", "peg", "slat"),
    "ore": ("ingot", "plate", "wire", "nail"),
    "rubble": ("brick", "slab", "tile", "gravel"),
    "fibre": ("thread", "cloth", "rope", "felt"),
}
PRODUCTS = (
    *("abacus", "anvil", "awning", "barrel", "basket", "bell", "bellows", "bench", "bridge", "broom", "bucket"),
    *("cabinet", "cage", "candlestick", "cart", "chest", "chimney", "clock", "comb", "compass", "cradle", "crane"),
    *("crate", "door", "drum", "easel", "fence", "flute", "forge", "frame", "gate", "gong", "hammock", "harp"),
    *("hinge", "kiln", "kite", "ladder", "lamp", "lantern", "latch", "lever", "lock", "loom", "lute", "mill"),
    *("mirror", "oar", "oven", "paddle", "pulley", "quiver", "raft", "rake", "saddle", "sail", "scale", "scarecrow"),
    *("shelf", "shield", "shovel", "sieve", "signpost", "sled", "spindle", "stool", "stove", "sundial", "table"),
    *("tent", "tower", "trap", "trellis", "trough", "trunk", "wagon", "wardrobe", "weathervane", "well", "wheel"),
)


@dataclass(frozen=True)
class CraftingProblem:
    """A goal and the recipes that are listed, in the order of the list."""

    goal: str
    book: RecipeBook


@lru_cache(maxsize=1024)
def problem(split: str, index: int, depth: int) -> CraftingProblem:
    """Draw the problem of an instance, whose goal takes `depth` crafting steps in a row."""
    rng = np.random.default_rng([STREAM[split], index, depth])
    while True:
        sketch = _Sketch(rng)
        goal = sketch.item(depth)
        for _ in range(DISTRACTORS):
            sketch.item(int(rng.choice([1, 1, 2, 3])))
        listed = rng.permutation(np.array(sketch.recipes, dtype=object))
        book = RecipeBook(listed, sketch.kind_of)
        if book.depth[goal] == depth and len(book.plan(goal, {})) <= LONGEST:
            return CraftingProblem(goal, book)


class _Sketch:
    """Recipes drawn so far."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.recipes: list[CraftingRecipe] = []
        self.kind_of: dict[str, str] = {}
        self.items: dict[int, list[str]] = {level: [] for level in range(DEEPEST + 1)}  # by depth
        materials = [(raw, material) for raw, names in MATERIALS.items() for material in names]
        self.materials = [materials[each] for each in rng.choice(len(materials), 6, replace=False)]
        forms = [(raw, material, form) for raw, material in self.materials for form in FORMS[raw]]
        self.forms = [forms[each] for each in rng.permutation(len(forms))]  # 24: `_part` leaves enough for distractors
        self.products = list(rng.permutation(PRODUCTS))

    def item(self, level: int) -> str:
        """Return a new craftable item of a depth, with the items that its recipe needs."""
        if level == 1:
            name, first = self._form()
            others = 1 if self.rng.random() < 0.3 else 0
        else:
            name, first = str(self.products.pop()), self._part(level - 1)
            others = int(self.rng.integers(1, 3))
        parts = {first: self._amount()}
        for _ in range(others):
            parts.setdefault(self._part(int(self.rng.integers(level))), self._amount())
        count = int(self.rng.choice([1, 1, 2, 3, 4])) if level == 1 else int(self.rng.choice([1, 1, 1, 2]))
        self.recipes.append(CraftingRecipe(name, count, tuple(self._ingredient(*part) for part in parts.items())))
        self.items[level].append(name)
        return name

    def _form(self) -> tuple[str, str]:
        """Return a new item made of a material, and the raw item that it is made of."""
        raw, material, form = self.forms.pop()
        self.kind_of[f"{material} {form}"] = form
        return f"{material} {form}", f"{material} {raw}"

    def _part(self, level: int) -> str:
        """Return an item of a depth, perhaps one that is there."""
        if level == 0:
            raw, material = self.materials[int(self.rng.integers(len(self.materials)))]
            return f"{material} {raw}"
        drawn = self.items[level]
        if drawn and (self.rng.random() < 0.4 or (level == 1 and len(self.kind_of) > 12)):
            return str(self.rng.choice(drawn))
        return self.item(level)

    def _amount(self) -> int:
        return int(self.rng.choice([1, 1, 2, 3]))

    def _ingredient(self, name: str, count: int) -> Ingredient:
        """Ask for the item, or one time in four for its kind."""
        if name in self.kind_of and self.rng.random() < 0.25:
            return Ingredient(self.kind_of[name], count, kind=True)
        return Ingredient(name, count)
