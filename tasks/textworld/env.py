"""TextWorld games as tasks: one command per turn, won or lost by the engine's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any, ClassVar

from lmgym.backends.textgame import Answer, Story, TextGame
from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.textworld import COIN, COOKING, SIMPLE, SPEC, TREASURE
from lmgym.tasks.textworld.demonstrator import explore
from lmgym.tasks.textworld.games import FIRST_SEED, open_game

REWARDS = ("sparse", "dense")
GOALS = ("detailed", "brief", "none")
VIEWS = ("feedback", "state")
COMMANDS = (
    "go north, open X, close X, unlock X with Y, lock X with Y, take X, take X from Y, put X on Y, insert X into Y, "
    "drop X, eat X, examine X, look, inventory"
)


class TextWorld(TextEnv):
    """A game of the TextWorld engine; subclasses choose which."""

    CHALLENGE: ClassVar[str]
    COMMANDS: ClassVar[str] = COMMANDS
    EXPLORED: ClassVar[bool] = False  # a brief goal can be reached by looking everywhere

    def __init__(
        self,
        *,
        goal: str = "detailed",
        rewards: str = "sparse",
        view: str = "feedback",
        instructions: bool = True,
        **common: Any,
    ) -> None:
        """Choose the objective, the reward and the observations.

        Args:
            goal: the objective names every step ("detailed"), the last one ("brief") or none ("none").
            rewards: "sparse" is 1 for winning; "dense" is the progress of the quests, 1 in sum when won.
            view: "feedback" is the game's answer; "state" adds room and inventory every turn.
            instructions: True starts the first observation with the list of commands.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(**common)
        self.check_choices(goal=(goal, GOALS), rewards=(rewards, REWARDS), view=(view, VIEWS))
        self.goal, self.rewards, self.view, self.instructions = goal, rewards, view, instructions
        self.game: TextGame | None = None
        self._progress = 0.0

    def settings(self) -> dict[str, Any]:
        """Return what the game is made from, beside the seed."""
        raise NotImplementedError

    def begin(self, index: int) -> Reply:
        """Open the game of seed `index`, counted from the split's first seed."""
        return self._open(self.story(index))

    def story(self, index: int) -> Story:
        """Return the compiled game of instance `index`."""
        return open_game(self.CHALLENGE, self.settings(), FIRST_SEED[self.split] + index)

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open the game of any `{"seed": n}` under this environment's options."""
        seed = instance.get("seed")
        if set(instance) != {"seed"} or type(seed) is not int or not 0 <= seed < 2**31:
            raise InstanceError(f"an authored TextWorld game is {{'seed': n}} with 0 <= n < 2**31; got {instance!r}")
        return self._open(open_game(self.CHALLENGE, self.settings(), seed))

    def act(self, action: str) -> Reply:
        """Play one command."""
        answer = self.begun(self.game).step(parse_command(action))
        over = answer.won or answer.lost
        return Reply(
            answer.text,
            reward=self._earned(answer, over),
            done=over,
            score=(1.0 if answer.won else self.score_if_cut()) if over else None,
            valid=answer.understood,
        )

    def admissible(self) -> list[str]:
        """Return the commands that the engine finds sensible now, sorted."""
        return self.begun(self.game).logic.commands()

    def oracle(self) -> Iterator[str]:
        """Yield the engine's plan, made anew after every command.

        Where a game has a box and an old box, the parser asks which box is meant: then a thing is taken without
        naming what it is taken from.
        """
        game, command = self.begun(self.game), ""
        while plan := game.logic.plan():
            again, command = plan[0] == command, plan[0]
            yield command.partition(" from ")[0] if again else command

    def demonstrator(self) -> Iterator[str]:
        """Yield what follows from the text: the told steps, or a search; the oracle's commands where neither will do.

        A detailed goal names every step of the engine's plan, so whoever reads it plays that plan.
        """
        if self.EXPLORED and self.goal == "brief":
            goal, _, _ = self.begun(self.game).opening.partition("-=")
            return explore(self, goal)
        return self.oracle()

    def close(self) -> None:
        """Release the interpreter."""
        if self.game is not None:
            self.game.close()
        self.game = None

    def _open(self, story: Story) -> Reply:
        self.close()
        self.game = TextGame(story, state=self.view == "state")
        self._progress = 0.0
        if not self.instructions:
            return Reply(self.game.opening)
        prompt = resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
        return Reply(f"{Template(prompt).substitute(commands=self.COMMANDS)}\n\n{self.game.opening}")

    def _earned(self, answer: Answer, over: bool) -> float | dict[str, float]:
        """Return 1 for winning or, with dense rewards, the change in progress: 1 in sum when won, 0 when lost."""
        if self.rewards == "sparse":
            return float(answer.won)
        progress = float(answer.won) if over else self.begun(self.game).logic.progress()
        before, self._progress = self._progress, progress
        return {"progress": progress - before}


