"""What a leaderboard entry plays: fixed by the task, so that nothing can be left out, picked or tried again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from lmgym.env.registry import build, find, specs
from lmgym.errors import InstanceError
from lmgym.types import Job

if TYPE_CHECKING:
    from lmgym.env.spec import TaskSpec

OFFICIAL_TESTS = ("test", "valid_seen", "valid_unseen")  # splits that are for testing whatever the spec says


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Every try that an entry owes, with its seed. The task's id, version included, is part of each seed."""

    spec: TaskSpec
    split: str
    instances: int  # all of the split
    tries: int  # of each instance

    def __len__(self) -> int:
        """Episodes."""
        return self.instances * self.tries

    @property
    def task(self) -> str:
        """Id."""
        return self.spec.id

    @property
    def max_turns(self) -> int:
        """Turns of the agent at most."""
        return self.spec.max_turns

    def names(self) -> Iterator[tuple[int, int]]:
        """Instance and try of each episode, in the order in which an entry holds them."""
        return ((index, attempt) for index in range(self.instances) for attempt in range(self.tries))

    def seed(self, index: int, attempt: int) -> int:
        """Seed of the environment's chance in one try; 31 bits."""
        name = f"{self.task} {self.split} {index} {attempt}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1

    def jobs(self) -> list[Job]:
        """All episodes, to be played."""
        return [self.job(index, attempt) for index, attempt in self.names()]

    def job(self, index: int, attempt: int) -> Job:
        """One episode, to be played."""
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
        """Splits of the task on which a policy may not have been trained."""
        return {self.split, *self.spec.held_out, *(name for name in self.spec.splits if name in OFFICIAL_TESTS)}


def protocol(task: str) -> Protocol:
    """The protocol of a task.

    Raises InstanceError where official data says how much there is, and is missing, and where a server plays the task.
    """
    spec = find(task)
    if spec.elsewhere:  # whose instances and scores are a server's word; it is not even called
        raise InstanceError(f"{spec.id} is played at a server and has no table: play the task itself")
    split = spec.standard.split or ("test" if "test" in spec.splits else list(spec.splits)[-1])
    size = spec.splits[split] or _counted(spec, split)
    return Protocol(spec=spec, split=split, instances=size, tries=spec.standard.tries)


def promise(task: str) -> str | None:
    """Digest of a task's golden episodes: what its id promises. None for a task of another version of lmgym."""
    spec = specs().get(task)
    if spec is None:
        return None
    content = files(spec.package).joinpath("golden.jsonl").read_text(encoding="utf-8")
    lines = [line for line in content.splitlines() if json.loads(line)["task"] == task]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def ranked() -> list[TaskSpec]:
    """Tasks that a board can have a table of: all but the pages and levels of others, and what a server plays."""
    return [spec for spec in specs().values() if not spec.part_of and not spec.elsewhere]


def trains_on(stated: str) -> tuple[TaskSpec, str]:
    """Task and split of a declaration such as "lmgym/Wordle-v0 train". Raises InstanceError for an unknown one."""
    name, _, split = stated.partition(" ")
    spec = find(name)
    if split not in spec.splits:
        raise InstanceError(f"{spec.id} has no split {split!r}; it has {', '.join(spec.splits)}")
    return spec, split


def _counted(spec: TaskSpec, split: str) -> int:
    env = build(spec, split=split)
    try:
        size: int = env.unwrapped.size()
    finally:
        env.close()
    if not size:
        raise InstanceError(f"{spec.id} {split}: its official data is not on this machine; see the task's README")
    return size
