"""The environment of small games with hidden cards, which are solved exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from lmgym.env.env import Reply
from lmgym.env.games.opponents import Opponent, StrategyPlayer
from lmgym.env.games.solve import Table, TableStrategy, best_response, cfr, exploitability, tree
from lmgym.env.games.state import GameState, Strategy, uniform
from lmgym.env.games.two_players import TwoPlayerEnv

FILE = "equilibrium.json"  # in the task's folder
DECIMALS = 4


game_tree = cache(tree)


@cache
def equilibrium(package: str) -> Strategy:
    """Return the solved strategy in the folder of a task."""
    table: Table = json.loads(files(package).joinpath(FILE).read_text(encoding="utf-8"))
    return TableStrategy({view: [chance / sum(row) for chance in row] for view, row in table.items()})


def write_equilibrium(root: GameState, path: Path, *, iterations: int) -> None:
    """Solve a game by CFR+ and write the strategy as JSON, one information set a line."""
    table = cfr(game_tree(root), iterations)
    rows = [f"{json.dumps(view)}: {[round(chance, DECIMALS) for chance in row]}" for view, row in table.items()]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


@cache
def best_answers(root: GameState, player: int, strategy: Strategy) -> dict[str, int]:
    """Return the best response of `player` to a strategy: the number of an action by information set."""
    return best_response(game_tree(root), player, strategy)[1]


@dataclass(frozen=True)
class Decision:
    """An information set as its player meets it."""

    dialogue: tuple[str, ...]  # observations and the player's own actions in turn, an observation last
    actions: tuple[str, ...]  # legal now


class HiddenCardsEnv(TwoPlayerEnv):
    """A game of two players that can be solved exactly; the oracle is a best response to the opponent.

    Opponents: "cfr", an equilibrium computed by CFR+, and "random".
    """

    ROOT: ClassVar[GameState]  # before the deal

    def __init__(self, *, opponent: str = "cfr", **common: Any) -> None:
        super().__init__(opponent=opponent, **common)

    def opponent_named(self, name: str) -> Opponent:
        """Return the player of the equilibrium or of random actions."""
        self.check_choices(opponent=(name, ("cfr", "random")))
        self.strategy = equilibrium(self.task.package) if name == "cfr" else uniform
        return StrategyPlayer(self.strategy)

    def best_action(self) -> str:
        """Return the action of a best response to the opponent's strategy."""
        answers = best_answers(self.ROOT, self.state.player, self.strategy)
        return self.state.actions()[answers[self.state.view()]]

    def decisions(self) -> dict[str, Decision]:
        """Return all information sets of both players, found by playing every history of every deal."""
        decisions: dict[str, Decision] = {}

        def walk(reply: Reply, dialogue: tuple[str, ...]) -> None:
            if reply.done:
                return
            state, briefed = self.state, list(self.briefed)
            mine = state.player == self.me
            if mine:
                dialogue = (*dialogue, reply.text)
                decisions.setdefault(state.view(), Decision(dialogue, tuple(state.actions())))
            for action in state.actions():
                walk(self.act(action), (*dialogue, action) if mine else dialogue)
                self.state, self.briefed = state, list(briefed)

        seat, self.seat = self.seat, "both"
        for index in range(self.size()):
            walk(self.begin(index), ())
        self.seat = seat
        return decisions

    def exploitability(self, chances: Mapping[str, Sequence[float]]) -> float:
        """Return the exploitability in chips of the strategy that plays `chances` at each information set."""
        return exploitability(game_tree(self.ROOT), TableStrategy(chances))
