"""Recipes: what crafts what, how deep an item is, which ingredients meet a recipe, and plans that craft a goal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil


@dataclass(frozen=True)
class Ingredient:
    """An amount of an item, or of any item of a kind."""

    name: str
    count: int
    kind: bool = False  # `name` is a kind, such as "planks"


@dataclass(frozen=True)
class CraftingRecipe:
    """One application crafts `count` of `output`."""

    output: str
    count: int
    ingredients: tuple[Ingredient, ...]

    def __str__(self) -> str:
        """Return the recipe as a crafting command."""
        amounts = ", ".join(f"{each.count} {each.name}" for each in self.ingredients)
        return f"craft {self.count} {self.output} using {amounts}"


class RecipeBook:
    """Recipes with the kinds of their items; no item is needed to craft itself."""

    def __init__(self, recipes: Iterable[CraftingRecipe], kind_of: Mapping[str, str]) -> None:
        self.recipes = tuple(recipes)
        self.kind_of = kind_of  # item -> kind
        self.by_output: dict[str, list[CraftingRecipe]] = {}
        for recipe in self.recipes:
            self.by_output.setdefault(recipe.output, []).append(recipe)
        self.members: dict[str, list[str]] = {}  # craftable items by kind
        for item in self.by_output:
            if item in kind_of:
                self.members.setdefault(kind_of[item], []).append(item)
        used = {each.name for recipe in self.recipes for each in recipe.ingredients if not each.kind}
        self.raw = frozenset(used - self.by_output.keys() - self.members.keys())

    @cached_property
    def depth(self) -> Mapping[str, int]:
        """Crafting steps on the longest way from raw items to each item and kind, by its easiest recipe."""
        depth = dict.fromkeys(self.raw, 0)
        while True:
            reached = dict(depth)
            for recipe in self.recipes:
                if all(each.name in depth for each in recipe.ingredients):
                    steps = 1 + max(depth[each.name] for each in recipe.ingredients)
                    for name in (recipe.output, self.kind_of.get(recipe.output, recipe.output)):
                        reached[name] = min(reached.get(name, steps), steps)
            if reached == depth:
                return depth
            depth = reached

    def easiest(self, item: str) -> CraftingRecipe:
        """Return the recipe of the least depth for a craftable item."""
        unreachable = len(self.recipes)
        return min(
            self.by_output[item],
            key=lambda recipe: max(self.depth.get(each.name, unreachable) for each in recipe.ingredients),
        )

    def match(self, output: str, used: Mapping[str, int]) -> CraftingRecipe | None:
        """Return the recipe for `output` that takes exactly the items `used`; None if there is none."""
        return next((recipe for recipe in self.by_output.get(output, []) if self._takes(recipe, used)), None)

    def _takes(self, recipe: CraftingRecipe, used: Mapping[str, int]) -> bool:
        left = Counter(used)
        for each in sorted(recipe.ingredients, key=lambda each: each.kind):
            items = [item for item in left if self.kind_of.get(item) == each.name] if each.kind else [each.name]
            fitting = next((item for item in items if left[item] >= each.count), None)
            if fitting is None:
                return False
            left[fitting] -= each.count
        return not any(left.values())

    def needed(self, goal: str) -> list[CraftingRecipe]:
        """Return all recipes for `goal` and for whatever those take, in the order of the book."""
        names, reached = [goal], {goal}
        while names:
            name = names.pop()
            for item in (name, *self.members.get(name, [])):
                for recipe in self.by_output.get(item, []):
                    new = {each.name for each in recipe.ingredients} - reached
                    reached |= new | {item}
                    names += sorted(new)
        return [recipe for recipe in self.recipes if recipe.output in reached]

    def plan(self, goal: str, inventory: Mapping[str, int]) -> list[str]:
        """Return commands that craft `goal` from the items of `inventory`, reusing these."""
        stock, commands = Counter(inventory), list[str]()
        self._craft(self.easiest(goal), 1, stock, commands)
        return commands

    def _craft(self, recipe: CraftingRecipe, times: int, stock: Counter[str], commands: list[str]) -> None:
        """Plan `times` applications of a recipe; `stock` is what earlier commands leave unreserved."""
        amounts = []
        for each in recipe.ingredients:
            item = self._member(each, times, stock) if each.kind else each.name
            amounts.append(f"{each.count} {item}")
            self._obtain(item, each.count * times, stock, commands)
            stock[item] -= each.count * times
        commands += [f"craft {recipe.count} {recipe.output} using {', '.join(amounts)}"] * times
        stock[recipe.output] += recipe.count * times

    def _obtain(self, item: str, count: int, stock: Counter[str], commands: list[str]) -> None:
        missing = count - stock[item]
        if missing > 0 and item in self.by_output:
            recipe = self.easiest(item)
            self._craft(recipe, ceil(missing / recipe.count), stock, commands)
        elif missing > 0:
            commands.append(f"get {missing} {item}")
            stock[item] += missing

    def _member(self, each: Ingredient, times: int, stock: Counter[str]) -> str:
        """Return the item to use as an ingredient of a kind: one at hand, else the easiest to craft."""
        members = self.members[each.name]
        at_hand = [item for item in members if stock[item] >= each.count * times]
        return min(at_hand or members, key=lambda item: (self.depth.get(item, len(self.recipes)), item))


def without_cycles(recipes: Iterable[CraftingRecipe], kind_of: Mapping[str, str]) -> Iterator[CraftingRecipe]:
    """Yield recipes in order, leaving out each that would let an item be needed for itself."""
    parts: dict[str, set[str]] = {}  # item or kind -> direct ingredients

    def needs(name: str, wanted: set[str]) -> bool:
        names, seen = [name], set[str]()
        while names:
            current = names.pop()
            if current in wanted:
                return True
            if current not in seen:
                seen.add(current)
                names += parts.get(current, ())
        return False

    for recipe in recipes:
        outputs = {recipe.output, kind_of.get(recipe.output, recipe.output)}
        if not any(needs(each.name, outputs) for each in recipe.ingredients):
            for output in outputs:
                parts.setdefault(output, set()).update(each.name for each in recipe.ingredients)
            yield recipe
