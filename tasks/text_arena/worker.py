"""Plays one game of textarena in a process of its own: JSON requests on stdin, JSON answers on stdout.

Games draw from the process' global generators and iterate over sets; here both are fixed by the seed and by
PYTHONHASHSEED=0, which `process.py` sets. Nothing may be downloaded. This file is run by its path and imports nothing
of lmgym.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import os
import random
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from typing import Any

TOKEN = re.compile(r"\[[^\[\]\n]{1,40}\]")
BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
DIGITS = [str(digit) for digit in range(10)]


def _all(template: str, *parts: Iterable[Any]) -> list[str]:
    return [template.format(*choice) for choice in itertools.product(*parts)]


def _lines(columns: str, rows: int, farthest: int, template: str) -> list[str]:
    """Return moves from a square to another one in a straight or diagonal line."""
    squares = [(column, row) for column in range(len(columns)) for row in range(rows)]
    moves = []
    for (a, b), (c, d) in itertools.product(squares, repeat=2):
        across, up = abs(a - c), abs(b - d)
        if 0 < max(across, up) <= farthest and (across == up or not across or not up):
            moves.append(template.format(f"{columns[a]}{b + 1}", f"{columns[c]}{d + 1}"))
    return moves


def _sums(total: int, count: int) -> Iterator[tuple[int, ...]]:
    for parts in itertools.product(range(total + 1), repeat=count - 1):
        if sum(parts) <= total:
            yield (*parts, total - sum(parts))


GRAMMAR = {  # actions of games whose messages do not name them
    "Alquerque": _lines("abcde", 5, 2, "[{} {}]"),
    "Bandit": _all("[{}]", ("red", "blue", "green", "yellow", "purple")),
    "Battleship": _all("[{}{}]", "ABCDE", range(5)),
    "Breakthrough": _lines("abcdefgh", 8, 1, "[{}{}]"),
    "Briscola": _all("[play {}]", range(1, 4)),
    "Chopsticks": [*_all("[attack {} {}]", "01", "01"), *_all("[split {} {}]", range(5), range(5))],
    "ColonelBlotto": [
        "[" + " ".join(f"{name}:{n}" for name, n in zip("ABC", each, strict=True)) + "]" for each in _sums(20, 3)
    ],
    "GermanWhist": _all("[play {}]", range(1, 14)),
    "Golf": ["[draw]", "[take]", "[discard]", *_all("[swap {} {}]", range(2), range(3))],
    "LinesOfAction": _lines("abcdefgh", 8, 8, "[{}{}]"),
    "Mastermind": _all("[{} {} {} {}]", *["123456"] * 4),
    "MemoryGame": _all("[{} {} {} {}]", *["0123"] * 4),
    "NewRecruit": ["[Accept]", "[Reject]", *_all("[Propose] {}{}{}{}{}{}{}{}", *["AE"] * 8)],
    "PegJump": _all("[{} {}]", range(1, 16), range(1, 16)),
    "QuantumTicTacToe": _all("[{},{}]", range(9), range(9)),
    "RushHour": _all("[{}{}]", "ABCDEFGHIJKLMNOPX", "+-"),
    "Set": _all("[{}, {}, {}]", *[range(1, 13)] * 3),
    "Sudoku": _all("[{} {} {}]", *["123456789"] * 3),
    "Tak": _all("[place () {{({},{}): [F{}]}}]", range(4), range(4), range(15)),
    "TowerOfHanoi": _all("[{} {}]", "ABC", "ABC"),
    "TwoDollar": ["[Accept]", "[Reject]", *_all("[Propose] ${}.{}0", range(2), DIGITS)],
}


class OpenGame:
    """The open game."""

    def __init__(self) -> None:
        self.env: Any = None
        self.seen: list[str] = []  # messages of the player on turn, the latest last

    @property
    def state(self) -> Any:
        """State of textarena."""
        return self.env.state

    def open(self, game: str, players: int, seed: int) -> dict[str, Any]:
        """Open a new game and return its first turn."""
        import textarena

        self.name = game.partition("-")[0]
        _seed(seed)
        self.env = textarena.make(f"{game}-raw")
        self.env.reset(num_players=players, seed=seed)
        self.messages: dict[int, list[str]] = {player: [] for player in range(players)}
        return self._turn(valid=True, done=False)

    def act(self, action: str) -> dict[str, Any]:
        """Play an action of the player on turn. One on which the game itself breaks ends it without rewards."""
        try:
            done, valid = play(self.env, action)
        except BROKEN:
            return self._turn(valid=False, done=True)
        return self._turn(valid=valid, done=done)

    def moves(self, seed: int, most: int, tries: int) -> list[str]:
        """Return up to `most` actions that the game accepts now, found by that many tries on copies."""
        heard = self.messages[self.state.current_player_id]
        shuffler = random.Random(seed)
        candidates = list[str]()
        listed = (self.state.game_state or {}).get("valid_moves")  # Santorini tells them in its first message only
        named = TOKEN.findall(listed) if isinstance(listed, str) else []
        for group in (named, *_candidates(self.name, heard)):
            fresh = [each for each in dict.fromkeys(group) if each not in candidates]
            shuffler.shuffle(fresh)
            candidates += fresh
        accepted: list[str] = []
        for candidate in candidates[:tries]:
            if len(accepted) == most:
                break
            if self._accepts(candidate):
                accepted.append(candidate)
        return accepted

    def _accepts(self, action: str) -> bool:
        before = random.getstate()
        try:
            return play(copy.deepcopy(self.env), action)[1]
        except BROKEN:
            return False
        finally:
            random.setstate(before)

    def _turn(self, *, valid: bool, done: bool) -> dict[str, Any]:
        """Return the new messages of all players, who is on turn, and at the end the rewards."""
        texts = {}
        for player, messages in self.state.observations.items():
            texts[player] = "\n".join(f"[{self._sender(sender)}] {text}" for sender, text, _ in messages)
            self.messages[player] += [str(text) for _, text, _ in messages]  # some games tell numbers
            self.state.observations[player] = []
        answer = {"texts": texts, "player": self.state.current_player_id, "valid": valid, "done": done}
        if done:
            rewards = self.state.rewards or {}
            answer["rewards"] = {player: _number(rewards.get(player)) for player in self.messages}
            answer["reason"] = str(self.state.game_info[0].get("reason") or "")
        return answer

    def _sender(self, sender: int) -> str:
        return str(self.state.role_mapping.get(sender, f"Player {sender}"))


def play(env: Any, action: str) -> tuple[bool, bool]:
    """Play an action. Return whether the game is over and whether the action was valid."""
    state, player = env.state, env.state.current_player_id
    errors = state.error_count
    done, _ = env.step(action)
    flagged = state.game_info[player].get("invalid_move", False)
    return bool(done), not flagged and (state.error_count <= errors or state.current_player_id != player)


def _candidates(game: str, heard: list[str]) -> Iterator[list[str]]:
    """Yield groups of candidates, the likeliest first: words of late, the grammar, the rules, numbers, cells."""
    yield [token for message in heard[-3:] for token in TOKEN.findall(message)]
    yield GRAMMAR.get(game, [])
    yield [token for message in heard[:1] for token in TOKEN.findall(message)]
    yield [f"[{number}]" for number in range(12)]
    yield [f"[{row} {column}]" for row, column in itertools.product(range(8), repeat=2)]


def _number(reward: Any) -> float:
    """Return a reward; games that mix up their arguments leave a text here, for an invalid move."""
    return float(reward) if isinstance(reward, int | float) else 0.0


def _seed(seed: int) -> None:
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def _refuse(*_: Any) -> None:
    raise OSError("games may not use the network")


def main() -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a game prints goes to stderr
    socket.socket.connect = _refuse  # type: ignore[method-assign]
    game = OpenGame()
    for line in sys.stdin:
        request = json.loads(line)
        method = request.pop("method")
        with contextlib.redirect_stdout(sys.stderr):
            try:
                answer = {"ok": getattr(game, method)(**request)}
            except (*BROKEN, ImportError, OSError, SyntaxError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
