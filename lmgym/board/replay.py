"""Replay of recorded episodes without a policy, and the process that replays the episodes of strangers.

`python -m lmgym.board.replay` reads its order and then one episode per line from standard input, and answers each
with one JSON line. Environments may print to standard output, so the answers go to a copy of it.
"""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from lmgym.board.entry import RecordedEpisode, RecordedTurn, as_record, observation_digest
from lmgym.errors import BackendError, LmgymError, SubmissionError
from lmgym.rollout.env_handle import EnvHandle, Setting, StepResult
from lmgym.types import FIRST_SEAT

NEAR = 1e-9  # rewards and scores are sums of the same numbers in the same order


def replay(env: EnvHandle, episode: RecordedEpisode, *, exact: bool) -> dict[str, Any]:
    """Play an episode's actions and return its outcome, as a verdict keeps it.

    Raises SubmissionError at the first score or ending that differs from the record; if `exact`, also at the first
    observation or reward.
    """
    result = env.reset(episode.seed, {"index": episode.index}, {})
    ledger = RewardLedger()
    ledger.add(result, None)
    invalid = 0
    for number, turn in enumerate(episode.turns):
        if turn.action is None:
            ledger.begin_turn(number, turn.seat, acts=False)
            continue
        _check_turn(result, turn, f"{episode.label}, turn {number}", exact)
        result = env.step(turn.action)
        ledger.begin_turn(number, turn.seat)
        ledger.add(result, number)
        invalid += turn.seat == FIRST_SEAT and not result.info.get("valid", True)
    if not (result.terminated or result.truncated):
        if episode.stop != "context":
            raise SubmissionError(
                f"{episode.label} stops after {len(episode.turns)} turns, before the environment ended it"
            )
        result = env.cut()
    elif episode.stop != (stop := "done" if result.terminated else "max_turns"):
        raise SubmissionError(f"{episode.label} states stop {episode.stop!r}; replay gives {stop!r}")
    if exact:
        for number, turn in enumerate(episode.turns):
            if not math.isclose(turn.reward, earned := ledger.rewards[number], rel_tol=NEAR, abs_tol=NEAR):
                raise SubmissionError(
                    f"{episode.label}, turn {number} states reward {turn.reward}; replay gives {earned}"
                )
    score, success = float(result.info["score"]), bool(result.info["success"])
    if not math.isclose(episode.score, score, rel_tol=NEAR, abs_tol=NEAR):
        raise SubmissionError(f"{episode.label} states score {episode.score}; replay gives {score}")
    if episode.success != success:
        raise SubmissionError(
            f"{episode.label} states success {episode.success}; with score {score} replay gives {success}"
        )
    for name in ("terminated", "truncated"):
        if (stated := getattr(episode, name)) != (replayed := getattr(result, name)):
            raise SubmissionError(f"{episode.label} states {name} {stated}; replay gives {replayed}")
    figures = dict(result.info.get("figures", {}))
    for name, stated in episode.figures.items():
        if name not in figures or not math.isclose(stated, figures[name], rel_tol=NEAR, abs_tol=NEAR):
            raise SubmissionError(f"{episode.label} states {name} {stated}; replay gives {figures.get(name, 'none')}")
    final = observation_digest(result.observation) if result.seat == FIRST_SEAT or result.terminated else None
    if exact and episode.final != final:
        raise SubmissionError(f"{episode.label} ends with another observation than the environment gives")
    agent = [(number, turn) for number, turn in enumerate(episode.turns) if turn.seat == FIRST_SEAT]
    return {
        "score": score,
        "success": success,
        "reward": math.fsum(ledger.rewards[number] for number, _ in agent),
        "turns": sum(turn.action is not None for _, turn in agent),
        "invalid": invalid,
        "tokens": sum(len(turn.ids) for _, turn in agent),
        "figures": figures,
    }


class RewardLedger:
    """Rewards by turn. What a seat earns by the turns of others belongs to its latest turn, or else to its first."""

    def __init__(self) -> None:
        self.rewards: dict[int, float] = {}  # by turn number
        self._latest: dict[str, int] = {}  # turn number by seat
        self._income: dict[str, float] = {}  # by seat, before its first turn

    def begin_turn(self, number: int, seat: str, *, acts: bool = True) -> None:
        """Open the turn of a seat; the first one that acts receives the income from before it."""
        self._latest[seat] = number
        self.rewards[number] = self._income.pop(seat, 0.0) if acts else 0.0

    def add(self, result: StepResult, number: int | None) -> None:
        """Add what turn `number` brought to all seats."""
        if number is not None:
            self.rewards[number] += result.reward
        for seat, amount in result.earned.items():
            if seat in self._latest:
                self.rewards[self._latest[seat]] += amount
            else:
                self._income[seat] = self._income.get(seat, 0.0) + amount


def _check_turn(result: StepResult, turn: RecordedTurn, where: str, exact: bool) -> None:
    if result.terminated or result.truncated:
        raise SubmissionError(f"{where} comes after the end of the episode")
    if result.seat != turn.seat:
        raise SubmissionError(f"{where} is of seat {turn.seat!r}, but it was the turn of {result.seat!r}")
    if exact and observation_digest(result.observation) != turn.observation:
        raise SubmissionError(f"{where} answers another observation than the environment gives")


class Replayer:
    """An environment that replays one episode after the other, and is made again after a fault."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.exact = bool(order["exact"])
        self.setting = Setting(task=order["task"], split=order["split"], options={}, seats=frozenset(order["seats"]))
        self.env: EnvHandle | None = None

    def answer(self, line: bytes) -> dict[str, Any]:
        """Replay the episode of a line; return its `outcome`, why it is `refused`, or which fault `broke` replay."""
        episode = as_record(json.loads(line), RecordedEpisode, "episode")
        try:
            self.env = self.env or EnvHandle(self.setting)
            return {"outcome": replay(self.env, episode, exact=self.exact)}
        except SubmissionError as error:
            return {"refused": str(error)}
        except LmgymError as error:  # not the record's fault: a backend, a missing package, missing data
            self.close()
            return {"broke": str(error)}

    def close(self) -> None:
        """Close the environment, even a broken one."""
        env, self.env = self.env, None
        if env is not None:
            with suppress(BackendError):
                env.close()


def serve(lines: BinaryIO, answers: BinaryIO) -> None:
    """Answer lines until the input ends."""
    replayer = Replayer(json.loads(lines.readline()))
    for line in lines:
        answers.write(json.dumps(replayer.answer(line)).encode() + b"\n")
        answers.flush()
    replayer.close()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
