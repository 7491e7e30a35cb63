"""Exact values of strategies in small games with hidden information, and equilibria by CFR+.

A tree holds every history of the game, so these functions suit Kuhn and Leduc poker. Exploitability is the mean of
what a best response wins in either seat, as in OpenSpiel: half of the NashConv of a zero-sum game.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lmgym.env.games.state import CHANCE, OVER, GameState, Strategy

Table = Mapping[str, Sequence[float]]  # information set -> probabilities of its actions


@dataclass(eq=False)
class HistoryNode:
    """A history of a game, with all its continuations."""

    state: GameState
    player: int
    view: str = ""  # information set of the player on turn
    payoff: float = 0.0  # of player 0, at the end
    children: list[HistoryNode] = field(default_factory=list)  # by action, or by outcome of chance
    chances: list[float] = field(default_factory=list)


def tree(state: GameState) -> HistoryNode:
    """Return the whole tree of the game from `state` on."""
    node = HistoryNode(state, state.player)
    if node.player == OVER:
        node.payoff = state.payoff()
    elif node.player == CHANCE:
        node.children = [tree(after) for after, _ in state.outcomes()]
        node.chances = [chance for _, chance in state.outcomes()]
    else:
        node.view = state.view()
        node.children = [tree(state.after(action)) for action in state.actions()]
    return node


@dataclass(frozen=True, eq=False)
class TableStrategy:
    """A strategy as a table of information sets."""

    table: Table

    def __call__(self, state: GameState) -> Sequence[float]:
        """Return the probabilities of the actions of the player on turn."""
        return self.table[state.view()]


def expected_payoff(node: HistoryNode, first: Strategy, second: Strategy) -> float:
    """Return what player 0 wins on average when the two strategies meet."""
    if node.player == OVER:
        return node.payoff
    chances = node.chances if node.player == CHANCE else (first, second)[node.player](node.state)
    return sum(p * expected_payoff(child, first, second) for child, p in zip(node.children, chances, strict=True))


def best_response(root: HistoryNode, player: int, strategy: Strategy) -> tuple[float, dict[str, int]]:
    """Return the most that `player` can win against `strategy`, and the number of the best action by information set.

    The player needs perfect recall: an information set must tell the player's own earlier actions.
    """
    members: dict[str, list[tuple[HistoryNode, float]]] = defaultdict(list)
    chances: dict[HistoryNode, Sequence[float]] = {}

    def collect(node: HistoryNode, reach: float) -> None:
        """Weigh the histories of an information set by chance and the other player."""
        if node.player == player:
            members[node.view].append((node, reach))
        elif node.player != OVER:
            chances[node] = node.chances if node.player == CHANCE else strategy(node.state)
        for child, chance in zip(node.children, chances.get(node, [1.0] * len(node.children)), strict=True):
            collect(child, reach * chance)

    values: dict[HistoryNode, float] = {}
    best: dict[str, int] = {}

    def value(node: HistoryNode) -> float:
        if node not in values:
            if node.player == OVER:
                values[node] = node.payoff if player == 0 else -node.payoff
            elif node.player == player:
                values[node] = value(node.children[choice(node.view)])
            else:
                pairs = zip(node.children, chances[node], strict=True)
                values[node] = sum(chance * value(child) for child, chance in pairs)
        return values[node]

    def choice(view: str) -> int:
        if view not in best:
            count = len(members[view][0][0].children)
            totals = [sum(reach * value(node.children[i]) for node, reach in members[view]) for i in range(count)]
            best[view] = max(range(count), key=totals.__getitem__)
        return best[view]

    collect(root, 1.0)
    return value(root), {view: choice(view) for view in members}


def exploitability(root: HistoryNode, strategy: Strategy) -> float:
    """Return the mean over both seats of what a best response wins against `strategy`; 0 in equilibrium."""
    return (best_response(root, 0, strategy)[0] + best_response(root, 1, strategy)[0]) / 2


@dataclass
class _InformationSet:
    """Regrets and strategies of an information set."""

    regrets: list[float]
    strategy: list[float]
    total: list[float]  # of the strategies so far, weighted by reach and iteration
    gains: list[float]  # regrets of the present traversal

    def update(self) -> None:
        """Add the gains of a traversal and match the regrets."""
        self.regrets = [max(regret + gain, 0.0) for regret, gain in zip(self.regrets, self.gains, strict=True)]
        self.gains = [0.0] * len(self.gains)
        mass = sum(self.regrets)
        self.strategy = [r / mass for r in self.regrets] if mass > 0 else [1 / len(self.regrets)] * len(self.regrets)


def cfr(root: HistoryNode, iterations: int) -> dict[str, list[float]]:
    """Return the average strategy of CFR+ with alternating updates and linear weights (Tammelin, arXiv 1407.5042)."""
    sets: tuple[dict[str, _InformationSet], ...] = ({}, {})

    def prepare(node: HistoryNode) -> None:
        if node.player >= 0 and node.view not in sets[node.player]:
            n = len(node.children)
            sets[node.player][node.view] = _InformationSet([0.0] * n, [1 / n] * n, [0.0] * n, [0.0] * n)
        for child in node.children:
            prepare(child)

    def walk(node: HistoryNode, player: int, own: float, other: float, weight: int) -> float:
        """Return the value of a history for `player`; `own` and `other` are the probabilities to reach it."""
        if node.player == OVER:
            return node.payoff if player == 0 else -node.payoff
        if node.player == CHANCE:
            pairs = zip(node.children, node.chances, strict=True)
            return sum(chance * walk(child, player, own, other * chance, weight) for child, chance in pairs)
        here = sets[node.player][node.view]
        pairs = zip(node.children, here.strategy, strict=True)
        if node.player != player:
            return sum(chance * walk(child, player, own, other * chance, weight) for child, chance in pairs)
        values = [walk(child, player, own * chance, other, weight) for child, chance in pairs]
        mean = sum(chance * value for chance, value in zip(here.strategy, values, strict=True))
        for number, value in enumerate(values):
            here.gains[number] += other * (value - mean)
            here.total[number] += weight * own * here.strategy[number]
        return mean

    prepare(root)
    for iteration in range(1, iterations + 1):
        for player in (0, 1):
            walk(root, player, 1.0, 1.0, iteration)
            for each in sets[player].values():
                each.update()
    return {view: _normalised(each.total) for table in sets for view, each in table.items()}


def _normalised(weights: Sequence[float]) -> list[float]:
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0 else [1 / len(weights)] * len(weights)
