"""Golden episodes: the behaviour an id promises, stored as `golden.jsonl` in the task's folder and proven by replay.

The recorded actions are played again, and the environment must give the recorded answers. Variants of a folder share
its file, with one episode per line.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.env.env import Observation, TextEnv
from lmgym.env.registry import build, load
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, ReplayError

FILE = "golden.jsonl"
TURNS = 20  # of the random and the malformed player
LARGEST = 100_000  # bytes of a task's episodes
RANDOM_SEED = 8128  # different from the small seeds of instances
MALFORMED = (
    "",
    "   \n\t",
    "hello",
    "<answer></answer>",
    '{"name": "',
    "click(",
    "1 2 3",
    "\u202e漢字 é 🙂",
    "<|im_end|>",
    "x" * 200,
)

Player = Callable[[TextEnv], Iterable[str]]  # yields actions and may read the environment at each


@dataclass
class Trace:
    """An environment's answers to actions; `observations` has one entry more than `infos`."""

    observations: list[Observation] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)
    start: dict[str, Any] = field(default_factory=dict)  # info of reset
    terminated: bool = False
    truncated: bool = False

    @property
    def over(self) -> bool:
        """True if the episode ended."""
        return self.terminated or self.truncated


def observation_digest(observation: Observation) -> str:
    """Return 32 hex digits of SHA-256 over an observation's text and pictures."""
    digest = hashlib.sha256(observation["text"].encode())
    for name in sorted(observation.keys() - {"text"}):
        pictures = np.ascontiguousarray(observation[name])
        digest.update(f"\0{name}{pictures.shape}{pictures.dtype}".encode())
        digest.update(pictures.tobytes())
    return digest.hexdigest()[:32]


def turns(env: Any, player: Player, *, index: int, seed: int = 0) -> Iterator[Trace]:
    """Play instance `index`, yielding the one growing trace after reset and after every action."""
    trace = Trace()
    observation, trace.start = env.reset(seed=seed, options={"index": index})
    trace.observations.append(observation)
    yield trace
    yield from continued(env, trace, player(env.unwrapped))


def continued(env: Any, trace: Trace, actions: Iterable[str]) -> Iterator[Trace]:
    """Play actions in the open episode that `trace` records, yielding the trace after each."""
    for action in actions:
        observation, reward, trace.terminated, trace.truncated, info = env.step(action)
        trace.observations.append(observation)
        trace.actions.append(action)
        trace.rewards.append(float(reward))
        trace.infos.append(info)
        yield trace
        if trace.over:
            return


def play(env: Any, player: Player, *, index: int, seed: int = 0) -> Trace:
    """Play instance `index` until the episode ends or the player has no more actions."""
    *_, trace = turns(env, player, index=index, seed=seed)
    return trace


def given(actions: Iterable[str]) -> Player:
    """Return a player of recorded actions."""
    return lambda env: actions


def at_random(env: TextEnv) -> Iterator[str]:
    """Yield random admissible actions; if they cannot be listed, words of the last observation."""
    chance = np.random.default_rng(RANDOM_SEED)
    while True:
        choices = env.admissible() or env.latest_text.split() or ["look"]
        yield choices[int(chance.integers(len(choices)))]


def malformed(env: TextEnv) -> Iterator[str]:
    """Yield texts that are no action in any task."""
    yield from MALFORMED


PLAYERS: Mapping[str, tuple[Player, int]] = {  # by name: the player and its number of instances per split
    "oracle": (lambda env: env.oracle(), 2),
    "random": (at_random, 1),
    "malformed": (malformed, 1),
}


def has_oracle(spec: TaskSpec) -> bool:
    """Return True if the task's class defines an oracle."""
    return load(spec).oracle is not TextEnv.oracle


def folder(spec: TaskSpec) -> Path:
    """Return the task's folder without importing the task."""
    module = find_spec(spec.package)
    if module is None or not module.submodule_search_locations:
        raise InstanceError(f"{spec.id}: {spec.package} is not a package; a task is a folder with an __init__.py")
    return Path(module.submodule_search_locations[0])


def read(spec: TaskSpec) -> list[dict[str, Any]]:
    """Return the recorded episodes of `spec`. Raises ReplayError if there are none."""
    episodes = _recorded(spec)
    if not episodes:
        raise ReplayError(f"{spec.id} has no episodes in {FILE}: record them with: lmgym golden {spec.id} --write")
    return episodes


def owed(spec: TaskSpec) -> bool:
    """Return True if `spec` has golden episodes or must have them; ids of official data alone and parts need none."""
    return (any(spec.splits.values()) and not spec.part_of) or bool(_recorded(spec))


def _lines(spec: TaskSpec) -> list[str]:
    path = folder(spec) / FILE
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def _recorded(spec: TaskSpec) -> list[dict[str, Any]]:
    return [episode for line in _lines(spec) if (episode := json.loads(line))["task"] == spec.id]


