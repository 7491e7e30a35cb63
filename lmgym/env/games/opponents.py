"""Scripted players of two-player games: any strategy, perfect play, and Monte-Carlo tree search."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from lmgym.env.games.state import OVER, GameState, Strategy, uniform
from lmgym.errors import InstanceError

EXPLORATION = 2.0  # c of UCT, and rollouts of a leaf: the values of MARS (thu-nics/MARS)
ROLLOUTS = 10
SEARCH = re.compile(r"mcts:([1-9]\d{0,4})")

Rollout = Callable[[GameState, random.Random], float]  # payoff of player 0 after random play


class Opponent(Protocol):
    """A player that sees the position."""

    def choose(self, state: GameState, rng: np.random.Generator) -> str:
        """Return a legal action."""


@dataclass(frozen=True)
class StrategyPlayer:
    """A player that draws its actions from a strategy."""

    strategy: Strategy

    def choose(self, state: GameState, rng: np.random.Generator) -> str:
        """Draw an action."""
        chances, draw = self.strategy(state), float(rng.random())
        for action, chance in zip(state.actions(), chances, strict=True):
            draw -= chance
            if draw < 0:
                return action
        return max(zip(chances, state.actions(), strict=True))[1]  # rounding left a remainder


@lru_cache(maxsize=1 << 17)
def minimax(state: GameState) -> float:
    """Return the payoff of player 0 when both play perfectly; all positions are visited, so the game must be small."""
    if state.player == OVER:
        return state.payoff()
    best = max if state.player == 0 else min
    return best(minimax(state.after(action)) for action in state.actions())


def perfect(state: GameState) -> list[float]:
    """Return the strategy that draws among all perfect actions."""
    values = [minimax(state.after(action)) for action in state.actions()]
    best = minimax(state)
    return [(value == best) / values.count(best) for value in values]


@lru_cache(maxsize=1 << 17)
def best_payoff(state: GameState, player: int, strategy: Strategy) -> float:
    """Return the mean payoff of `player` who plays best against a strategy; for small games without hidden parts."""
    if state.player == OVER:
        return state.payoff() if player == 0 else -state.payoff()
    values = [best_payoff(state.after(action), player, strategy) for action in state.actions()]
    if state.player == player:
        return max(values)
    return sum(chance * value for chance, value in zip(strategy(state), values, strict=True))


def best_response(state: GameState, strategy: Strategy) -> str:
    """Return the first best action of the player on turn against a strategy of the other."""
    return max(state.actions(), key=lambda action: best_payoff(state.after(action), state.player, strategy))


@dataclass
class _SearchNode:
    """A position in a search tree."""

    state: GameState
    children: dict[str, _SearchNode] = field(default_factory=dict)
    visits: int = 0
    total: float = 0.0  # of payoffs of player 0


@dataclass(frozen=True)
class TreeSearch:
    """UCT with random rollouts, for games without hidden information or chance; it plays the most visited action."""

    simulations: int
    rollout: Rollout

    def choose(self, state: GameState, rng: np.random.Generator) -> str:
        """Search, and return the most visited action."""
        chance = random.Random(int(rng.integers(1 << 62)))
        root = _SearchNode(state)
        for _ in range(self.simulations):
            self._simulate(root, chance)
        return max(root.children, key=lambda action: (root.children[action].visits, action))

    def _simulate(self, root: _SearchNode, chance: random.Random) -> None:
        path = [root]
        while path[-1].children:
            path.append(_promising(path[-1]))
        leaf = path[-1]
        if leaf.state.player != OVER and leaf.visits:
            actions = list(leaf.state.actions())
            chance.shuffle(actions)
            leaf.children = {action: _SearchNode(leaf.state.after(action)) for action in actions}
            leaf = next(iter(leaf.children.values()))
            path.append(leaf)
        payoff = sum(self.rollout(leaf.state, chance) for _ in range(ROLLOUTS)) / ROLLOUTS
        for node in path:
            node.visits += 1
            node.total += payoff


def _promising(node: _SearchNode) -> _SearchNode:
    """Return the child with the highest upper confidence bound for the player on turn; unvisited ones first."""
    sign, log = (1 if node.state.player == 0 else -1), math.log(node.visits)

    def bound(child: _SearchNode) -> float:
        if not child.visits:
            return math.inf
        return sign * child.total / child.visits + EXPLORATION * math.sqrt(log / child.visits)

    return max(node.children.values(), key=bound)


def rollout(state: GameState, chance: random.Random) -> float:
    """Return the payoff of player 0 after random play."""
    while state.player != OVER:
        actions = state.actions()
        state = state.after(actions[int(chance.random() * len(actions))])
    return state.payoff()


def board_opponent(name: str, *, task: str, names: Sequence[str], rollout: Rollout = rollout) -> Opponent:
    """Return the player "random", "minimax" or "mcts:N"; `names` are those that the task has."""
    if (search := SEARCH.fullmatch(name)) and "mcts:N" in names:
        return TreeSearch(int(search[1]), rollout)
    strategies = {"random": uniform, "minimax": perfect}
    if name not in names or name not in strategies:
        raise InstanceError(f"unknown opponent {name!r} for {task}; choose {', '.join(names)}")
    return StrategyPlayer(strategies[name])
