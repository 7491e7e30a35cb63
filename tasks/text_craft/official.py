"""Minecraft's recipes as files, and the goals of TextCraft in its order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.text_craft.recipes import CraftingRecipe, Ingredient, RecipeBook, without_cycles

NAMESPACE = "minecraft:"
EVALUATED = 200  # goals that ADaPT plays: the deepest


def read_book(folder: Path) -> RecipeBook:
    """Read `*.json` of Minecraft's folder `recipes`, in the order of their names, by the rules of TextCraft.

    Of alternative ingredients the first counts; an item's `group` is its kind; a recipe from a storage block alone, or
    one that closes a cycle, is left out; a kind without a craftable item is an item. Raises InstanceError for a file
    that is no recipe.
    """
    recipes, kind_of = list[CraftingRecipe](), dict[str, str]()
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            recipe = _recipe(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InstanceError(f"{path} is no recipe of Minecraft 1.16: {error!r}") from error
        if recipe is None:
            continue
        recipes.append(recipe)
        if (kind := _name(content.get("group", ""))) not in ("", recipe.output):
            kind_of[recipe.output] = kind
    recipes = list(without_cycles(recipes, kind_of))
    craftable = {kind_of.get(recipe.output) for recipe in recipes}
    return RecipeBook([_settled(recipe, craftable) for recipe in recipes], kind_of)


def goals(book: RecipeBook, split: str) -> list[str]:
    """Return the goals of a split, deepest first: ADaPT's 200 for test, the other craftable items for train."""
    items = sorted((item for item in book.by_output if item in book.depth), key=lambda item: (-book.depth[item], item))
    return items[:EVALUATED] if split == "test" else items[EVALUATED:]


def _recipe(content: dict[str, Any]) -> CraftingRecipe | None:
    """Return a shaped or shapeless recipe; None for other ones and for those from one storage block."""
    kind = content["type"].removeprefix(NAMESPACE)
    if kind == "crafting_shaped":
        symbols = Counter("".join(content["pattern"]))
        ingredients = [_ingredient(each, symbols[key]) for key, each in content["key"].items()]
    elif kind == "crafting_shapeless":
        ingredients = [_ingredient(each, 1) for each in content["ingredients"]]
    else:
        return None
    merged = _merged(ingredients)
    if len(merged) == 1 and merged[0].name.endswith(" block"):
        return None
    result = content["result"]
    output, count = (result, 1) if isinstance(result, str) else (result["item"], int(result.get("count", 1)))
    return CraftingRecipe(_name(output), count, merged)


def _ingredient(each: Any, count: int) -> Ingredient:
    first = each[0] if isinstance(each, list) else each
    return Ingredient(_name(first.get("item") or first["tag"]), count, kind="item" not in first)


def _merged(ingredients: Iterable[Ingredient]) -> tuple[Ingredient, ...]:
    amounts: Counter[tuple[str, bool]] = Counter()
    for each in ingredients:
        amounts[each.name, each.kind] += each.count
    return tuple(Ingredient(name, count, kind) for (name, kind), count in amounts.items())


def _settled(recipe: CraftingRecipe, craftable: set[str | None]) -> CraftingRecipe:
    """Return the recipe with kinds that no craftable item has as items."""
    ingredients = (
        Ingredient(each.name, each.count, each.kind and each.name in craftable) for each in recipe.ingredients
    )
    return CraftingRecipe(recipe.output, recipe.count, tuple(ingredients))


def _name(identifier: str) -> str:
    """Return "oak planks" for "minecraft:oak_planks"."""
    return identifier.removeprefix(NAMESPACE).replace("_", " ")
