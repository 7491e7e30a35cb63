"""The environment of a zero-sum game of two players, with the rewards of MARS and TextArena by option."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from lmgym.env.actions import parse_choice
from lmgym.env.env import Reply, TextEnv
from lmgym.env.games.opponents import Opponent
from lmgym.env.games.state import OVER, GameState
from lmgym.types import FIRST_SEAT

OPPONENT = "opponent"  # name of the other seat
SEATS = ("first", "second")
FREE = {"game": 2, "mars": 0, "textarena": 1}  # reward scheme -> invalid answers in a row without consequence
FORMAT = -10.0  # MARS' penalty for an invalid answer, which also ends the game


class TwoPlayerEnv(TextEnv):
    """A game between the seats "agent" and "opponent"; even instances seat the agent first, odd ones second.

    `seat="first"` or `"second"` fixes the agent's seat. `opponent` names the scripted player of the other seat.
    `reward="game"` pays the game's payoff, and a third invalid answer in a row gives the game up. `"mars"`: a draw
    may pay more than 0, and an invalid answer ends the game at a cost of 10 for its player alone. `"textarena"`: 1 for
    a win, -1 for a loss, and a second invalid answer in a row gives the game up. The score is the payoff, scaled to
    [0, 1]; a win is a success.
    """

    MOST: ClassVar[float] = 1.0  # payoff of the greatest win
    DRAW: ClassVar[float] = 0.0  # MARS' reward for a draw
    RULES: ClassVar[str]  # the prompt

    def __init__(self, *, opponent: str, seat: str = "both", reward: str = "game", **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(seat=(seat, ("both", *SEATS)), reward=(reward, FREE))
        self.seat, self.reward = seat, reward
        self.opponent = self.opponent_named(opponent)

    # Hooks of a game --------------------------------------------------------------------------------------------

    def opponent_named(self, name: str) -> Opponent:
        """Return the scripted opponent of this name. Raises InstanceError if the game has none of this name."""
        raise NotImplementedError

    def opening(self, number: int) -> GameState:
        """Return the first position of game `number`."""
        raise NotImplementedError

    def describe(self, player: int) -> str:
        """Return what `player` sees, and the legal actions."""
        raise NotImplementedError

    def result(self) -> str:
        """Return the text of the end, for both players."""
        raise NotImplementedError

    def best_action(self) -> str:
        """Return the action of the strongest player there is against the opponent."""
        raise NotImplementedError

    def read(self, choice: str) -> str:
        """Return the action that a choice in lower case names."""
        return choice

    def settled(self, state: GameState) -> GameState:
        """Return the position in which chance has done what the instance says."""
        return state

    def stake(self, player: int) -> float:
        """Return what `player` loses by giving up now."""
        return self.MOST

    # The environment's side -------------------------------------------------------------------------------------

    def begin(self, index: int) -> Reply:
        """Open game `index // 2`, or game `index` if the seat is fixed."""
        number, self.me = divmod(index, 2) if self.seat == "both" else (index, SEATS.index(self.seat))
        self.state = self.opening(number)
        self.invalid = 0  # answers in a row
        self.briefed = [False, False]
        return self._turn()

    def act(self, action: str) -> Reply:
        """Play an action of the player on turn."""
        player = self.state.player
        choice = self.read(parse_choice(action))
        if choice not in self.state.actions():
            return self._refuse(player)
        self.invalid = 0
        self.state = self.settled(self.state.after(choice))
        if self.state.player != OVER:
            return self._turn()
        payoff = self._own(player, self.state.payoff())
        return self._end(player, payoff, self.result(), {"reward": self._reward(payoff)}, self._reward(-payoff))

    def admissible(self) -> list[str]:
        """Return the legal actions."""
        return list(self.state.actions())

    def scripted(self, seat: str) -> str:
        """Play the opponent."""
        return self.opponent.choose(self.state, self.np_random)

    def oracle(self) -> Iterator[str]:
        """Play the strongest player there is against the opponent; it sees what a player may see."""
        while True:
            yield self.best_action()

    def score_if_cut(self) -> dict[str, float]:
        """Return the scores if the agent gave up now."""
        return self._scores(self.me, -self.stake(self.me))

    def solved(self, score: float) -> bool:
        """Return True for a win."""
        return score > 0.5

    def fingerprint(self) -> str:
        """Return the first position and the agent's seat."""
        return f"{self.me} {self.state}"

    def _seat_of(self, player: int) -> str:
        return FIRST_SEAT if player == self.me else OPPONENT

    def _turn(self, note: str = "") -> Reply:
        player = self.state.player
        text = note + self.describe(player)
        if not self.briefed[player]:
            self.briefed[player] = True
            text = f"{self.RULES}\n\n{text}"
        return Reply(text, seat=self._seat_of(player))

    def _refuse(self, player: int) -> Reply:
        """Answer an invalid action, which gives the game up if there were too many."""
        self.invalid += 1
        if self.invalid <= FREE[self.reward]:
            reply = self._turn("That is not one legal action. ")
        else:
            payoff = -self.stake(player)
            terms = {"reward": self._reward(payoff)} | ({"format": FORMAT} if self.reward == "mars" else {})
            other = 0.0 if self.reward == "mars" else self._reward(-payoff)
            text = f"Player {player + 1} gives up by an invalid action."
            reply = self._end(player, payoff, text, terms, other)
        reply.valid = False
        return reply

    def _end(self, player: int, payoff: float, text: str, terms: dict[str, float], other: float) -> Reply:
        """Return the last reply; `payoff` is that of `player`, who acted."""
        scores = self._scores(player, payoff)
        return Reply(text, done=True, reward=terms, others={self._seat_of(1 - player): other}, score=scores)

    def _scores(self, player: int, payoff: float) -> dict[str, float]:
        share = payoff / self.MOST / 2
        return {self._seat_of(player): 0.5 + share, self._seat_of(1 - player): 0.5 - share}

    def _reward(self, payoff: float) -> float:
        if self.reward == "textarena":
            return math.copysign(1.0, payoff) if payoff else 0.0
        return self.DRAW if self.reward == "mars" and not payoff else payoff

    @staticmethod
    def _own(player: int, payoff: float) -> float:
        return payoff if player == 0 else -payoff
