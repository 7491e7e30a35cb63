"""Measurements: steps of a task, the two ALFWorld engines, the sampler, the import."""

from __future__ import annotations

import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium

from lmgym.env import golden
from lmgym.env.env import TextEnv
from lmgym.env.golden import Player
from lmgym.env.registry import has_demonstrator, specs
from lmgym.env.spec import TaskSpec
from lmgym.env.wrappers import ShowAdmissible
from lmgym.errors import LmgymError

ROUNDS = 3
INSTANCES = 50  # that a task opens in turn


def import_seconds() -> float:
    """Return the seconds of `import lmgym` in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import lmgym; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def wordle_words() -> list[str]:
    """Return the default list of our Wordle."""
    env = gymnasium.make("lmgym/Wordle-v0")
    return list(env.unwrapped.admissible())


def _actions(env: Any, player: Player) -> list[str]:
    """Return 200 actions of a player on a few instances: the demonstrator's are mostly valid."""
    actions: list[str] = []
    for index in itertools.cycle(range(min(INSTANCES, env.unwrapped.size()))):
        actions += golden.play(env, player, index=index, seed=index).actions
        if len(actions) >= 200:
            return actions[:200]
    raise AssertionError("a split without instances was opened")


def task_rate(env: Any, seconds: float, actions: Sequence[str], *, instances: int = INSTANCES, tries: int = 1) -> float:
    """Return steps/s of an environment, playing `actions` over and over until an episode ends after `seconds`.

    Episodes open `instances` in turn, each of them `tries` times in a row; resets are part of the time.
    """
    count = min(instances, env.unwrapped.size())
    said = itertools.cycle(actions)
    steps = episodes = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        instance = episodes // tries
        env.reset(seed=instance, options={"index": instance % count})
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(next(said))
            over = terminated or truncated
            steps += 1
        episodes += 1
    return steps / (time.perf_counter() - start)


def _player(spec: TaskSpec) -> Player:
    """Return actions of the demonstrator or oracle; random ones if the task has neither."""
    knows = has_demonstrator(spec)
    return (lambda env: env.demonstrator()) if knows else lambda env: itertools.islice(golden.at_random(env), 20)


def all_tasks(seconds: float) -> Iterator[tuple[str, str, str]]:
    """Yield (id, steps/s or the reason for not running, steps/s with admissible actions) of every task."""
    for spec in specs().values():
        if all(spec.splits.values()) and not spec.part_of:  # procedural, not official data
            try:
                yield spec.id, *_rates(spec, seconds)
            except LmgymError as error:  # a package, a browser or a container that is not here
                yield spec.id, f"not run: {str(error).partition(chr(10))[0][:100]}", "-"


def _rates(spec: TaskSpec, seconds: float) -> tuple[str, str]:
    """Return medians of rounds, without and with admissible actions."""
    with closing(gymnasium.make(spec.id)) as env:
        actions = _actions(env, _player(spec))
        plain = statistics.median(task_rate(env, seconds, actions) for _ in range(ROUNDS))
        if cast(TextEnv, env.unwrapped).admissible() is None:
            return f"{plain:,.0f}", "-"
        shown = statistics.median(task_rate(ShowAdmissible(env), seconds, actions) for _ in range(ROUNDS))
        return f"{plain:,.0f}", f"{shown:,.0f}"


@dataclass(frozen=True)
class EngineSpeed:
    """Return steps per second and the seconds of one reset."""

    steps: float
    reset: float


STOCK = """
import json, sys, time
path, commands, seconds = json.load(sys.stdin)
import textworld
from textworld.envs.pddl import PddlEnv
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

env = AlfredInfos(AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True))))
start = time.perf_counter()
env.load(path)
env.reset()
reset = time.perf_counter() - start
steps, start = 0, time.perf_counter()
while time.perf_counter() < start + seconds:
    env.step(commands[steps % len(commands)])
    steps += 1
print(json.dumps([steps / (time.perf_counter() - start), reset]))
"""


def alfworld_engines(seconds: float, *, games: int = 3) -> tuple[EngineSpeed, EngineSpeed]:
    """Return medians of our engine and of the stock one, which plays the same files in a process of its own.

    Both are asked for the text, for `won` and for the admissible commands of every step.
    """
    from lmgym.tasks.alfworld.households import draw, write

    ours, stock = [], []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(games):
            game = write(draw("test", index, receptacles=9, objects=8))
            path = Path(folder) / f"{index}.tw-pddl"
            path.write_text(json.dumps(game))
            commands = _walk(game)
            job = json.dumps([str(path), commands, max(seconds, 5.0)])
            answer = subprocess.run(
                [sys.executable, "-c", STOCK], input=job, capture_output=True, text=True, check=True
            )
            stock.append(EngineSpeed(*json.loads(answer.stdout.splitlines()[-1])))
            ours.append(_own_engine(path, commands, seconds))
    return _median(ours), _median(stock)


def _walk(content: Mapping[str, Any]) -> list[str]:
    """Return 50 admissible commands in a row, drawn at random."""
    from lmgym.tasks.alfworld.engine import HouseholdGame

    game, rng = HouseholdGame.read(content), random.Random(0)
    commands: list[str] = []
    for _ in range(50):
        commands.append(rng.choice(game.commands()))
        game.step(commands[-1])
    return commands


def _own_engine(path: Path, commands: Sequence[str], seconds: float) -> EngineSpeed:
    from lmgym.tasks.alfworld.engine import HouseholdGame

    start = time.perf_counter()
    game = HouseholdGame.read(json.loads(path.read_text()))
    game.opening()
    reset = time.perf_counter() - start
    steps, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        game.step(commands[steps % len(commands)])
        game.commands()
        steps += 1
    return EngineSpeed(steps / (time.perf_counter() - start), reset)


def _median(speeds: Sequence[EngineSpeed]) -> EngineSpeed:
    return EngineSpeed(*(statistics.median(getattr(speed, name) for speed in speeds) for name in ("steps", "reset")))


def samplers() -> tuple[float, float, float]:
    """Return sampled tokens/s of `tiny`: by a session, by one in bfloat16, and by `generate` afresh each turn.

    Each is the median of rounds in turn. On cores without bfloat16 products the second is slower than the first.
    """
    import sampler
    import torch

    from lmgym.policy.load import load_local
    from lmgym.policy.local.sampling import Sampling

    torch.set_num_threads(1)  # with more, any other work on the machine makes small products wait for each other
    full, half = (
        load_local("tiny", sampling=Sampling(max_tokens=48), device="cpu", dtype=dtype) for dtype in (None, "bfloat16")
    )
    load = sampler.Load()
    arms = ((full, sampler.with_session), (half, sampler.with_session), (full, sampler.with_generate))
    for policy in (full, half):
        sampler.with_session(policy, sampler.Load(rows=4, turns=2))  # warm
    rounds = [[sampler.measure(policy, load, run)["tokens_per_second"] for policy, run in arms] for _ in range(ROUNDS)]
    kept, halved, afresh = (statistics.median(column) for column in zip(*rounds, strict=True))
    return kept, halved, afresh
