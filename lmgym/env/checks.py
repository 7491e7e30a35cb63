"""The promises of every task, one function each, which yields a line per problem."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env, data_equivalence

from lmgym.env import golden
from lmgym.env.env import TextEnv
from lmgym.env.golden import Player, Trace, at_random, continued, given, malformed, observation_digest, play, turns
from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build, has_demonstrator, load
from lmgym.env.spec import TaskSpec
from lmgym.errors import LmgymError

BROKEN = (  # exceptions of a broken task; interrupts and exits pass
    ArithmeticError,
    AssertionError,
    AttributeError,
    LmgymError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    pickle.PickleError,
    RuntimeError,
    TypeError,
    ValueError,
    Warning,
)


@dataclass(frozen=True)
class Subject:
    """A task under test with the splits that can be opened here."""

    spec: TaskSpec
    splits: tuple[str, ...]  # official data may be missing

    @property
    def home(self) -> str:
        """Split for the checks that use one."""
        wanted = self.spec.options.get("split", "train")
        return wanted if wanted in self.splits else self.splits[0]

    @property
    def few(self) -> int:
        """Number of episodes that are cheap enough to play."""
        return 5 if self.spec.player == "inline" else 2

    def open(self, **options: Any) -> closing[Any]:
        """Return an environment as a context manager that closes it."""
        return closing(build(self.spec, **{"split": self.home, **options}))


@contextmanager
def _registered(spec: TaskSpec) -> Iterator[None]:
    """Register a plug-in that is not installed yet with Gymnasium."""
    registered = spec.id in gymnasium.registry
    if not registered:
        gymnasium.register(id=spec.id, entry_point=partial(build, spec), nondeterministic=not spec.deterministic)
    try:
        yield
    finally:
        if not registered:
            gymnasium.registry.pop(spec.id)


def gymnasium_checks(subject: Subject) -> Iterable[str]:
    """Gymnasium's check_env passes with warnings as errors."""
    with warnings.catch_warnings(), _registered(subject.spec):
        warnings.simplefilter("error")
        with closing(gymnasium.make(subject.spec.id, split=subject.home)) as env:
            check_env(env.unwrapped)
    return ()


def vectors(subject: Subject) -> Iterator[str]:
    """gym.make_vec works, and sync and async give the same answers."""
    with _registered(subject.spec):
        sync, parallel = _vectored(subject, "sync"), _vectored(subject, "async")
    if subject.spec.deterministic and sync != parallel:
        turn = next(i for i, (a, b) in enumerate(zip(sync, parallel, strict=True)) if a != b)
        yield f"sync and async differ at turn {turn}: {str(sync[turn])[:200]} and {str(parallel[turn])[:200]}"


def _vectored(subject: Subject, mode: Any) -> list[Any]:
    """Return the answers of two vectorised environments to three actions each."""
    envs = gymnasium.make_vec(subject.spec.id, num_envs=2, vectorization_mode=mode, split=subject.home)
    with closing(envs):
        observations, _ = envs.reset(seed=1)
        answers: list[Any] = [_digests(observations)]
        for actions in (["", "look"], ["é 漢 🙂", "1"], ["x" * 1000, "\n"]):
            observations, rewards, terminated, truncated, _ = envs.step(actions)
            answers.append((_digests(observations), list(rewards), list(terminated), list(truncated)))
    return answers


def _digests(observations: Mapping[str, Any]) -> list[str]:
    return [observation_digest({name: value[i] for name, value in observations.items()}) for i in range(2)]


def determinism(subject: Subject) -> Iterator[str]:
    """The same instance, seed and actions give the same observations, rewards and info."""
    if not subject.spec.deterministic:
        return
    with subject.open() as env, subject.open() as other:
        for index, player in itertools.product(_first(env, 2), _players(subject)):
            first = play(env, player, index=index, seed=7)
            for again, where in ((env, "in the same environment"), (other, "in another environment")):
                if change := difference(first, play(again, given(first.actions), index=index, seed=7)):
                    yield f"{subject.home}/{index} replayed {where}: {change}"


def _first(env: Any, count: int) -> range:
    """Return the indices of the first `count` instances, or of all if there are fewer."""
    return range(min(count, env.unwrapped.size()))


def _players(subject: Subject) -> list[Player]:
    oracle: list[Player] = [lambda env: env.oracle()] if golden.has_oracle(subject.spec) else []
    return [*oracle, lambda env: itertools.islice(at_random(env), golden.TURNS)]


