"""What a leaderboard entry plays: fixed by the task, so that nothing can be left out, picked or tried again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from lmgym.env.registry import build, find
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.types import Job

INLINE, ELSEWHERE = 1_000, 100  # instances of a standard set that states no number, by where the task is played


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Every try that an entry owes, with its seed. The task's id, version included, is part of each seed."""

    task: str  # id
    split: str
    instances: int  # 0 to instances - 1 of the split
    tries: int  # of each instance
    max_turns: int  # of the agent

    def __len__(self) -> int:
        """Episodes."""
        return self.instances * self.tries

    def names(self) -> Iterator[tuple[int, int]]:
        """Instance and try of each episode, in the order in which an entry holds them."""
        return ((index, attempt) for index in range(self.instances) for attempt in range(self.tries))

    def seed(self, index: int, attempt: int) -> int:
        """Seed of the environment's chance in one try; 31 bits."""
        name = f"{self.task} {self.split} {index} {attempt}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1

    def jobs(self) -> list[Job]:
        """All episodes, to be played."""
        return [
            Job(
                task=self.task,
                split=self.split,
                index=index,
                seed=self.seed(index, attempt),
                attempt=attempt,
                id=f"standard-{self.split}-{index}-{attempt}",
                group=f"standard-{self.split}-{index}",
            )
            for index, attempt in self.names()
        ]


def protocol(task: str) -> Protocol:
    """The protocol of a task. Raises InstanceError where its official data, which says how much there is, is missing."""
    spec = find(task)
    split = split_of(spec)
    size = spec.splits[split] or _counted(spec, split)
    wanted = spec.standard.instances or (INLINE if spec.player == "inline" else ELSEWHERE)
    return Protocol(
        task=spec.id,
        split=split,
        instances=min(size, wanted),
        tries=spec.standard.tries,
        max_turns=spec.max_turns,
    )


def split_of(spec: TaskSpec) -> str:
    """The split that is played."""
    return spec.standard.split or ("test" if "test" in spec.splits else list(spec.splits)[-1])


def _counted(spec: TaskSpec, split: str) -> int:
    env = build(spec, split=split)
    try:
        size: int = env.unwrapped.size()
    finally:
        env.close()
    if not size:
        raise InstanceError(f"{spec.id} {split}: its official data is not on this machine; see the task's README")
    return size
