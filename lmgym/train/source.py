"""Sources of the episodes of a step: the policy, a demonstrator, or a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lmgym.errors import LmgymError, RecipeError
from lmgym.policy.base import Policy
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.scripted import hinted
from lmgym.rollout import dataset
from lmgym.rollout.context import Context, Full, views
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import episode_id
from lmgym.train.interfaces import Filter
from lmgym.train.parts.tasks import order
from lmgym.types import Completion, Job, Trajectory


def played(engine: Engine, policy: Policy, jobs: Sequence[Job]) -> list[Trajectory]:
    """Play `jobs` and return the episodes in their order, followed by those that a planner added."""
    return in_order(engine.run(policy, jobs), jobs)


def in_order(episodes: Iterable[Trajectory], jobs: Sequence[Job]) -> list[Trajectory]:
    """Return episodes in the order of their jobs, followed by those that a planner added."""
    places = {job.id: place for place, job in enumerate(jobs)}
    return sorted(episodes, key=lambda t: (places.get(episode_id(t.id, t.seat), len(places)), t.id))


def demonstrated(engine: Engine, policy: LocalPolicy, jobs: Sequence[Job]) -> list[Trajectory]:
    """Return episodes of the task's demonstrator, encoded by `policy`."""
    return _encoded(policy, played(engine, hinted("demonstrator"), jobs), engine.context)


def recorded(
    path: Path,
    policy: LocalPolicy,
    *,
    step: int,
    count: int,
    seed: int,
    select: Filter | None = None,
    context: Context | None = None,
) -> list[Trajectory]:
    """Return the `count` encoded episodes of a data set for step `step`; each pass has a new order.

    `select` filters the data set first; episodes without turns are ignored. Texts are encoded as `context` presents
    them.
    """
    pool = selected(path, select)
    positions = (divmod(place, len(pool)) for place in range(step * count, (step + 1) * count))
    chosen = [(lap, pool[order(seed, lap, len(pool))[position]]) for lap, position in positions]
    named = (replace(episode, id=f"{episode.id}@{lap}") for lap, episode in chosen)
    return _encoded(policy, (_given(episode, policy) for episode in named), context or Full())


def selected(path: Path, select: Filter | None = None) -> tuple[Trajectory, ...]:
    """Return the episodes of a data set that `select` keeps; cached while the files and `select` stay the same.

    Raise RecipeError or InstanceError if the data set cannot be read or no episode is left.
    """
    state = _state(path)
    episodes = _selected(path, state, select)
    if not episodes:
        reason = "no episodes to imitate" if not _read(path, state) else "no episodes that the recipe's filter keeps"
        raise RecipeError(f"{path} holds {reason}")
    return episodes


def size(path: Path) -> int:
    """Return the number of episodes of a data set."""
    return len(_read(path, _state(path)))


def _encoded(policy: LocalPolicy, episodes: Iterable[Trajectory], context: Context) -> list[Trajectory]:
    """Return the encoded episodes that fit into the policy's context, each turn as the policy would have seen it."""
    encoded = (with_ids(trajectory, policy, context) for trajectory in episodes)
    fitting = [trajectory for trajectory in encoded if 0 < _longest(trajectory) <= policy.context]
    if not fitting:
        raise RecipeError(f"no episode to imitate fits into the {policy.context} tokens of the policy's context")
    return fitting


def with_ids(trajectory: Trajectory, policy: LocalPolicy, context: Context) -> Trajectory:
    """Return the trajectory encoded by `policy`, each turn as `context` presents it unless it was played with ids."""
    if all(turn.completion.ids for turn in trajectory.turns):
        return policy.encode(trajectory)  # as it was presented when it was played
    return policy.encode(trajectory, views(context, trajectory, policy.count))


def _given(trajectory: Trajectory, policy: LocalPolicy) -> Trajectory:
    """Return the episode to imitate, with its recorded ids if they come from the tokenizer of `policy`."""
    if trajectory.tags.get("tokens") == policy.tokens and all(turn.completion.ids for turn in trajectory.turns):
        return replace(trajectory, turns=tuple(replace(turn, kind="given") for turn in trajectory.turns))
    turns = (turn for turn in trajectory.turns if turn.kind != "summary")
    given = (replace(turn, completion=Completion(text=turn.completion.text), kind="given") for turn in turns)
    return replace(trajectory, turns=tuple(given), final_ids=(), final_pictures=())


def _longest(trajectory: Trajectory) -> int:
    """Return the number of tokens of the longest segment."""
    longest = length = 0
    for turn in trajectory.turns:
        tokens = len(turn.completion.prompt_ids) + len(turn.completion.ids)
        length = tokens if turn.fresh else length + tokens
        longest = max(longest, length)
    return longest


def _state(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of the files of a data set, for the cache."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((file.name, (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)
    except OSError as error:
        raise RecipeError(f"cannot read the episodes of {path}: {error.strerror}") from error


@lru_cache(maxsize=1)
def _read(path: Path, state: object) -> tuple[Trajectory, ...]:
    try:
        return tuple(episode for episode in dataset.read(path) if episode.turns)
    except LmgymError:
        raise
    except (OSError, ValueError, KeyError) as error:  # also for undecodable bytes and foreign parquet files
        raise RecipeError(f"cannot read the episodes of {path}: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=1)
def _selected(path: Path, state: object, select: Filter | None) -> tuple[Trajectory, ...]:
    episodes = _read(path, state)
    dropped = select(episodes).drop if select and episodes else frozenset()
    return tuple(episode for episode in episodes if episode.id not in dropped)
