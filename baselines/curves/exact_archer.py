"""ArCHer on guess_number beside exact values: tells errors of its critic from those of its actor.

    lmgym train baselines/curves/exact_archer.py guess_number --option highest=16 --option max_turns=4 --exact

Exact are the chances to win of a player that draws among the numbers the answers allow: the player that the night's
starts imitate. `critic_correlation` in `metrics.jsonl` compares the critic with them: 1 if it orders the utterances at
an observation as they do, 0 if it knows nothing of them. With `--exact` they take the critic's place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from lmgym.baselines import archer
from lmgym.baselines.archer import TwinCritic, UtteranceEstimate
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Store
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress
from lmgym.train.services import Services

RANGE = re.compile(r"from 1 to (\d+)")
GUESS = re.compile(r"(\d+)\D*?(higher|lower)")


@dataclass(frozen=True, kw_only=True)
class Args(archer.Hierarchical):
    """Options of ArCHer, and of the exact values."""

    exact: bool = False  # utterances are judged by the exact values; no critic is trained
    turns: int = 4  # turn limit of the game, for the exact values


@cache
def value(count: int, turns: int) -> float:
    """Return the chance to win with `count` numbers left and so many turns."""
    return sum(quality(count, guess, turns) for guess in range(count)) / count if count and turns else 0.0


@cache
def quality(count: int, guess: int, turns: int) -> float:
    """Return the chance to win after the guess with `guess` of the `count` numbers left below it."""
    above = count - guess - 1
    return (1 + guess * value(guess, turns - 1) + above * value(above, turns - 1)) / count


def exact_values(before: str, utterance: str, turns: int) -> tuple[float, float]:
    """Return the exact Q of an utterance and V of the text before it, in a game of so many turns.

    A guess that the answers rule out, and what is no guess, costs a turn and tells nothing.
    """
    task = RANGE.search(before)
    assert task is not None, "the exact values are those of guess_number with the whole history"
    low, high, guesses = 1, int(task[1]), before.count("<|assistant|>") - 1
    for guess, answer in GUESS.findall(before[task.end() :]):
        low, high = (max(low, int(guess) + 1), high) if answer == "higher" else (low, min(high, int(guess) - 1))
    count, left = high - low + 1, turns - guesses
    guess = int(utterance) if utterance.isdecimal() and len(utterance) < 9 else 0
    good = low <= guess <= high
    return quality(count, guess - low, left) if good else value(count, left - 1), value(count, left)


class CheckedCritic(TwinCritic):
    """ArCHer's critic beside exact values, or these in its place."""

    def __init__(self, services: Services, args: Args) -> None:
        super().__init__(services, args)
        self.exact, self.turns = args.exact, args.turns
        self.correlation: float | None = None  # of the latest batch

    def fit(self, store: Store | None, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Train as ArCHer's critic does, unless exact values are used; tell how it judged the latest batch."""
        figures = {} if self.exact else super().fit(store, progress, seed=seed)
        return figures if self.correlation is None else {**figures, "critic_correlation": self.correlation}

    def judge(self, batch: Batch, turns: Sequence[tuple[int, int]]) -> list[UtteranceEstimate]:
        """Return Q and V of turns, given as (row, turn number)."""
        policy = self.services.policy
        estimates, truth = super().judge(batch, turns), []
        for each in estimates:
            here = (batch.turn[each.row] == each.turn) & batch.mask[each.row]
            words = policy.text(tuple(batch.ids[each.row][here].tolist()))
            q, v = exact_values(str(policy.tokenizer.decode(list(each.observation))), words, self.turns)
            truth.append(replace(each, quality=q, value=v))
        self.correlation = None if self.exact else correlation(estimates, truth)
        return truth if self.exact else estimates


def correlation(estimates: Sequence[UtteranceEstimate], truth: Sequence[UtteranceEstimate]) -> float | None:
    """Return the correlation of both qualities within observations; None if one of them does not vary there."""
    pairs: dict[tuple[int, ...], list[tuple[float, float]]] = defaultdict(list)
    for one, other in zip(estimates, truth, strict=True):
        pairs[one.observation].append((one.quality, other.quality))
    centred = np.concatenate([np.asarray(group) - np.mean(group, axis=0) for group in pairs.values()])
    if not centred.std(axis=0).all():
        return None
    return float(np.corrcoef(centred.T)[0, 1])


def recipe(args: Args) -> Recipe:
    """Return ArCHer's recipe with the checked critic."""
    return replace(archer.recipe(args), critic=partial(CheckedCritic, args=args))
