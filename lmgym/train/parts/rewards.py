"""Rewards: changes to the rewards of the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from lmgym.rollout.episode_state import number_of
from lmgym.train.interfaces import Reward
from lmgym.train.parts.planners import matches
from lmgym.train.schedule import Schedule, StageProgress
from lmgym.train.services import Services, view
from lmgym.types import Trajectory, Turn

CRITICAL = """{episode}

The episode above was won. The numbered lines are answers of one player, the rest is what the player read.
Which answers were critical for it? Give their numbers."""
NUMBER = re.compile(r"\d+")
CALL = re.compile(r"\w+(?=\()|^\w+")  # the name of a call, or the first word of a command


def each(change: Callable[[Trajectory], Trajectory]) -> Reward:
    """Return the reward that changes every episode on its own."""

    def changed(trajectories: Sequence[Trajectory], services: Services, progress: StageProgress) -> list[Trajectory]:
        return [change(trajectory) for trajectory in trajectories]

    return changed


def with_rewards(trajectory: Trajectory, rewards: Sequence[float], *, name: str) -> Trajectory:
    """Return the trajectory with these rewards of its turns (one each), as the only term `name`."""
    pairs = zip(trajectory.turns, rewards, strict=True)
    turns = (replace(turn, reward=reward, terms={name: reward}) for turn, reward in pairs)
    return replace(trajectory, turns=tuple(turns))


def invalid_cost(trajectory: Trajectory, *, cost: float) -> Trajectory:
    """Subtract `cost` from the reward of every turn with an invalid action."""

    def penalized(turn: Turn) -> Turn:
        return replace(turn, reward=turn.reward - cost, terms={**turn.terms, "invalid": -cost})

    turns = (turn if turn.info.get("valid", True) else penalized(turn) for turn in trajectory.turns)
    return replace(trajectory, turns=tuple(turns))


def turn_cost(trajectory: Trajectory, *, cost: float) -> Trajectory:
    """Subtract `cost` from the reward of every turn."""
    turns = (replace(t, reward=t.reward - cost, terms={**t.terms, "turn": -cost}) for t in trajectory.turns)
    return replace(trajectory, turns=tuple(turns))


def limit_ends(trajectory: Trajectory) -> Trajectory:
    """Mark episodes that reached a turn limit, the task's or training's, as terminated: no further reward is expected.

    Returns then count what was played, as those of group estimators do. A policy that sees the turns left knows the end
    (Pardo et al. 2018); otherwise values average over it. Episodes with a full context stay truncated.
    """
    if not trajectory.truncated or trajectory.stop not in ("max_turns", "budget"):
        return trajectory
    return replace(trajectory, truncated=False, terminated=True)


def information_gain(
    trajectories: Sequence[Trajectory], services: Services, progress: StageProgress, *, prefix: str
) -> list[Trajectory]:
    """Return the episodes with the gain of each turn as its reward; the last turn has the episode's score instead.

    The gain is what the turn adds to the probability of `info["answer"]`, the geometric mean over its tokens, that the
    policy gives after `prefix` (IGPO: Wang et al. 2025). A turn that writes the answer, or a part of it between bars,
    gains nothing. The last reward is the score and not the return: where each turn costs one, normalising all turns
    together would pay an episode for its length.
    """
    words = services.policy.template.vocabulary.words
    rows = [([*view(t, n), *words(prefix)], words(t.info["answer"])) for t in trajectories for n in range(len(t.turns))]
    rows = [(prompt[-(services.policy.context - len(answer)) :], answer) for prompt, answer in rows]
    likely = [float(logprobs.double().mean().exp()) for logprobs in services.likelihoods(rows)]
    gained = []
    for trajectory in trajectories:
        own, likely = likely[: len(trajectory.turns)], likely[len(trajectory.turns) :]
        parts = "|".join(re.escape(part.strip().lower()) for part in trajectory.info["answer"].split("|"))
        words_of_answer = re.compile(rf"(?<!\w)({parts})(?!\w)")  # whole words: an option can be a single letter
        written = [words_of_answer.search(turn.completion.text.lower()) is not None for turn in trajectory.turns]
        gains = [0.0 if written[n] else own[n + 1] - own[n] for n in range(len(own) - 1)]
        gained.append(with_rewards(trajectory, [*gains, trajectory.score][: len(own)], name="gain"))
    return gained


def action_bonus(
    trajectories: Sequence[Trajectory], services: Services, progress: StageProgress, *, amount: float, weight: Schedule
) -> list[Trajectory]:
    """Return the episodes with `amount` for each valid action, 1 at most, times `weight`, in the last turn."""
    rewarded = []
    for trajectory in trajectories:
        valid = sum(turn.info.get("valid", True) for turn in trajectory.turns)
        extra = weight(progress) * min(1.0, amount * valid)
        last = [replace(t, reward=t.reward + extra, terms={**t.terms, "actions": extra}) for t in trajectory.turns[-1:]]
        rewarded.append(replace(trajectory, turns=(*trajectory.turns[:-1], *last)))
    return rewarded


def improved(trajectory: Trajectory, *, first: float, alpha: float) -> Trajectory:
    """Return two attempts with the rewards `first` r(y1) and r(y2) + `alpha` (r(y2) - r(y1)) (SCoRe).

    The bonus belongs to the second attempt alone. An episode that was cut after the first stays as it is.
    """
    if len(trajectory.turns) != 2:
        return trajectory
    one, two = (turn.reward for turn in trajectory.turns)
    return with_rewards(trajectory, (first * one, two + alpha * (two - one)), name="attempt")


def step_reward(turn: Turn) -> float:
    """Return 0.1 format + 0.9 action of an answer beside the expert's, as `Patch` recorded it (UI-S1)."""
    own, expert = (CALL.search(text.strip()) for text in (turn.completion.text, str(turn.info.get("expert", ""))))
    kind = 0.5 if own and expert and own[0] == expert[0] else 0.1
    return (0.1 + 0.9 * (1.0 if matches(turn) else kind)) if own else 0.0


