"""Planners used in training: they replace actions of the player, fork episodes and fill groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lmgym.rollout.episode_state import number_of
from lmgym.rollout.planner import CONTINUE, Continue, Fork, Group, Node, Planner, Replace, Stop
from lmgym.types import Job, Turn

STUMBLE = {"stumble": True}


@dataclass(frozen=True)
class Stumble(Planner):
    """Replaces the action with a wrong one in a share of the turns, as an untrained policy would play.

    The wrong action is a random admissible action, a splice of two, or the previous action repeated. The latter two are
    mostly invalid, so that the data shows how to recover from invalid actions. The turn's info has `stumble` set, for
    a filter to exclude it from the loss. Tasks that list no admissible actions, like most web tasks, are unaffected.
    """

    share: float
    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw from the seed and attempt of the episode and the number of the turn."""
        chance = np.random.default_rng([node.job.seed, node.job.attempt, len(node.turns)])
        actions = node.hints["admissible"]
        if chance.random() >= self.share or not actions:
            return None
        first, second = (actions[int(i)] for i in chance.integers(len(actions), size=2))
        wrong = [first, splice(first, second, chance), (node.turns[-1].action if node.turns else None) or first]
        return Replace(wrong[int(chance.integers(len(wrong)))], info=STUMBLE)


@dataclass(frozen=True)
class Wander(Planner):
    """Plays random admissible actions in a share of the turns from `first` up to `last`, without marking them.

    The resulting data is good in one part of each episode only; a learner has to combine parts of different episodes.
    Tasks that list no admissible actions are unaffected.
    """

    first: int
    last: int  # exclusive
    share: float = 1.0  # of these turns

    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw from the seed and attempt of the episode and the number of the turn."""
        number, actions = len(node.turns), node.hints["admissible"]
        if not self.first <= number < self.last or not actions:
            return None
        chance = np.random.default_rng([node.job.seed, node.job.attempt, number, 1])
        action = actions[int(chance.integers(len(actions)))]
        return Replace(action) if chance.random() < self.share else None


@dataclass(frozen=True)
class Patch(Planner):
    """Keeps every episode on the expert's path (Lu et al. 2025, UI-S1).

    The environment gets the demonstrator's action whatever the policy answers; the turn's info has it as `expert`. The
    episode is cut after an answer that differs from it once `patches` answers have differed before.
    """

    patches: int
    wants = frozenset({"demonstrator"})

    def before_action(self, node: Node, answer: str) -> Replace | None:
        """Return the demonstrator's action; the policy's own if there is none."""
        expert = node.hints.get("demonstrator")
        return None if expert is None else Replace(expert, info={"expert": expert})

    def after_step(self, node: Node) -> Continue | Stop | Fork:
        """Cut the episode once more answers than `patches` have differed."""
        return Stop("patches") if sum(not matches(turn) for turn in node.turns) > self.patches else CONTINUE


def matches(turn: Turn) -> bool:
    """Return True if an answer is the expert's action; answers without an expert count."""
    return str(turn.info.get("expert", turn.completion.text)).strip() == turn.completion.text.strip()


@dataclass(frozen=True)
class EntropyFork(Planner):
    """Samples uncertain answers once more, until a group has `paths` episodes (Dong et al. 2025, ARPO).

    After each answer but an episode's first, dH is the mean entropy (nats) of its first `tokens` tokens minus that of
    the first answer. With probability clip(base + weight dH, 0, 1) a fork shares the turns before the answer and
    samples it anew; each answer is forked at most once. Groups that end with fewer episodes get new tries.
    """

    paths: int  # episodes of a group, forks included
    roots: int  # tries of a group, as drawn
    base: float = 0.5
    weight: float = 0.2  # per nat
    tokens: int = 20

    def tries(self, group: Group) -> int:
        """Return how many of the group's episodes are no forks."""
        return self.roots

    def saves(self, node: Node) -> bool:
        """Save states while the group takes more forks."""
        episodes, tries = len(node.group.jobs), self.tries(node.group)
        return episodes < self.paths and episodes - node.group.roots < self.paths - tries

    def after_step(self, node: Node) -> Continue | Stop | Fork:
        """Fork before the latest answer, drawn from the episode's id and the number of the turn."""
        return self.at_end(node) or CONTINUE

    def at_end(self, node: Node) -> Fork | None:
        """Fork before the latest answer, also before the one that ended the episode."""
        number = len(node.turns) - 1
        if number <= len(node.job.prefix) or not self.saves(node):
            return None
        chance = np.random.default_rng([number_of(node.job.id), node.job.seed, number])
        return Fork(1, turn=number) if chance.random() < self.probability(node) else None

    def probability(self, node: Node) -> float:
        """Return the probability of a fork at the latest answer."""
        rise = first_entropy(node.turns[-1], self.tokens) - first_entropy(node.turns[0], self.tokens)
        return min(1.0, max(0.0, self.base + self.weight * rise))

    def after_group(self, group: Group) -> Iterable[Job]:
        """Return the tries that are missing."""
        return group.tries(self.paths - len(group.jobs))


@dataclass(frozen=True)
class BalancedFork(EntropyFork):
    """Divides a group into tries and forks by the entropies of its first try, and spreads the forks (AEPO).

    With H_root the entropy of the try's first answer and H_tool of its later ones, paths x sigmoid(beta (H_root - mean
    H_tool)) episodes are tries, at least `roots`; a group is drawn with one. A fork is 1 - c / in_a_row times as likely
    after c forks in a row on its path.
    """

    beta: float = 1.0  # per nat
    in_a_row: int = 3

    def tries(self, group: Group) -> int:
        """Return the number of tries; `paths` until the first try has ended."""
        ended = next((each for each in group.trajectories if each.id == group.jobs[0].id), None)
        if ended is None:
            return self.paths
        entropies = [first_entropy(turn, self.tokens) for turn in ended.turns]
        later = entropies[1:]
        fall = self.beta * (sum(later) / len(later) - entropies[0]) if later else 0.0
        return min(self.paths, max(self.roots, round(self.paths / (1.0 + math.exp(min(fall, 50.0))))))

    def probability(self, node: Node) -> float:
        """Return ARPO's probability, less after forks in a row."""
        forked, job, number = set[int](), node.job, len(node.turns) - 1
        ancestors = {each.id: each for each in node.group.jobs}
        limit = number  # later forks of an ancestor are not on this path
        while True:
            places = {len(each.prefix) for each in node.group.jobs if each.parent == job.id}
            forked |= {place for place in places if place <= limit}
            if job.parent is None:
                break
            limit = len(job.prefix)
            forked.add(limit)
            job = ancestors[job.parent]
        run = next(count for count in itertools.count() if number - 1 - count not in forked)
        return super().probability(node) * max(0.0, 1.0 - run / self.in_a_row)

    def after_group(self, group: Group) -> Iterable[Job]:
        """Return the tries that are missing: those of the division, then those that were not used for forks."""
        return group.tries((self.tries(group) if group.roots < self.tries(group) else self.paths) - len(group.jobs))


def first_entropy(turn: Turn, tokens: int) -> float:
    """Return the mean entropy in nats of the first `tokens` tokens of an answer; 0 for one that was not sampled."""
    entropy = turn.completion.entropy[:tokens]
    return sum(entropy) / max(1, len(entropy))


def splice(first: str, second: str, chance: np.random.Generator) -> str:
    """Return the first words of one action followed by the last words of another, at the length of the first."""
    head, tail = first.split(), second.split()
    cut = int(chance.integers(1, max(2, len(head))))
    return " ".join(head[:cut] + tail[-max(1, len(head) - cut) :])