def difference(first: Trace, again: Trace) -> str | None:
    """Return the first difference between two traces of the same actions; None if there is none."""
    if not data_equivalence(first.start, again.start, exact=True):
        return f"info of reset was {first.start}, is {again.start}"
    for turn, (a, b) in enumerate(zip(first.observations, again.observations, strict=False)):
        if observation_digest(a) != observation_digest(b):
            return f"observation {turn} was {a['text'][:100]!r}, is {b['text'][:100]!r}"
    if first.rewards != again.rewards:
        return f"rewards were {first.rewards}, are {again.rewards}"
    if not data_equivalence(first.infos, again.infos, exact=True):
        return f"infos were {first.infos}, are {again.infos}"
    return None


def disjoint_splits(subject: Subject) -> Iterator[str]:
    """No instance is in two splits, as far as the first ones show."""
    if subject.spec.overlap:
        return
    count = 200 if subject.spec.player == "inline" else 8
    seen: dict[Any, str] = {}
    for split in subject.splits:
        with subject.open(split=split) as env:
            for index in _first(env, count):
                observation, info = env.reset(seed=0, options={"index": index})
                task: TextEnv = env.unwrapped
                fingerprint: Any = task.fingerprint()
                if fingerprint is None:
                    action = next(iter(task.oracle()), None) if golden.has_oracle(subject.spec) else None
                    fingerprint = observation_digest(observation), info.get("answer"), action
                name = seen.setdefault(fingerprint, f"{split}/{index}")
                if name.partition("/")[0] != split:
                    yield f"{name} and {split}/{index} are the same instance; if intended, say why in TaskSpec.overlap"
                    return


def hostile_text(subject: Subject) -> Iterator[str]:
    """No text breaks the environment, and its answers fit its space."""
    with subject.open() as env:
        over = True
        for text in HOSTILE:
            name = f"action {text[:30]!r} ({len(text)} characters)"
            try:
                if over:
                    env.reset(seed=0, options={"index": 0})
                observation, reward, terminated, truncated, _ = env.step(text)
            except BROKEN as error:
                yield f"{name} raises {type(error).__name__}: {error}"
                over = True
                continue
            over = terminated or truncated
            if observation not in env.observation_space or not math.isfinite(reward):
                yield f"{name}: the answer does not fit the space: {str(observation)[:100]!r}, reward {reward}"


def references(subject: Subject) -> Iterator[str]:
    """The oracle and empty actions score as the references say."""
    scores = subject.spec.references
    if golden.has_oracle(subject.spec) != ("oracle" in scores):
        yield "references must have the oracle's score if and only if there is an oracle"
    players: dict[str, Player] = {"null": lambda env: itertools.repeat(""), "oracle": lambda env: env.oracle()}
    for name, player in players.items():
        wanted = scores.get(name)
        if isinstance(wanted, float | int) and (name == "null" or golden.has_oracle(subject.spec)):
            for split in subject.splits:
                yield from _scores(subject, split, name, player, float(wanted))


def _scores(subject: Subject, split: str, name: str, player: Player, wanted: float) -> Iterator[str]:
    count = subject.few if wanted in (0.0, 1.0) else 8 * subject.few
    scores = []
    with subject.open(split=split) as env:
        for index in _first(env, count):
            trace = play(env, player, index=index)
            if not trace.over:
                yield f"{name} on {split}/{index} stops after {len(trace.actions)} actions, before the end"
                return
            scores.append(trace.infos[-1]["score"])
    mean = math.fsum(scores) / len(scores)
    if abs(mean - wanted) > 4 * math.sqrt(wanted * (1 - wanted) / len(scores)) + 1e-9:
        yield f"{name} scores {mean:.3g} on {split} (mean of {len(scores)}); the spec says {wanted}"


def demonstrator(subject: Subject) -> Iterator[str]:
    """The demonstrator, by default the oracle, plays valid actions to the end."""
    if not has_demonstrator(subject.spec):
        return
    with subject.open() as env:
        for index in _first(env, 2):
            trace = play(env, lambda env: env.demonstrator(), index=index)
            if not trace.over:
                yield f"on {subject.home}/{index} it stops after {len(trace.actions)} actions, before the end"
            for action, info in zip(trace.actions, trace.infos, strict=True):
                if not info["valid"]:
                    yield f"on {subject.home}/{index} its action {action[:60]!r} is not valid"
                    break


