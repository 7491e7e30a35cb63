"""Where the episodes of a step come from: the policy, a demonstrator, or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lmgym.errors import RecipeError
from lmgym.policy.base import Policy
from lmgym.policy.local import LocalPolicy
from lmgym.policy.scripted import hinted
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.train.parts.tasks import order
from lmgym.types import Completion, Job, Trajectory


def played(engine: Engine, policy: Policy, jobs: Sequence[Job]) -> list[Trajectory]:
    """Play `jobs`; the episodes in their order, what a planner added behind them."""
    places = {job.id: place for place, job in enumerate(jobs)}
    found = list(engine.run(policy, jobs))
    return sorted(found, key=lambda t: (places.get(t.id, len(places)), t.id))


def demonstrated(engine: Engine, policy: LocalPolicy, jobs: Sequence[Job]) -> list[Trajectory]:
    """Episodes of the task's demonstrator, with the ids that `policy` gives their words."""
    return _encoded(policy, played(engine, hinted("demonstrator"), jobs))


def recorded(path: Path, policy: LocalPolicy, *, step: int, count: int, seed: int) -> list[Trajectory]:
    """The `count` episodes of a file that step `step` is due, with ids; all of it in a new order each time around."""
    found = _read(path)
    if not found:
        raise RecipeError(f"{path} holds no episodes to imitate")
    places = (divmod(place, len(found)) for place in range(step * count, (step + 1) * count))
    chosen = [(lap, found[order(seed, lap, len(found))[position]]) for lap, position in places]
    named = (replace(episode, id=f"{episode.id}@{lap}") for lap, episode in chosen)
    return _encoded(policy, (_unsaid(episode) for episode in named))


def _encoded(policy: LocalPolicy, found: Iterable[Trajectory]) -> list[Trajectory]:
    """The episodes that fit into the policy's context, with ids."""
    encoded = (policy.encode(trajectory) for trajectory in found)
    fitting = [trajectory for trajectory in encoded if 0 < _tokens(trajectory) <= policy.context]
    if not fitting:
        raise RecipeError(f"no episode to imitate fits into the {policy.context} tokens of the policy's context")
    return fitting


def _unsaid(trajectory: Trajectory) -> Trajectory:
    """The same words without the ids of whoever sampled them, which may be another model's."""
    turns = (turn for turn in trajectory.turns if turn.kind != "summary")
    given = (replace(turn, completion=Completion(text=turn.completion.text), kind="given") for turn in turns)
    return replace(trajectory, turns=tuple(given), final_ids=())


def _tokens(trajectory: Trajectory) -> int:
    return sum(len(turn.completion.prompt_ids) + len(turn.completion.ids) for turn in trajectory.turns)


@lru_cache(maxsize=1)
def _read(path: Path) -> tuple[Trajectory, ...]:
    try:
        return tuple(episodes.read(path))
    except OSError as error:
        raise RecipeError(f"cannot read the episodes of {path}: {error.strerror}") from error
