"""Where the episodes of a step come from: the policy, a demonstrator, or a file."""

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
from lmgym.train.interfaces import Filter
from lmgym.train.parts.tasks import order
from lmgym.types import Completion, Job, Trajectory


def played(engine: Engine, policy: Policy, jobs: Sequence[Job]) -> list[Trajectory]:
    """Play `jobs`; the episodes in their order, what a planner added behind them."""
    return in_order(engine.run(policy, jobs), jobs)


def in_order(found: Iterable[Trajectory], jobs: Sequence[Job]) -> list[Trajectory]:
    """Episodes in the order of their jobs; what a planner added behind them."""
    places = {job.id: place for place, job in enumerate(jobs)}
    return sorted(found, key=lambda t: (places.get(t.id, len(places)), t.id))


def demonstrated(engine: Engine, policy: LocalPolicy, jobs: Sequence[Job]) -> list[Trajectory]:
    """Episodes of the task's demonstrator, with the ids that `policy` gives their words."""
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
    """The `count` episodes of a data set that step `step` is due, with ids; all of it in a new order each time around.

    `select` drops some of the data set before; an episode without a turn is none. Words get their ids as `context`
    shows them.
    """
    found = selected(path, select)
    places = (divmod(place, len(found)) for place in range(step * count, (step + 1) * count))
    chosen = [(lap, found[order(seed, lap, len(found))[position]]) for lap, position in places]
    named = (replace(episode, id=f"{episode.id}@{lap}") for lap, episode in chosen)
    return _encoded(policy, (_given(episode, policy) for episode in named), context or Full())


def selected(path: Path, select: Filter | None = None) -> tuple[Trajectory, ...]:
    """The episodes of a data set that `select` keeps, all of it read; again only where files or `select` are others.

    Raises RecipeError or InstanceError where they cannot be read, or none is left.
    """
    state = _state(path)
    found = _selected(path, state, select)
    if not found:
        rest = "no episodes to imitate" if not _read(path, state) else "no episodes that the recipe's filter keeps"
        raise RecipeError(f"{path} holds {rest}")
    return found


def size(path: Path) -> int:
    """Episodes of a data set."""
    return len(_read(path, _state(path)))


def _encoded(policy: LocalPolicy, found: Iterable[Trajectory], context: Context) -> list[Trajectory]:
    """The episodes that fit into what the policy can read, with ids: each turn as the policy would have seen it."""
    encoded = (_with_ids(trajectory, policy, context) for trajectory in found)
    fitting = [trajectory for trajectory in encoded if 0 < _longest(trajectory) <= policy.context]
    if not fitting:
        raise RecipeError(f"no episode to imitate fits into the {policy.context} tokens of the policy's context")
    return fitting


def _with_ids(trajectory: Trajectory, policy: LocalPolicy, context: Context) -> Trajectory:
    if all(turn.completion.ids for turn in trajectory.turns):
        return policy.encode(trajectory)  # as it was seen when it was played
    return policy.encode(trajectory, views(context, trajectory, policy.count))


def _given(trajectory: Trajectory, policy: LocalPolicy) -> Trajectory:
    """The episode to imitate: with its exact ids where they are those of `policy`'s tokenizer, else its words alone."""
    if trajectory.tags.get("tokens") != policy.tokens or not all(turn.completion.ids for turn in trajectory.turns):
        return _unsaid(trajectory)
    return replace(trajectory, turns=tuple(replace(turn, kind="given") for turn in trajectory.turns))


def _unsaid(trajectory: Trajectory) -> Trajectory:
    """The same words without the ids of whoever sampled them."""
    turns = (turn for turn in trajectory.turns if turn.kind != "summary")
    given = (replace(turn, completion=Completion(text=turn.completion.text), kind="given") for turn in turns)
    return replace(trajectory, turns=tuple(given), final_ids=(), final_pictures=())


def _longest(trajectory: Trajectory) -> int:
    """Tokens of the longest segment."""
    longest = length = 0
    for turn in trajectory.turns:
        tokens = len(turn.completion.prompt_ids) + len(turn.completion.ids)
        length = tokens if turn.fresh else length + tokens
        longest = max(longest, length)
    return longest


def _state(path: Path) -> tuple[tuple[str, int, int], ...]:
    """What a data set is made of at present: names, sizes and times of its files."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((file.name, (seen := file.stat()).st_size, seen.st_mtime_ns) for file in files)
    except OSError as error:
        raise RecipeError(f"cannot read the episodes of {path}: {error.strerror}") from error


@lru_cache(maxsize=1)
def _read(path: Path, state: object) -> tuple[Trajectory, ...]:
    try:
        return tuple(episode for episode in dataset.read(path) if episode.turns)
    except LmgymError:
        raise
    except (OSError, ValueError, KeyError) as error:  # also of bytes that are no text, and of others' parquet
        raise RecipeError(f"cannot read the episodes of {path}: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=1)
def _selected(path: Path, state: object, select: Filter | None) -> tuple[Trajectory, ...]:
    found = _read(path, state)
    dropped = select(found).drop if select and found else frozenset()
    return tuple(episode for episode in found if episode.id not in dropped)
