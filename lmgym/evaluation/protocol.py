"""Leaderboard protocols: the episodes of an entry, fixed by the task, so that none can be left out or replaced."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from lmgym.env.registry import build, find, specs
from lmgym.errors import InstanceError
from lmgym.types import Job

if TYPE_CHECKING:
    from lmgym.env.spec import TaskSpec

OFFICIAL_TESTS = ("test", "valid_seen", "valid_unseen")  # test splits in any task


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """All episodes of an entry with their seeds, which depend on the task's id and version."""

    spec: TaskSpec
    split: str
    instances: int  # all of the split
    tries: int  # of each instance

    def __len__(self) -> int:
        """Return the number of episodes."""
        return self.instances * self.tries

    @property
    def task(self) -> str:
        """Task id."""
        return self.spec.id

    @property
    def max_turns(self) -> int:
        """Turn limit of the agent."""
        return self.spec.max_turns

    def names(self) -> Iterator[tuple[int, int]]:
        """Yield instance and try of each episode, in the order of an entry."""
        return ((index, attempt) for index in range(self.instances) for attempt in range(self.tries))

    def seed(self, index: int, attempt: int) -> int:
        """Return the environment seed of one try; 31 bits."""
        name = f"{self.task} {self.split} {index} {attempt}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1

    def jobs(self) -> list[Job]:
        """Return the jobs of all episodes."""
        return [self.job(index, attempt) for index, attempt in self.names()]

    def job(self, index: int, attempt: int) -> Job:
        """Return the job of one episode."""
        return Job(
            task=self.task,
            split=self.split,
            index=index,
            seed=self.seed(index, attempt),
            attempt=attempt,
            id=f"standard-{self.split}-{index}-{attempt}",
            group=f"standard-{self.split}-{index}",
        )

    def held_out(self) -> set[str]:
        """Return the splits on which a policy must not have been trained."""
        return {self.split, *self.spec.held_out, *(name for name in self.spec.splits if name in OFFICIAL_TESTS)}


def protocol(task: str) -> Protocol:
    """Return the protocol of a task.

    Raises InstanceError if the split's size depends on official data that is missing, or if a server plays the task.
    """
    spec = find(task)
    if spec.remote:  # instances and scores are the server's claims
        raise InstanceError(f"{spec.id} is played at a server and has no leaderboard: evaluate the task itself")
    split = spec.standard.split or ("test" if "test" in spec.splits else list(spec.splits)[-1])
    size = spec.splits[split]
    if not size:  # of official data
        with closing(build(spec, split=split)) as env:
            size = env.unwrapped.size()
    if not size:
        raise InstanceError(f"{spec.id} {split}: its official data is not on this machine; see the task's README")
    return Protocol(spec=spec, split=split, instances=size, tries=spec.standard.tries)


def promise(task: str) -> str | None:
    """Return the digest of a task's golden episodes; None for a task unknown to this version of lmgym."""
    spec = specs().get(task)
    if spec is None:
        return None
    content = files(spec.package).joinpath("golden.jsonl").read_text(encoding="utf-8")
    lines = [line for line in content.splitlines() if json.loads(line)["task"] == task]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def ranked() -> list[TaskSpec]:
    """Return the tasks with a leaderboard: all but parts of other tasks and tasks played at a server."""
    return [spec for spec in specs().values() if not spec.part_of and not spec.remote]


def trains_on(declaration: str) -> tuple[TaskSpec, str]:
    """Return task and split of a declaration such as "lmgym/Wordle-v0 train"; InstanceError if unknown."""
    name, _, split = declaration.partition(" ")
    spec = find(name)
    if split not in spec.splits:
        raise InstanceError(f"unknown split {split!r} for {spec.id}; choose {', '.join(spec.splits)}")
    return spec, split