class Custom(TextWorld):
    """A generated world and a quest in it: `tw-make custom`."""

    SPEC = SPEC
    CHALLENGE = "custom"

    def __init__(self, *, rooms: int = 2, objects: int = 3, quest: int = 4, **common: Any) -> None:
        """Choose the world.

        Args:
            rooms: number of rooms, 1 to 20.
            objects: minimum number of objects; the quest may need more.
            quest: length of the quest in commands, at least 1.
            common: options of every TextWorld game.
        """
        super().__init__(**common)
        if not 1 <= rooms <= 20 or objects < 1 or quest < 1:
            raise InstanceError(f"rooms is 1 to 20, objects and quest from 1; got {rooms}, {objects}, {quest}")
        self.rooms, self.objects, self.quest = rooms, objects, quest

    def settings(self) -> dict[str, Any]:
        """Return the size of the world."""
        return {"rooms": self.rooms, "objects": self.objects, "quest": self.quest, "goal": self.goal}


class Coin(TextWorld):
    """Coin Collector: find a coin in a chain of rooms."""

    SPEC = COIN
    CHALLENGE = "coin"
    COMMANDS = "go north, go east, go south, go west, take X, examine X, look, inventory"
    EXPLORED = True

    def __init__(self, *, level: int = 105, goal: str = "brief", **common: Any) -> None:
        """Choose the level, 1 to 300: its last two digits are the length of the chain, its hundreds the dead ends."""
        super().__init__(goal=goal, **common)
        if not 1 <= level <= 300 or ((level - 1) // 100 + 1) * ((level - 1) % 100 + 1) > 100:
            raise InstanceError(f"level is 1 to 300 with at most 100 rooms; got {level}")
        self.level = level

    def settings(self) -> dict[str, Any]:
        """Return the level."""
        return {"level": self.level, "goal": self.goal}


class Treasure(TextWorld):
    """Treasure Hunter: find the named object, leave the other alone."""

    SPEC = TREASURE
    CHALLENGE = "treasure"
    EXPLORED = True

    def __init__(self, *, level: int = 15, goal: str = "brief", **common: Any) -> None:
        """Choose the level, 1 to 30: 5, 10 or 20 rooms; generation takes minutes above level 24."""
        super().__init__(goal=goal, **common)
        if not 1 <= level <= 30:
            raise InstanceError(f"level is 1 to 30; got {level}")
        self.level = level

    def settings(self) -> dict[str, Any]:
        """Return the level."""
        return {"level": self.level, "goal": self.goal}


class Cooking(TextWorld):
    """First TextWorld Problems: prepare a meal by the recipe."""

    SPEC = COOKING
    CHALLENGE = "cooking"
    COMMANDS = f"{COMMANDS}, cook X with Y, chop X with Y, slice X with Y, dice X with Y, prepare meal"

    def __init__(
        self,
        *,
        recipe: int = 2,
        take: int = 1,
        go: int = 6,
        opens: bool = True,
        cook: bool = True,
        cut: bool = True,
        **common: Any,
    ) -> None:
        """Choose the skills, as the competition names them.

        Args:
            recipe: ingredients, 1 to 5.
            take: how many of them are to be found; the others are in the inventory.
            go: rooms: 1, 6, 9 or 12.
            opens: whether doors and containers are closed.
            cook: whether ingredients are to be cooked.
            cut: whether ingredients are to be cut.
            common: what every TextWorld game takes; the goal is always the same sentence.
        """
        super().__init__(**common)
        if not 1 <= recipe <= 5 or not 0 <= take <= recipe or go not in (1, 6, 9, 12):
            raise InstanceError(f"recipe is 1 to 5, take up to recipe, go 1, 6, 9 or 12; got {recipe}, {take}, {go}")
        self.skills = {"recipe": recipe, "take": take, "go": go, "open": opens, "cook": cook, "cut": cut}

    def settings(self) -> dict[str, Any]:
        """Return the skills, and the split: each has its own ingredients and preparations."""
        return {**self.skills, "split": self.split}

    def score_if_cut(self) -> float:
        """Return the share of the points earned so far."""
        game = self.begun(self.game)
        return game.points / game.worth


class Simple(TextWorld):
    """A house of six rooms: leave the bedroom, find the food, put it on the stove."""

    SPEC = SIMPLE
    CHALLENGE = "simple"

    def settings(self) -> dict[str, Any]:
        """Return the goal, and which foods there are."""
        return {"goal": self.goal, "test": self.split == "test"}
