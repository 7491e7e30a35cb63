"""Print digests of episodes: python -m tests.tasks.fresh_process TASK alone|beside INSTANCES."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from contextlib import closing
from typing import Any

from lmgym.env.golden import Trace, at_random, turns
from lmgym.env.registry import build, find

TURNS = 5


def digest(trace: Trace) -> str:
    """Return a digest of all that an episode told."""
    told: list[Any] = [trace.start, trace.actions, trace.rewards, trace.infos, trace.terminated, trace.truncated]
    told.append([observation["text"] for observation in trace.observations])
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def episode(env: Any, index: int) -> Any:
    """Return the turns of a random player on an instance."""
    return turns(env, lambda task: itertools.islice(at_random(task), TURNS), index=index, seed=index)


def main(task: str, company: str, instances: int) -> None:
    """Play the first instances of the last split that has enough of them, else of the largest."""
    splits = find(task).splits
    split = next((name for name in reversed(splits) if splits[name] >= instances), max(splits, key=splits.__getitem__))
    with closing(build(task, split=split)) as env, closing(build(task, split=split)) as other:
        digests = []
        size = min(instances, env.unwrapped.size())
        for index in range(size):
            second = episode(other, size - 1 - index) if company == "beside" else ()
            (trace, _), *_ = itertools.zip_longest(episode(env, index), second)  # it grows until both are over
            digests.append(digest(trace))
    sys.stdout.write(f"\n{json.dumps(digests)}\n")  # a line of its own: some libraries print while they generate


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
