"""Stores: keep episodes beyond the step that played them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median, pstdev
from typing import Any

import numpy as np

from lmgym.rollout import episodes as recording
from lmgym.train.parts.filters import groups, is_void
from lmgym.train.services import Services
from lmgym.types import Trajectory


class Replay:
    """A replay buffer of the newest turns; `draw` samples fresh answers at turns drawn with replacement."""

    def __init__(self, capacity: int, *, answers: int, tries: int = 1) -> None:
        """Keep `capacity` turns; a step learns from `answers` fresh answers, `tries` of them at each drawn turn."""
        self.answers, self.tries = answers, tries
        self.kept: deque[tuple[Trajectory, int]] = deque(maxlen=capacity)  # oldest first
        self._lines: dict[str, str] = {}  # by id of the trajectory, for checkpoints

    def __len__(self) -> int:
        """Return the number of turns."""
        return len(self.kept)

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Add the turns of episodes, except those that a fork shares with its parent."""
        for episode in map(lean, episodes):
            owned = range(episode.forked_at, len(episode.turns))
            self.kept.extend((episode, number) for number in owned if episode.turns[number].completion.ids)

    def turns(self, count: int, *, seed: Sequence[int], whole: bool = False) -> list[tuple[Trajectory, int]]:
        """Draw `count` turns as (trajectory, turn number); an empty store returns none.

        With `whole`, draw episodes with all of their turns that are kept, until there are `count` turns or more.
        """
        if not self.kept:
            return []
        chance = np.random.default_rng(list(seed))
        if not whole:
            return [self.kept[int(n)] for n in chance.integers(len(self.kept), size=count)]
        episodes: dict[str, list[tuple[Trajectory, int]]] = {}
        for turn in self.kept:
            episodes.setdefault(turn[0].id, []).append(turn)
        choices = list(episodes.values())
        drawn: list[tuple[Trajectory, int]] = []
        while len(drawn) < count:
            drawn += choices[int(chance.integers(len(choices)))]
        return drawn

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """Sample fresh answers at drawn turns and return them as forks, whose last turn is trained."""
        drawn = self.turns(-(-self.answers // self.tries), seed=[*seed, 0])
        drawn = [turn for turn in drawn for _ in range(self.tries)][: self.answers]
        forks = services.sample(drawn, noise=[*seed, 0])
        return [each for each in forks if each.turns[-1].completion.ids]

    def state_dict(self) -> dict[str, Any]:
        """Return the trajectories as JSON and the turns that are kept of them."""
        trajectories = {trajectory.id: trajectory for trajectory, _ in self.kept}
        self._lines = {name: self._lines.get(name) or recording.dump(each) for name, each in trajectories.items()}
        return {
            "trajectories": list(self._lines.values()),
            "turns": [(trajectory.id, number) for trajectory, number in self.kept],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        trajectories = {each.id: each for each in map(recording.parse, state["trajectories"])}
        self.kept.clear()
        self.kept.extend((trajectories[name], number) for name, number in state["turns"])


def lean(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory without fields that no learner reads: sampled log-probs and entropies, infos, options."""
    turns = (
        replace(turn, completion=replace(turn.completion, logprobs=(), entropy=(), usage={}), terms={}, info={})
        for turn in trajectory.turns
    )
    return replace(trajectory, turns=tuple(turns), info={}, options={}, tags={})


class Successes:
    """Keeps the newest successes of each instance; `draw` puts one in the place of a try of a group that failed.

    Lu et al. 2025, ARPO for GUI agents: a group has failed if the returns of its tries deviate by less than `flat` and
    their mean is below `low`. The first try gives way. Without a stored success the group stays as it is, or is left
    out with `drop` (DART).
    """

    def __init__(
        self, capacity: int = 8, *, above: float = 0.1, flat: float = 0.05, low: float = 0.2, drop: bool = False
    ) -> None:
        """Keep the newest `capacity` episodes of each instance with a return over `above`."""
        self.capacity, self.above, self.flat, self.low, self.drop = capacity, above, flat, low, drop
        self.kept: dict[str, list[Trajectory]] = {}  # oldest first, by instance
        self.latest: list[Trajectory] = []  # of the step

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Add the successes of a step."""
        self.latest = list(episodes)
        for episode in episodes:
            if episode.reward > self.above:
                kept = self.kept.setdefault(_instance(episode), [])
                self.kept[_instance(episode)] = [*kept, episode][-self.capacity :]

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """Return the episodes of the step, with a stored success in each group that failed."""
        drawn: list[Trajectory] = []
        for members in groups(self.latest).values():
            returns = [episode.reward for episode in members]
            failed = pstdev(returns) < self.flat and fmean(returns) < self.low
            kept = self.kept.get(_instance(members[0]), []) if failed else []
            if kept:
                newest, group = kept[-1], members[0].group
                members = [replace(newest, id=f"{newest.id}>{group}", group=group), *members[1:]]
            drawn += [] if failed and self.drop and not kept else members
        return drawn

    def state_dict(self) -> dict[str, Any]:
        """Return the successes as JSON."""
        return {"kept": {name: [recording.dump(each) for each in kept] for name, kept in self.kept.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.kept = {name: [recording.parse(line) for line in kept] for name, kept in state["kept"].items()}


def _instance(trajectory: Trajectory) -> str:
    return f"{trajectory.split}/{trajectory.index}" if trajectory.instance is None else repr(trajectory.instance)


class SelfImitation:
    """Keeps episodes that were better than their group; `draw` returns some that are still better than usual.

    Qin et al. 2025, SPEAR: an episode leaves the store after `age` steps. When drawn, the median of the latest `window`
    mean returns of groups is taken from its return, so that it counts less as the policy improves; episodes below the
    median stay out. Those of the present step are drawn from the next one on.
    """

    def __init__(
        self, capacity: int = 2048, *, age: int = 10, count: int = 32, window: int = 10_240, void: bool = True
    ) -> None:
        """Keep at most `capacity` episodes, without `void` only those whose actions are all valid; draw `count`."""
        self.age, self.count, self.void = age, count, void
        self.kept: deque[tuple[int, Trajectory]] = deque(maxlen=capacity)  # (step that played it, episode)
        self.means: deque[float] = deque(maxlen=window)
        self.step = 0

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Add the episodes of a step that are better than the mean of their group, and forget those too old."""
        self.step += 1
        fresh = [(born, episode) for born, episode in self.kept if self.step - born <= self.age]
        self.kept.clear()
        self.kept.extend(fresh)
        for members in groups(episodes).values():
            mean = fmean(episode.reward for episode in members)
            self.means.append(mean)
            better = [episode for episode in members if episode.reward > mean]
            self.kept.extend((self.step, episode) for episode in better if self.void or not is_void(episode))

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """Return at most `count` episodes of earlier steps, whose return is their advantage over the median."""
        usual = median(self.means) if self.means else 0.0
        older = [each for born, each in self.kept if born < self.step and each.reward >= usual]
        chosen = np.random.default_rng([*seed, 3]).permutation(len(older))[: self.count]
        drawn = []
        for episode in (older[int(number)] for number in sorted(chosen)):
            *before, last = episode.turns
            drawn.append(replace(episode, turns=(*before, replace(last, reward=last.reward - usual))))
        return drawn

    def state_dict(self) -> dict[str, Any]:
        """Return the episodes as JSON, their steps and the mean returns."""
        kept = [(born, recording.dump(episode)) for born, episode in self.kept]
        return {"kept": kept, "means": list(self.means), "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.kept.clear()
        self.kept.extend((born, recording.parse(line)) for born, line in state["kept"])
        self.means.clear()
        self.means.extend(state["means"])
        self.step = state["step"]
