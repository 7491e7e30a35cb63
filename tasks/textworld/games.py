"""The games of each challenge, made by TextWorld's own generators as `tw-make` makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from lmgym.backends.textgame import Story
from lmgym.backends.textgame_build import generating, story
from lmgym.errors import BackendError

FIRST_SEED = {"train": 50_001, "valid": 40_001, "test": 1}  # of a split; as in the Practitioner's guide
NEXT_SEED = 1_000_000  # added where a seed gives no game, far from all other seeds
TRIES = 8

Settings = Mapping[str, Any]


def open_game(challenge: str, settings: Settings, seed: int) -> Story:
    """Return the compiled game of a seed, from the cache where it is there."""
    recipe = {"challenge": challenge, "settings": dict(settings), "seed": seed}
    return story(recipe, partial(make, challenge, settings, seed))


def make(challenge: str, settings: Settings, seed: int) -> Any:
    """Generate the `textworld.Game` of a seed; if the generator gives up, use the next seed."""
    with generating(seed):
        from textworld.generator import QuestGenerationError
        from textworld.generator.text_grammar import MissingTextGrammar

        for again in range(TRIES):
            try:
                return MAKERS[challenge](_options(seed + again * NEXT_SEED), settings)
            except (QuestGenerationError, MissingTextGrammar) as error:
                last = error
    raise BackendError(f"TextWorld makes no {challenge} game of {dict(settings)} and seed {seed}: {last}") from last


def _options(seed: int) -> Any:
    import textworld

    options = textworld.GameOptions()
    options.seeds = seed
    return options


@cache
def _knowledge(folder: str) -> Any:
    """Return a challenge's rules and grammars, cached: reading them takes six times as long as a small game."""
    import textworld
    from textworld.generator.data import KnowledgeBase

    home = Path(textworld.__file__).parent / folder
    return KnowledgeBase.load(logic_path=str(home / "logic"), grammar_path=str(home / "text_grammars"))


def _custom(options: Any, settings: Settings) -> Any:
    """Make a world of some rooms and objects, and a quest: `tw-make custom`."""
    from textworld.generator import make_game

    options.kb = _knowledge("generator/data")
    options.nb_rooms, options.nb_objects = settings["rooms"], settings["objects"]
    options.quest_length = settings["quest"]
    options.chaining.min_depth, options.chaining.min_breadth, options.chaining.max_breadth = 1, 1, 5
    return _with_goal(make_game, options, settings["goal"])


def _coin(options: Any, settings: Settings) -> Any:
    """Make a chain of rooms with a coin at its end, and dead ends from level 101 on."""
    from textworld.challenges.tw_coin_collector.coin_collector import make_game

    options.kb = _knowledge("challenges/tw_coin_collector/textworld_data")
    options.grammar.allowed_variables_numbering = True
    dead_ends, length = divmod(settings["level"] - 1, 100)
    options.quest_length = length + 1
    options.nb_rooms = (dead_ends + 1) * options.quest_length
    return _with_goal(partial(make_game, "simple"), options, settings["goal"])


def _treasure(options: Any, settings: Settings) -> Any:
    """Make a maze with the right object and a wrong one."""
    from textworld.challenges.tw_treasure_hunter.treasure_hunter import make

    return _with_goal(partial(make, {"level": settings["level"]}), options, settings["goal"])


def _cooking(options: Any, settings: Settings) -> Any:
    """Make a game of the First TextWorld Problems: find a recipe and follow it."""
    from textworld.challenges.tw_cooking.cooking import make

    return make({**settings, "recipe_seed": 0, "drop": False}, options)


def _simple(options: Any, settings: Settings) -> Any:
    """Make a house of six rooms: leave the bedroom, find the food, put it on the stove."""
    from textworld.challenges.tw_simple.simple import make

    return make({"rewards": "dense", "goal": settings["goal"], "test": settings["test"]}, options)


MAKERS: Mapping[str, Callable[[Any, Settings], Any]] = {
    "custom": _custom,
    "coin": _coin,
    "treasure": _treasure,
    "cooking": _cooking,
    "simple": _simple,
}


def _with_goal(generate: Callable[[Any], Any], options: Any, goal: str) -> Any:
    """Generate with an objective that names every step, the last one, or nothing."""
    options.grammar.only_last_action = goal == "brief"
    game = generate(options)
    if goal == "none":
        game.objective = ""
    return game