def record(spec: TaskSpec) -> list[dict[str, Any]]:
    """Play the golden episodes of `spec` on every split; official data must be installed and have titles."""
    episodes: list[dict[str, Any]] = []
    for split, size in spec.splits.items():
        if not size:
            try:
                with closing(build(spec, split=split)) as env:
                    size = env.unwrapped.size()
                    if not size or env.unwrapped.title(0) is None:
                        continue
            except InstanceError:
                continue
        for name, (player, count) in PLAYERS.items():
            if name == "oracle" and not has_oracle(spec):
                continue
            limit = spec.max_turns if name == "oracle" else min(spec.max_turns, TURNS)
            for index in range(min(count, size)):
                with closing(build(spec, split=split, max_turns=limit)) as env:
                    trace = play(env, player, index=index)
                    title = env.unwrapped.title(index)
                head = {"task": spec.id, "player": name, "split": split, "index": index, "seed": 0, "max_turns": limit}
                episodes.append({**head, **({} if title is None else {"title": title}), **_content(spec, trace)})
    return episodes


def write(spec: TaskSpec) -> Path:
    """Record `spec` into its folder's file; episodes of other ids and of missing official data are kept."""
    path = folder(spec) / FILE
    episodes = record(spec)
    played = {episode["split"] for episode in episodes}
    absent = {split for split, size in spec.splits.items() if not size} - played  # official data that is not installed
    kept = [line for line in _lines(spec) if (old := json.loads(line))["task"] != spec.id or old["split"] in absent]
    fresh = [json.dumps(episode, ensure_ascii=False, sort_keys=True) for episode in episodes]
    if (size := sum(len(line.encode()) + 1 for line in fresh)) > LARGEST:
        raise ReplayError(f"{spec.id}: golden episodes take {size} bytes, over {LARGEST}; shorten observations")
    path.write_text("".join(f"{line}\n" for line in kept + fresh), encoding="utf-8")
    return path


def replay(spec: TaskSpec) -> list[str]:
    """Replay the recorded episodes of `spec` that are available here; return a line for each that differs."""
    return [difference for episode in read(spec) if (difference := _difference(spec, episode))]


def absent(spec: TaskSpec) -> int:
    """Return the number of recorded episodes whose official instances are not installed."""
    return sum(_find(spec, episode) is None for episode in read(spec))


def _find(spec: TaskSpec, episode: Mapping[str, Any]) -> int | None:
    """Return the index of an episode's instance; None if it is not installed."""
    if "title" not in episode:
        return int(episode["index"])
    try:
        with closing(build(spec, split=episode["split"])) as env:
            index: int | None = env.unwrapped.index_of(episode["title"])
            return index
    except InstanceError:
        return None


def _content(spec: TaskSpec, trace: Trace) -> dict[str, Any]:
    """Return the fields of a trace that a golden episode holds."""
    end = trace.infos[-1] if trace.infos else {}
    content: dict[str, Any] = {
        "actions": trace.actions,
        "terminated": trace.terminated,
        "truncated": trace.truncated,
        "score": end.get("score"),
        "success": end.get("success"),
        "rewards": trace.rewards,
    }
    if spec.goldens == "exact":
        content["observations"] = [observation_digest(observation) for observation in trace.observations]
        content["valid"] = [bool(info["valid"]) for info in trace.infos]
    return content


def _difference(spec: TaskSpec, episode: Mapping[str, Any]) -> str | None:
    """Return the first difference of a replayed episode from its record; None if none, or if it is not installed."""
    index = _find(spec, episode)
    if index is None:
        return None
    with closing(build(spec, split=episode["split"], max_turns=episode["max_turns"])) as env:
        trace = play(env, given(episode["actions"]), index=index, seed=episode["seed"])
    name = f"{episode['player']} {episode['split']}/{episode['index']}"
    for key, value in _content(spec, trace).items():
        if not _same(episode[key], value):
            return f"{name}: {key} {_first_difference(episode[key], value)}"
    return None


def _same(recorded: Any, played: Any) -> bool:
    if isinstance(recorded, list) and isinstance(played, list):
        return len(recorded) == len(played) and all(map(_same, recorded, played))
    if isinstance(recorded, float) and isinstance(played, float):
        return math.isclose(recorded, played, rel_tol=1e-9, abs_tol=1e-12)
    return bool(recorded == played)


def _first_difference(recorded: Any, played: Any) -> str:
    if not isinstance(recorded, list):
        return f"was {recorded!r}, is {played!r}"
    for turn, (before, after) in enumerate(zip(recorded, played, strict=False)):
        if not _same(before, after):
            return f"at {turn} was {before!r}, is {after!r}"
    return f"had {len(recorded)} entries, has {len(played)}"
