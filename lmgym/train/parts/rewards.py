"""Rewards: changes to the rewards of the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from lmgym.train.interfaces import Reward
from lmgym.train.parts.planners import matches
from lmgym.train.schedule import Schedule, StageProgress
from lmgym.train.services import Services, view
from lmgym.types import Trajectory, Turn

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


def limit_ends(trajectory: Trajectory) -> Trajectory:
    """Mark episodes that reached the task's turn limit as terminated, so that a critic expects no further reward.

    Justified because the transcript states the turns left and evaluations end there too (Pardo et al. 2018). Episodes
    truncated by a budget or a full context stay truncated.
    """
    if not trajectory.truncated or trajectory.stop != "max_turns":
        return trajectory
    return replace(trajectory, truncated=False, terminated=True)


def information_gain(
    trajectories: Sequence[Trajectory], services: Services, progress: StageProgress, *, prefix: str
) -> list[Trajectory]:
    """Return the episodes with the gain of each turn as its reward; the last turn has the whole return instead.

    The gain is what the turn adds to the probability of `info["answer"]`, the geometric mean over its tokens, that the
    policy gives after `prefix` (IGPO: Wang et al. 2025). A turn that writes the answer, or a part of it between bars,
    gains nothing.
    """
    words = services.policy.template.vocabulary.words
    rows = [([*view(t, n), *words(prefix)], words(t.info["answer"])) for t in trajectories for n in range(len(t.turns))]
    rows = [(prompt[-(services.policy.context - len(answer)) :], answer) for prompt, answer in rows]
    likely = [float(logprobs.double().mean().exp()) for logprobs in services.likelihoods(rows)]
    gained = []
    for trajectory in trajectories:
        own, likely = likely[: len(trajectory.turns)], likely[len(trajectory.turns) :]
        parts = [part.strip().lower() for part in trajectory.info["answer"].split("|")]
        written = [any(part in turn.completion.text.lower() for part in parts) for turn in trajectory.turns]
        gains = [0.0 if written[n] else own[n + 1] - own[n] for n in range(len(own) - 1)]
        gained.append(with_rewards(trajectory, [*gains, trajectory.reward][: len(own)], name="gain"))
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