def to_go_by_expert(trajectory: Trajectory, *, gamma: float) -> Trajectory:
    """Return the trajectory with the sum of step rewards from each turn to the next mismatch as its rewards."""
    later, returns = 0.0, list[float]()
    for turn in reversed(trajectory.turns):
        later = step_reward(turn) + (gamma * later if matches(turn) else 0.0)
        returns.append(later)
    return with_rewards(trajectory, returns[::-1], name="to_go")


def critical_turns(
    trajectories: Sequence[Trajectory],
    services: Services,
    progress: StageProgress,
    *,
    seat: str,
    judge: str,
    chosen: Literal["judged", "random"] = "judged",
) -> list[Trajectory]:
    """Return the episodes, those of `seat` with 1 for a critical turn, a tenth of the return for the last, else 0.

    The policy `judge` reads each won episode with numbered answers and names the critical ones (EPO: Liu et al. 2025).
    random: as many turns are drawn instead.
    """
    won = [t for t in trajectories if t.seat == seat and t.reward > 0]
    answers = services.judge([CRITICAL.format(episode=numbered(t)) for t in won], model=judge)
    named = {t.id: {int(n) for n in NUMBER.findall(answer)} for t, answer in zip(won, answers, strict=True)}
    rewarded = []
    for trajectory in trajectories:
        turns = range(1, len(trajectory.turns) + 1)
        critical = named.get(trajectory.id, set()) & {*turns}
        if chosen == "random":
            chance = np.random.default_rng([number_of(trajectory.id), trajectory.seed])
            critical = set(chance.choice(turns, len(critical), replace=False).tolist()) if critical else set()
        rewards = [*(float(n in critical) for n in turns[:-1]), trajectory.reward / 10][: len(turns)]
        own = trajectory.seat == seat
        rewarded.append(with_rewards(trajectory, rewards, name="critical") if own else trajectory)
    return rewarded


def numbered(trajectory: Trajectory) -> str:
    """Return the observations and numbered answers of an episode as text; each answer is on one line."""
    lines = [
        f"{turn.observation.text}\n[{number}] {' '.join(turn.completion.text.split())}"
        for number, turn in enumerate(trajectory.turns, 1)
    ]
    return "\n".join([*lines, trajectory.final.text if trajectory.final else ""])
