"""Stores: keep episodes beyond the step that played them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lmgym.rollout import episodes as recording
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

    def turns(self, count: int, *, seed: Sequence[int]) -> list[tuple[Trajectory, int]]:
        """Draw `count` turns as (trajectory, turn number); an empty store returns none."""
        if not self.kept:
            return []
        return [self.kept[int(n)] for n in np.random.default_rng(list(seed)).integers(len(self.kept), size=count)]

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
