"""Stores: what is kept of episodes beyond their step."""

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
    """The newest turns that were played, drawn with replacement, for answers sampled anew in their stead."""

    def __init__(self, capacity: int, *, answers: int, tries: int = 1) -> None:
        """Keeps `capacity` turns; a step learns from `answers` answers, `tries` of them in place of the same turn."""
        self.answers, self.tries = answers, tries
        self.kept: deque[tuple[Trajectory, int]] = deque(maxlen=capacity)  # oldest first
        self._lines: dict[str, str] = {}  # by id of the trajectory, for checkpoints

    def __len__(self) -> int:
        """Turns."""
        return len(self.kept)

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Take in the turns of episodes, those that a fork shares left out."""
        for episode in map(lean, episodes):
            owned = range(episode.forked_at, len(episode.turns))
            self.kept.extend((episode, number) for number in owned if episode.turns[number].completion.ids)

    def turns(self, count: int, *, seed: Sequence[int]) -> list[tuple[Trajectory, int]]:
        """Draw `count` turns, each as its trajectory and its number; none where nothing is kept."""
        if not self.kept:
            return []
        return [self.kept[int(n)] for n in np.random.default_rng(list(seed)).integers(len(self.kept), size=count)]

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """What the policy says in place of drawn turns; these are forks, of which the last turn is trained."""
        drawn = self.turns(-(-self.answers // self.tries), seed=[*seed, 0])
        drawn = [turn for turn in drawn for _ in range(self.tries)][: self.answers]
        said = services.sample(drawn, noise=[*seed, 0])
        return [each for each in said if each.turns[-1].completion.ids]

    def state_dict(self) -> dict[str, Any]:
        """The trajectories as JSON, and which of their turns are kept."""
        found = {trajectory.id: trajectory for trajectory, _ in self.kept}
        self._lines = {name: self._lines.get(name) or recording.dump(each) for name, each in found.items()}
        return {
            "trajectories": list(self._lines.values()),
            "turns": [(trajectory.id, number) for trajectory, number in self.kept],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        found = {each.id: each for each in map(recording.parse, state["trajectories"])}
        self.kept.clear()
        self.kept.extend((found[name], number) for name, number in state["turns"])


def lean(trajectory: Trajectory) -> Trajectory:
    """The trajectory without what nobody learns from: log-probs and entropies as sampled, infos, options."""
    turns = (
        replace(turn, completion=replace(turn.completion, logprobs=(), entropy=(), usage={}), terms={}, info={})
        for turn in trajectory.turns
    )
    return replace(trajectory, turns=tuple(turns), info={}, options={}, tags={})
