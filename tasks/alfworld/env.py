"""The ALFWorld task: one command per turn; the score is 1 when the goal holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any

from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.alfworld import SPEC, official, oracle
from lmgym.tasks.alfworld.demonstrator import HouseholdMemory, understand
from lmgym.tasks.alfworld.engine import NOTHING, HouseholdGame
from lmgym.tasks.alfworld.grammar import split_task
from lmgym.tasks.alfworld.households import TYPES, draw, write

GOALS = ("templated", "human")


class ALFWorld(TextEnv):
    """A household task by text commands; observations are the stock game's, byte for byte."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        source: str = "procedural",
        receptacles: int = 6,
        objects: int = 6,
        types: tuple[str, ...] = TYPES,
        goals: str = "templated",
        annotation: int = 0,
        instructions: bool = False,
        **common: Any,
    ) -> None:
        """Choose the games.

        Args:
            source: "procedural" or "official"; must match the id.
            receptacles: maximum number in a procedural household.
            objects: maximum number in a procedural household, lamp included.
            types: task types of procedural households; they alternate by index.
            goals: "templated", or "human" for the sentences written by people for official games.
            annotation: number of the human sentence; wraps around.
            instructions: True starts the first observation with the list of commands.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(**common)
        own = self.task.options.get("source", "procedural")
        self.check_choices(source=(source, (own,)), goals=(goals, GOALS))
        if not types or any(name not in TYPES for name in types):
            raise InstanceError(f"types are some of {', '.join(TYPES)}; got {types!r}")
        if goals == "human" and source != "official":
            raise InstanceError("goals='human' needs the sentences of official games: use lmgym/ALFWorldOfficial-v0")
        self.source, self.goals, self.annotation, self.instructions = source, goals, annotation, instructions
        self.receptacles, self.objects, self.types = receptacles, objects, tuple(types)
        self.game: HouseholdGame | None = None
        self._memory: HouseholdMemory | None = None
        self._exchanges: list[tuple[str, str]] = []
        self._opening = self._errand = self._print = ""

    def size(self) -> int:
        """Return the number of instances; of official data, the games found."""
        return len(official.games(self.split)) if self.source == "official" else super().size()

    def begin(self, index: int) -> Reply:
        """Open household or official game `index`."""
        if self.source == "official":
            contents = official.game(self.split, index)
            words = official.annotation(self.split, index, self.annotation) if self.goals == "human" else None
            return self._open(contents, words)
        plan = draw(self.split, index, receptacles=self.receptacles, objects=self.objects, types=self.types)
        return self._open(write(plan))

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open the contents of a `game.tw-pddl` file."""
        if missing := [key for key in ("pddl_domain", "grammar", "pddl_problem") if key not in instance]:
            raise InstanceError(f"an ALFWorld game is a JSON object like game.tw-pddl; it lacks {', '.join(missing)}")
        return self._open(instance)

    def act(self, action: str) -> Reply:
        """Play one command; the answer to an invalid one is "Nothing happens."."""
        game = self.begun(self.game)
        answer = game.step(action)
        won, text = game.won, NOTHING if answer is None else answer
        self._exchanges.append((action, text))
        return Reply(text, reward=float(won), done=won, score=1.0 if won else None, valid=answer is not None)

    def score_if_cut(self) -> float:
        """Return 1 when the goal holds."""
        return float(self.game is not None and self.game.won)

    def admissible(self) -> list[str]:
        """Return the commands that the game takes now, sorted; the stock engine's list."""
        return self.begun(self.game).commands()

    def oracle(self) -> Iterator[str]:
        """Yield commands towards the goal from the present state; none from a dead end (`oracle.next_command`)."""
        return oracle.play(self.begun(self.game))

    def demonstrator(self) -> Iterator[str]:
        """Yield commands of a player that uses only the observations and the goal's sentence.

        A human goal's sentence is given to it as understood, in the templated words.
        """
        game = self.begun(self.game)
        while not game.won:
            yield self._recall(game).next_action()

    def fingerprint(self) -> str:
        """Return a digest of the household and its goal."""
        return self._print

    def title(self, index: int) -> str | None:
        """Return an official game's folders and the digest of its file."""
        return official.title(self.split, index) if self.source == "official" else None

    def index_of(self, title: str) -> int | None:
        """Return the index of the official game with a title, or None."""
        return official.index_of(self.split, title) if self.source == "official" else None

    def _recall(self, game: HouseholdGame) -> HouseholdMemory:
        if self._memory is None:
            put = game.grammar.commands["putobject"].format(o="{}", r="{}")
            self._memory = HouseholdMemory(self._opening, understand(self._errand), put=put)
        for action, observation in self._exchanges:
            self._memory.take_in(action, observation)
        self._exchanges.clear()
        return self._memory

    def _open(self, contents: Mapping[str, Any], words: str | None = None) -> Reply:
        _, self._errand = split_task(str(contents["grammar"]))
        self.game = HouseholdGame.read(contents, task=None if words is None else f"Your task is to: {words}.")
        self._memory, self._exchanges = None, []
        self._opening = self.game.opening()
        self._print = hashlib.sha256(str(contents["pddl_problem"]).encode()).hexdigest()
        if not self.instructions:
            return Reply(self._opening)
        put = self.game.grammar.commands["putobject"].format(o="O", r="R")
        prompt = Template(resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
        return Reply(f"{prompt.substitute(put=put)}\n\n{self._opening}")
