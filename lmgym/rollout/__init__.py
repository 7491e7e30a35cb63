"""The rollout engine: the only layer that sees both environments and policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmgym.policy.base import Policy
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.rollout.replay import replay
from lmgym.types import Job, Trajectory

__all__ = ["Engine", "Job", "Policy", "Trajectory", "fork", "play", "replay"]


def play(
    policy: Policy,
    task: str,
    *,
    split: str = "train",
    episodes: int = 1,
    attempts: int = 1,
    first: int = 0,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
) -> list[Trajectory]:
    """Play instances of a task as one batch and return the trajectories, by instance and attempt.

    Args:
        policy: plays every seat for which `engine.seats` names no other; `lmgym.policy.load.load_policy` makes one.
        task: id or folder, such as "lmgym/Wordle-v0" or "wordle".
        split: of the task.
        episodes: number of instances, from instance `first` on.
        attempts: episodes of each instance, which differ in the sampling only and share the `group` of a trajectory.
        first: index of the first instance.
        seed: of the environments' chance.
        options: of the task, as `gym.make` takes them.
        engine: context, concurrency, seats and other settings; its environments are kept if it is open.

    A broken backend is retried; an episode that breaks three times is left out.
    """
    jobs = [
        Job(
            task=task,
            split=split,
            options=options or {},
            index=index,
            seed=seed,
            attempt=attempt,
            id=f"{index}.{attempt}",
            group=str(index),
        )
        for index in range(first, first + episodes)
        for attempt in range(attempts)
    ]
    trajectories = (engine or Engine()).run(policy, jobs)
    return sorted(trajectories, key=lambda each: (each.index or 0, each.attempt))
