"""A process that replays the episodes of strangers: orders and lines on standard input, one JSON line back for each.

The first line is the order. Environments may write to standard output as they like: answers go elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO

from lmgym.board.entry import RecordedEpisode, as_record
from lmgym.board.replay import replay
from lmgym.errors import BackendError, LmgymError, SubmissionError
from lmgym.rollout.env_handle import EnvHandle, Setting


class Bench:
    """The environment of a worker; a new one after a fault."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.exact = bool(order["exact"])
        self.setting = Setting(task=order["task"], split=order["split"], options={}, seats=frozenset(order["seats"]))
        self.stage: EnvHandle | None = None

    def answer(self, line: bytes) -> dict[str, Any]:
        """What comes of an episode: its `outcome`, how it is `refused`, or what `broke`."""
        found = as_record(json.loads(line), RecordedEpisode, "episode")
        try:
            self.stage = self.stage or EnvHandle(self.setting)
            return {"outcome": replay(self.stage, found, exact=self.exact)}
        except SubmissionError as error:
            return {"refused": str(error)}
        except LmgymError as error:  # no fault of the record: a backend, a missing package, missing data
            self.close()
            return {"broke": str(error)}

    def close(self) -> None:
        """Close the environment, which may be broken."""
        stage, self.stage = self.stage, None
        try:
            if stage is not None:
                stage.close()
        except BackendError:
            return  # it is gone either way


def serve(lines: BinaryIO, answers: BinaryIO) -> None:
    """Answer lines until there are none."""
    bench = Bench(json.loads(lines.readline()))
    for line in lines:
        answers.write(json.dumps(bench.answer(line)).encode() + b"\n")
        answers.flush()
    bench.close()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
