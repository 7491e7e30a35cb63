"""One recorded episode played again in a fresh environment, without a policy: what it earns, or where it differs."""

from __future__ import annotations

import math

from lmgym.board.entry import RecordedEpisode, RecordedTurn, observation_digest
from lmgym.errors import SubmissionError
from lmgym.rollout.env_handle import EnvHandle, StepResult
from lmgym.types import FIRST_SEAT

NEAR = 1e-9  # rewards and scores are sums of the same numbers in the same order


def replay(stage: EnvHandle, episode: RecordedEpisode, *, exact: bool) -> dict[str, float]:
    """Play the actions of an episode and return what a verdict keeps of it.

    Raises SubmissionError at the first score or ending that is not as recorded; where `exact`, observation or reward.
    """
    name = f"instance {episode.index}, try {episode.attempt}"
    shown = stage.reset(episode.seed, {"index": episode.index}, {})
    purse = RewardLedger()
    purse.take(shown, None)
    invalid = 0
    for number, ply in enumerate(episode.turns):
        if ply.action is None:
            purse.turn(number, ply.seat, acts=False)
            continue
        _check_before(shown, ply, f"{name}, turn {number}", exact)
        shown = stage.step(ply.action)
        purse.turn(number, ply.seat)
        purse.take(shown, number)
        invalid += not shown.info.get("valid", True)
    shown = _ended(stage, shown, episode, name)
    if exact:
        _check_rewards(episode, purse, name)
    _check_ending(episode, shown, name, exact)
    acts = [ply for ply in episode.turns if ply.seat == FIRST_SEAT and ply.action is not None]
    return {
        "score": float(shown.info["score"]),
        "success": bool(shown.info["success"]),
        "reward": purse.total(episode),
        "turns": len(acts),
        "invalid": invalid,
        "tokens": sum(len(ply.ids) for ply in episode.turns if ply.seat == FIRST_SEAT),
    }


class RewardLedger:
    """Rewards by turn: what a seat earns by the turns of others falls to its last turn, or to its first one to come."""

    def __init__(self) -> None:
        self.rewards: dict[int, float] = {}  # by place among the turns
        self.latest: dict[str, int] = {}  # by seat
        self.income: dict[str, float] = {}

    def turn(self, number: int, seat: str, *, acts: bool = True) -> None:
        """A turn of `seat` begins; income of before the first falls to its first action."""
        self.latest[seat] = number
        self.rewards[number] = self.income.pop(seat, 0.0) if acts else 0.0

    def take(self, shown: StepResult, number: int | None) -> None:
        """Add what turn `number` brought to all seats."""
        if number is not None:
            self.rewards[number] += shown.reward
        for seat, amount in shown.earned.items():
            if seat in self.latest:
                self.rewards[self.latest[seat]] += amount
            else:
                self.income[seat] = self.income.get(seat, 0.0) + amount

    def total(self, episode: RecordedEpisode) -> float:
        """Sum of the agent's rewards."""
        return math.fsum(self.rewards[i] for i, ply in enumerate(episode.turns) if ply.seat == FIRST_SEAT)


def _check_before(shown: StepResult, ply: RecordedTurn, where: str, exact: bool) -> None:
    if shown.terminated or shown.truncated:
        raise SubmissionError(f"{where} comes after the episode was over")
    if shown.seat != ply.seat:
        raise SubmissionError(f"{where} is of seat {ply.seat!r}, but it was the turn of {shown.seat!r}")
    if exact and observation_digest(shown.observation) != ply.observation:
        raise SubmissionError(f"{where} was played to another observation than the environment shows")


def _ended(stage: EnvHandle, shown: StepResult, episode: RecordedEpisode, name: str) -> StepResult:
    """The end; an episode that the policy had no more room for is cut where it stood."""
    over = shown.terminated or shown.truncated
    if not over and episode.stop == "context":
        return stage.cut()
    if not over:
        raise SubmissionError(f"{name} stops after {len(episode.turns)} turns, before the environment ended it")
    stop = "done" if shown.terminated else "max_turns"
    if episode.stop != stop:
        raise SubmissionError(f"{name} says that {episode.stop!r} ended it; it was {stop!r}")
    return shown


def _check_rewards(episode: RecordedEpisode, purse: RewardLedger, name: str) -> None:
    for number, ply in enumerate(episode.turns):
        if not math.isclose(ply.reward, earned := purse.rewards[number], rel_tol=NEAR, abs_tol=NEAR):
            raise SubmissionError(f"{name}, turn {number} says it earned {ply.reward}; it earns {earned}")


def _check_ending(episode: RecordedEpisode, shown: StepResult, name: str, exact: bool) -> None:
    score, success = float(shown.info["score"]), bool(shown.info["success"])
    if not math.isclose(episode.score, score, rel_tol=NEAR, abs_tol=NEAR):
        raise SubmissionError(f"{name} says its score is {episode.score}; it is {score}")
    if episode.success != success:
        raise SubmissionError(f"{name} says success {episode.success}; with score {score} it is {success}")
    for word in ("terminated", "truncated"):
        if getattr(episode, word) != getattr(shown, word):
            raise SubmissionError(f"{name} says {word} {getattr(episode, word)}; it is {getattr(shown, word)}")
    if exact:
        final = observation_digest(shown.observation) if shown.seat == FIRST_SEAT or shown.terminated else None
        if episode.final != final:
            raise SubmissionError(f"{name} ends with another observation than the environment shows")
