"""Games of textarena as environments."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.text_arena import EACH, GAMES, PLAYERS, SPEC
from lmgym.tasks.text_arena.process import GameProcess
from lmgym.types import FIRST_SEAT

if find_spec("textarena") is None:  # only the games' own processes import it
    raise ModuleNotFoundError("No module named 'textarena'", name="textarena")

OPPONENT = "opponent"
LONGEST = 10_000  # characters of an action that are read, from the end
LISTED, TRIES = 4, 60  # admissible actions that are looked for, and the candidates that are tried
TRIES_OF_OPPONENT = 300
GIVE_UP = "[pass]"  # of an opponent that finds no move


class TextArena(TextEnv):
    """A game of textarena; `game` names one, "" deals all in turn.

    With two players even instances seat the agent as player 0, odd ones as player 1. The reward comes with the end:
    the game's own. The score is that of one player cut to [0, 1], of two players scaled from [-1, 1]; an episode that
    is cut scores 0.
    """

    SPEC = SPEC

    def __init__(self, *, game: str = "", **common: Any) -> None:
        super().__init__(**common)
        if game and game not in PLAYERS:
            raise InstanceError(f"unknown game {game!r} for {self.task.id}; choose {', '.join(GAMES)}")
        self.game = game
        self.process = GameProcess()

    def size(self) -> int:
        """Return the number of instances: of two players both seats of every game."""
        count = EACH[self.split]
        return count * PLAYERS[self.game] if self.game else count * len(GAMES)

    def begin(self, index: int) -> Reply:
        """Open a game by its seed."""
        number, place = (index, 0) if self.game else divmod(index, len(GAMES))
        self.name = self.game or GAMES[place]
        players = PLAYERS[self.name]
        number, self.me = divmod(number, players)
        self.unread = dict.fromkeys(range(players), "")
        seed = number if self.split == "test" else EACH["test"] + number
        return self._reply(self.process.call("open", game=f"{self.name}-v0", players=players, seed=seed))

    def act(self, action: str) -> Reply:
        """Play an action, which is put into brackets if it has none, as textarena does."""
        text = action[-LONGEST:].strip()
        return self._reply(self.process.call("act", action=text if "[" in text or "]" in text else f"[{text}]"))

    def admissible(self) -> list[str] | None:
        """Return some actions that the game accepts, found by trial; None if none is found."""
        return self.process.call("moves", seed=0, most=LISTED, tries=TRIES) or None

    def scripted(self, seat: str) -> str:
        """Play a random action that the game accepts."""
        chance = int(self.np_random.integers(2**31))
        moves: list[str] = self.process.call("moves", seed=chance, most=1, tries=TRIES_OF_OPPONENT)
        return moves[0] if moves else GIVE_UP

    def fingerprint(self) -> str:
        """Return the instance: games with one start differ in their chance only."""
        return f"{self.split} {self.instance_name}"

    def close(self) -> None:
        """End the game's process."""
        self.process.close()

    def _reply(self, answer: Mapping[str, Any]) -> Reply:
        for player, text in answer["texts"].items():
            self.unread[int(player)] += f"\n{text}" if self.unread[int(player)] and text else text
        if answer["done"]:
            return self._end(answer)
        seat = FIRST_SEAT if answer["player"] == self.me else OPPONENT
        text, self.unread[answer["player"]] = self.unread[answer["player"]], ""
        return Reply(text, valid=answer["valid"], seat=seat)

    def _end(self, answer: Mapping[str, Any]) -> Reply:
        rewards = {int(player): reward for player, reward in answer["rewards"].items()}
        actor, mine = self._seat, rewards[self.me]
        alone = len(rewards) == 1
        earned = mine if actor == FIRST_SEAT else rewards[1 - self.me]
        others = {} if alone else {OPPONENT if actor == FIRST_SEAT else FIRST_SEAT: sum(rewards.values()) - earned}
        score = min(max(mine if alone else (1 + mine) / 2, 0.0), 1.0)
        scores = score if alone else {FIRST_SEAT: score, OPPONENT: min(max((1 + rewards[1 - self.me]) / 2, 0.0), 1.0)}
        text = "\n".join(part for part in (self.unread[self.me], answer["reason"]) if part)
        return Reply(text, reward=earned, others=others, done=True, score=scores, valid=answer["valid"])