def admissible(subject: Subject) -> Iterator[str]:
    """Listed actions are valid."""
    with subject.open() as env:
        env.reset(seed=0, options={"index": 0})
        if env.unwrapped.admissible() is None:
            return
        trace = play(env, lambda env: itertools.islice(at_random(env), golden.TURNS), index=0)
        for action, info in zip(trace.actions, trace.infos, strict=True):
            if not info["valid"]:
                yield f"{action[:60]!r} is admissible and not valid"


def endings(subject: Subject) -> Iterator[str]:
    """Reward terms sum to the reward; the score is set once, at termination or truncation."""
    limit = subject.spec.max_turns
    for most in sorted({*range(1, min(limit, 4) + 1), limit}):
        with subject.open(max_turns=most) as env:
            for player in (*_players(subject), malformed):
                trace = play(env, player, index=0)
                for problem in account(trace):
                    yield f"max_turns={most}: {problem}"
                if len(trace.actions) >= most and not trace.over:
                    yield f"max_turns={most}: not over after {len(trace.actions)} actions"


def account(trace: Trace) -> Iterator[str]:
    """Yield the problems of a trace's rewards, scores and infos."""
    if "score" in trace.start or any("score" in info or "success" in info for info in trace.infos[:-1]):
        yield "score or success in info before the end"
    for turn, (reward, info) in enumerate(zip(trace.rewards, trace.infos, strict=True)):
        if not math.isclose(math.fsum(info["reward_terms"].values()), reward, abs_tol=1e-9):
            yield f"turn {turn}: reward is {reward}, its terms are {info['reward_terms']}"
    if trace.over:
        end = trace.infos[-1]
        if not isinstance(end.get("success"), bool) or not 0 <= end.get("score", math.nan) <= 1:
            yield f"the end has score {end.get('score')!r} and success {end.get('success')!r}"
    json.dumps([trace.start, *trace.infos], allow_nan=False)


def goldens(subject: Subject) -> Iterable[str]:
    """The golden episodes replay; those of official data if it is installed."""
    return golden.replay(subject.spec) if golden.owed(subject.spec) else ()


def two_at_once(subject: Subject) -> Iterator[str]:
    """Two environments at once do not disturb each other."""
    if not subject.spec.deterministic:
        return
    for player in _players(subject):
        with subject.open() as env:
            indices = (0, _first(env, 2)[-1])
            alone = [play(env, player, index=index, seed=index) for index in indices]
        with subject.open() as env, subject.open() as other:
            first, second = (turns(e, player, index=i, seed=i) for e, i in zip((env, other), indices, strict=True))
            both, *_ = itertools.zip_longest(first, second)  # in turns; the two traces grow until both are over
        for index, before, after in zip(indices, alone, both, strict=True):
            if change := difference(before, after):
                yield f"{subject.home}/{index} beside another environment: {change}"


def saved_episodes(subject: Subject) -> Iterator[str]:
    """A saved episode continues in another environment as in its own, if the task saves episodes."""
    if load(subject.spec).save is TextEnv.save:
        return
    for player in _players(subject):
        with subject.open() as env, subject.open() as other:
            whole = play(env, player, index=0, seed=7)
            half = len(whole.actions) // 2
            first = play(env, given(whole.actions[:half]), index=0, seed=7)
            if (saved := env.save_episode()) is None:
                continue
            other.reset(seed=8, options={"index": _first(env, 2)[-1]})
            other.restore_episode(saved)
            for each, where in ((other, "in another environment"), (env, "where it was saved")):
                *_, trace = continued(each, copy.deepcopy(first), whole.actions[half:])
                if change := difference(whole, trace):
                    yield f"{subject.home}/0 saved after {half} actions and continued {where}: {change}"


def closing_twice(subject: Subject) -> Iterable[str]:
    """An environment can be closed twice, before and after an episode."""
    for index in (None, 0):
        env = build(subject.spec, split=subject.home)
        if index is not None:
            env.reset(seed=0, options={"index": index})
        env.close()
        env.close()
    return ()


def pickling(subject: Subject) -> Iterable[str]:
    """An environment can be pickled before its first reset; a client of a server need not be."""
    if subject.spec.remote:
        return ()
    with subject.open() as env, closing(pickle.loads(pickle.dumps(env))):
        return ()


Check = Callable[[Subject], Iterable[str]]
OF_EPISODES: tuple[Check, ...] = (
    gymnasium_checks,
    vectors,
    determinism,
    disjoint_splits,
    hostile_text,
    references,
    demonstrator,
    admissible,
    endings,
    goldens,
    two_at_once,
    saved_episodes,
    closing_twice,
    pickling,
)
