"""BabyAI as an environment."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import minigrid  # noqa: F401  # names the missing package when the task is loaded

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.babyai import SPEC
from lmgym.tasks.babyai.levels import LEVELS, make_world, official_id
from lmgym.tasks.babyai.view import FORWARD, LEFT, RIGHT, Thing, View, find

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
PRIMITIVES = (LEFT, RIGHT, FORWARD, "pickup", "drop", "toggle")  # in the order of minigrid's actions
ALIASES = {"pick up": "pickup", "go forward": FORWARD}
GO, TAKE, THROUGH, OPEN = "go to ", "pickup ", "go through ", "toggle and go through "
DEEPEST = 500  # subgoals of the bot's stack
LOOK = "check available actions"


class Subgoals(list[Any]):
    """The bot's stack of subgoals. Raises AssertionError where the bot piles them up without end, as on some levels."""

    def append(self, subgoal: Any) -> None:
        """Push a subgoal."""
        if len(self) > DEEPEST:
            raise AssertionError("the bot plans in circles")
        super().append(subgoal)


class BabyAI(TextEnv):
    """Fulfil the instruction; the reward is minigrid's `1 - 0.9 * steps / limit`, the score 1.

    `level` is a level's number in `LEVELS`, from 1; 0 deals all in turn. A level's own limit of steps ends the episode
    with 0.
    """

    SPEC = SPEC

    def __init__(self, *, level: int = 0, **common: Any) -> None:
        super().__init__(**common)
        if not 0 <= level <= len(LEVELS):
            raise InstanceError(f"{self.task.id} has levels 1 to {len(LEVELS)}, or 0 for all; got {level}")
        self.level = level

    def size(self) -> int:
        """Return the number of instances: a fortieth of the split's for one level."""
        return super().size() // (len(LEVELS) if self.level else 1)

    def begin(self, index: int) -> Reply:
        """Open a level by a seed."""
        self.world = make_world(official_id(self.split, index, self.level))
        self.bot: Any = None  # remembers what it has seen, so it lasts for the episode
        self.suggestion = ""
        self.taken: list[str] = []  # steps since the bot's last suggestion
        self._look()
        return Reply(f"{PROMPT}\n\nYour instruction: {self.world.mission}\n\n{self._described()}")

    def act(self, action: str) -> Reply:
        """Execute one command, which may take several steps."""
        command = parse_command(action[-1000:]).lower().rstrip(".")
        command = ALIASES.get(command, command.replace("pick up ", TAKE))
        if command == LOOK:
            return Reply(self._described())
        steps = self._steps(command)
        if isinstance(steps, str):
            return Reply(f"{steps}\n{self._described()}", valid=False)
        return self._walk(steps)

    def oracle(self) -> Iterator[str]:
        """Play minigrid's bot, which knows what it has seen; where it gives up, turn until the end."""
        while True:
            yield self._suggested()

    def admissible(self) -> list[str]:
        """Return the commands that can be executed."""
        seen = self.view
        commands = [LEFT, RIGHT, *([] if seen.blocked else [FORWARD])]
        if seen.carrying and seen.ahead is None:
            commands.append("drop")
        if seen.ahead is not None and seen.ahead.kind in ("door", "box"):
            commands.append("toggle")
        for thing in seen.things:
            verbs = (THROUGH if thing.walkable else OPEN, GO) if thing.kind == "door" else (TAKE, GO)
            commands += [verb + thing.label for verb in verbs if not isinstance(self._steps(verb + thing.label), str)]
        return commands

    def fingerprint(self) -> str:
        """Return the grid and the instruction."""
        return f"{self.world.pprint_grid()}\n{self.world.mission}"

    def _steps(self, command: str) -> list[str] | str:
        """Return the steps of a command, or why it cannot be executed."""
        if command in PRIMITIVES:
            return self._refusal(command) or [command]
        for verb in (OPEN, THROUGH, GO, TAKE):
            if command.startswith(verb):
                name = command.removeprefix(verb)
                thing = find(self.view.things, name)
                return f"You see no {name}." if thing is None else self._way(verb, thing)
        return f"There is no command {command!r}."

    def _refusal(self, command: str) -> str:
        """Return why a primitive would do nothing; "" if it does something."""
        ahead = self.view.ahead
        if command == FORWARD and self.view.blocked:
            return f"A {ahead.name if ahead else 'wall'} is in your way."
        if command == "pickup":
            if self.view.carrying:
                return f"You are carrying a {self.view.carrying} already."
            if ahead is None or ahead.kind in ("door", "wall"):
                return "There is nothing to pick up in front of you."
        if command == "drop" and (self.view.carrying is None or ahead is not None):
            return "There is no room in front of you." if self.view.carrying else "You are carrying nothing."
        if command == "toggle" and (ahead is None or ahead.kind not in ("door", "box")):
            return "There is no door or box in front of you."
        return ""

    def _way(self, verb: str, thing: Thing) -> list[str] | str:
        """Return the steps of a command about a thing, or why it cannot be executed."""
        if verb == TAKE and thing.kind == "door":
            return "A door cannot be picked up."
        if verb == TAKE and self.view.carrying:
            return f"You are carrying a {self.view.carrying} already."
        if verb == THROUGH and not thing.walkable:
            return f"The {thing.label} is not an open door."
        if verb == OPEN and (thing.kind != "door" or thing.walkable):
            return f"The {thing.label} is not a closed door."
        key = f"{thing.name.partition(' ')[0]} key"
        if verb == OPEN and " locked " in thing.name and self.view.carrying != key:
            return f"The {thing.label} needs the {key}."
        path = self.view.path(thing.place, onto=verb == THROUGH)
        if path is None:
            return f"You see no free way to the {thing.label}."
        after = {GO: [], TAKE: ["pickup"], THROUGH: [FORWARD], OPEN: ["toggle", FORWARD, FORWARD]}[verb]
        return path + after or "You are there."

    def _suggested(self) -> str:
        """Return the bot's next step. After a command of several steps a new bot begins, which has seen nothing."""
        from minigrid.utils.baby_ai_bot import BabyAIBot, DisappearedBoxError

        if self.suggestion and not self.taken:
            return self.suggestion
        try:
            if self.bot is None or len(self.taken) > 1:
                self.bot, self.taken = BabyAIBot(self.world), []
                self.bot.stack = Subgoals(self.bot.stack)
            action = self.bot.replan(PRIMITIVES.index(self.taken[0]) if self.taken else None)
            self.suggestion = (*PRIMITIVES, LEFT)[int(action)]  # the last is "done"
        except (AssertionError, DisappearedBoxError):
            self.suggestion = LEFT
        self.taken = []
        return self.suggestion

    def _walk(self, steps: list[str]) -> Reply:
        """Take steps until the episode ends."""
        reward, over = 0.0, False
        for step in steps:
            self.taken.append(step)
            _, earned, terminated, truncated, _ = self.world.step(PRIMITIVES.index(step))
            reward, over = float(earned), terminated or truncated
            if over:
                break
        self._look()
        if not over:
            return Reply(self._described())
        text = "The instruction is fulfilled." if reward > 0 else "The episode ends: the instruction is not fulfilled."
        return Reply(text, reward=reward, done=True, score=float(reward > 0))

    def _look(self) -> None:
        carried = self.world.carrying
        self.view = View(self.world.gen_obs()["image"], f"{carried.color} {carried.type}" if carried else None)

    def _described(self) -> str:
        return f"{self.view.describe()}\nAvailable actions: {', '.join(self.admissible())}"
