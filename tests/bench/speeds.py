"""What is timed: steps of a task, the two ALFWorld engines, the sampler, the import."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium

from lmgym.env.registry import find, specs
from lmgym.env.wrappers import ShowAdmissible
from lmgym.errors import InstanceError, MissingExtra

ROUNDS = 3


def import_seconds() -> float:
    """Return the seconds of `import lmgym` in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import lmgym; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def wordle_words() -> list[str]:
    """Return the default list of our Wordle."""
    env = gymnasium.make("lmgym/Wordle-v0")
    return list(env.unwrapped.admissible())


def _actions(env: Any) -> list[str]:
    """Return 200 actions: those of the demonstrator on a few instances, so that most are valid."""
    actions: list[str] = []
    for index in itertools.count():
        env.reset(seed=index, options={"index": index})
        for action in env.unwrapped.demonstrator():
            actions.append(action)
            if len(actions) == 200:
                return actions
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
    return actions


def task_rate(task: str, seconds: float, *, actions: Sequence[str] = (), show: bool = False, **options: Any) -> float:
    """Return steps/s of a task through `gym.make`, playing `actions` over and over, resets included."""
    env: Any = gymnasium.make(find(task).id, **options)
    env = ShowAdmissible(env) if show else env
    actions = actions or _actions(env)
    steps, seed = 0, 0
    env.reset(seed=seed, options={"index": 0})
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            steps += 1
            if terminated or truncated:
                seed += 1
                env.reset(seed=seed, options={"index": seed % 50})
    rate = steps / (time.perf_counter() - start)
    env.close()
    return rate


def all_tasks(seconds: float) -> Iterator[tuple[str, float, float | None]]:
    """Yield (id, steps/s, steps/s with admissible actions shown) of every task that runs here."""
    for spec in specs().values():
        if not all(spec.splits.values()):
            continue  # official data, not procedural
        try:
            plain = statistics.median(task_rate(spec.id, seconds) for _ in range(ROUNDS))
        except MissingExtra:
            continue
        try:
            shown = statistics.median(task_rate(spec.id, seconds, show=True) for _ in range(ROUNDS))
        except InstanceError:
            shown = None
        yield spec.id, plain, shown


@dataclass(frozen=True)
class EngineSpeed:
    """Steps per second, and seconds of one reset."""

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
    from lmgym.tasks.alfworld.engine import Game

    game, rng = Game.read(content), random.Random(0)
    commands: list[str] = []
    for _ in range(50):
        commands.append(rng.choice(game.commands()))
        game.step(commands[-1])
    return commands


def _own_engine(path: Path, commands: Sequence[str], seconds: float) -> EngineSpeed:
    from lmgym.tasks.alfworld.engine import Game

    start = time.perf_counter()
    game = Game.read(json.loads(path.read_text()))
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


def samplers() -> tuple[float, float]:
    """Return sampled tokens/s of `tiny` by a session and by `generate` afresh each turn: medians of rounds in turn."""
    import sampler

    from lmgym.policy.load import load_local
    from lmgym.policy.sampling import Sampling

    policy = load_local("tiny", sampling=Sampling(max_tokens=48), device="cpu")
    load = sampler.Load()
    sampler.with_session(policy, sampler.Load(rows=4, turns=2))  # warm
    rounds = [
        [
            sampler.measure(policy, load, run)["tokens_per_second"]
            for run in (sampler.with_session, sampler.with_generate)
        ]
        for _ in range(ROUNDS)
    ]
    kept, afresh = (statistics.median(column) for column in zip(*rounds, strict=True))
    return kept, afresh
