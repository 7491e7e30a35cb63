"""Comparisons of two policies on the same instances: paired differences, exact tests and detectable differences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lmgym.errors import InstanceError
from lmgym.evaluation.aggregate import aggregate, improvement, interquartile_mean, profile
from lmgym.evaluation.pages import Page, Plot, TextTable
from lmgym.evaluation.report import figure, span, state
from lmgym.evaluation.runner import Outcome, Report
from lmgym.evaluation.stats import Array, Interval, bootstrap, by_instance, paired_interval, resolution

FLIPS = 20_000  # random sign flips of the permutation test
THRESHOLDS = tuple(n / 20 for n in range(20))  # mean scores of performance profiles
REPORTED = ("task", "split", "options", "instances")  # settings that must agree, or whose difference is counted
LONGEST = 60  # characters of a displayed setting
EXACT = 14  # differing instances up to which all sign flips are enumerated


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Paired difference of B over A in one figure, over the instances with results of both."""

    before: float  # mean of A
    after: float  # mean of B
    gain: Interval
    bootstrap: Interval
    better: int  # instances on which B is better
    worse: int
    test: str  # "mcnemar", "sign" or "permutation"
    p: float  # two-sided
    smallest: float  # true difference that a run of this size detects with power 0.8


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two reports on one task."""

    task: str
    split: str
    policies: tuple[str, str]
    common: int  # instances compared
    only: tuple[int, int]  # instances that only A has, only B has
    voided: tuple[int, int]  # episodes without a result
    success: Difference
    score: Difference
    settings: tuple[tuple[str, str, str], ...] = ()  # other differences: name, A's value, B's value
    holm: float = math.nan  # p of success, adjusted for the number of tasks
    holm_score: float = math.nan  # p of the score, adjusted likewise: the two figures are two families

    def state_dict(self) -> dict[str, Any]:
        """Return plain values, with null for nan."""
        return dict(_plain(asdict(self)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sign_test(differences: Array) -> float:
    """Exact two-sided p that an instance is as often better as worse; ties say nothing.

    For single tries at success this is McNemar's exact test on the discordant pairs.
    """
    from scipy.stats import binomtest

    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def permutation_test(differences: Array, *, seed: int = 0) -> float:
    """Return the two-sided p of the mean difference under sign flips of instances; exact for few instances."""
    nonzero = differences[differences != 0]
    count = len(nonzero)
    if not count:
        return 1.0
    observed = abs(float(nonzero.sum())) * (1 - 1e-12)
    if count <= EXACT:
        signs = 1.0 - 2.0 * ((np.arange(1 << count)[:, None] >> np.arange(count)) & 1)
        return float((np.abs(signs @ nonzero) >= observed).mean())
    noise, extreme, rows = np.random.default_rng(seed), 0, 500
    for _ in range(FLIPS // rows):
        signs = 1.0 - 2.0 * noise.integers(2, size=(rows, count))
        extreme += int((np.abs(signs @ nonzero) >= observed).sum())
    return (extreme + 1) / (FLIPS + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values adjusted by Holm's method."""
    adjusted, highest = [math.nan] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def compare(before: Report, after: Report, *, across: Sequence[str] = ()) -> Comparison:
    """Compare two reports over common instances.

    Raises InstanceError if task, split or options differ, apart from the options named in `across`.
    """
    for name in ("task", "split", "options"):
        sides = [getattr(report, name) for report in (before, after)]
        if name == "options":
            sides = [{key: value for key, value in side.items() if key not in across} for side in sides]
        mine, theirs = (json.dumps(side, sort_keys=True, default=str) for side in sides)
        if mine != theirs:
            raise InstanceError(f"the runs differ in {name} and cannot be compared: {mine} and {theirs}")
    names = [{outcome.index for outcome in report.played} for report in (before, after)]
    common = names[0] & names[1]
    if not common:
        raise InstanceError(f"the runs on {before.task} {before.split} have no instance in common")
    old, new = ([o for o in report.played if o.index in common] for report in (before, after))
    chosen = ({name: one.options[name] for name in across if name in one.options} for one in (before, after))
    first, second = map(_flatten, chosen)
    options = [(f"option {name}", first.get(name, "default"), second.get(name, "default")) for name in across]
    return Comparison(
        task=before.task,
        split=before.split,
        policies=(before.policy, after.policy),
        common=len(common),
        only=(len(names[0] - common), len(names[1] - common)),
        voided=(len(before.outcomes) - len(before.played), len(after.outcomes) - len(after.played)),
        success=_difference(old, new, "success"),
        score=_difference(old, new, "score"),
        settings=(*options, *differing_settings(before, after)),
    )


def differing_settings(before: Report, after: Report) -> tuple[tuple[str, str, str], ...]:
    """Return the settings in which two reports differ, with both values: they may explain a difference in score.

    If a report has no settings, the identities are compared instead.
    """
    if before.identity == after.identity:
        return ()
    if not (before.settings and after.settings):
        return (("identity", before.identity or "not recorded", after.identity or "not recorded"),)
    sides = [_flatten({k: v for k, v in one.settings.items() if k not in REPORTED}) for one in (before, after)]
    values = [(name, *(side.get(name, "none") for side in sides)) for name in {**sides[0], **sides[1]}]
    return tuple((name, _clipped(old), _clipped(new)) for name, old, new in values if old != new)


def _flatten(values: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Return every value as JSON by its path."""
    leaves: dict[str, str] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        leaves |= _flatten(value, f"{path}{name}.") if nested else {f"{path}{name}": json.dumps(value, sort_keys=True)}
    return leaves


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _difference(before: Sequence[Outcome], after: Sequence[Outcome], name: str) -> Difference:
    old, new = _means(before, name), _means(after, name)
    differences = np.array([new[index] - old[index] for index in sorted(old, key=repr)])
    differences[np.abs(differences) < 1e-12] = 0.0
    single = len(before) == len(after) == len(old)
    test = "permutation" if name == "score" else "mcnemar" if single else "sign"
    return Difference(
        before=float(np.mean(list(old.values()))),
        after=float(np.mean(list(new.values()))),
        gain=paired_interval(differences),
        bootstrap=bootstrap(differences, bounds=(-1.0, 1.0)),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
        test=test,
        p=permutation_test(differences) if name == "score" else sign_test(differences),
        smallest=resolution(differences),
    )


def _means(outcomes: Sequence[Outcome], name: str) -> dict[object, float]:
    """Return the mean over the tries of each instance."""
    indices = [outcome.index for outcome in outcomes]
    means, _ = by_instance([float(getattr(outcome, name)) for outcome in outcomes], indices)
    return dict(zip(dict.fromkeys(indices), map(float, means), strict=True))


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """Two policies on their common tasks."""

    tasks: tuple[Comparison, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]  # tasks of A alone, of B alone
    overall: Mapping[str, Interval]  # aggregates over tasks; empty for a single task
    profiles: Mapping[str, Sequence[Interval]]  # by side, the share of tasks with a score above each of THRESHOLDS

    def state_dict(self) -> dict[str, Any]:
        """Return plain values, with null for nan."""
        values = _plain(asdict(self))
        return {**values, "profiles": {"thresholds": list(THRESHOLDS), **values["profiles"]}}


def compare_all(before: Sequence[Report], after: Sequence[Report], *, across: Sequence[str] = ()) -> Comparisons:
    """Compare task by task, with p values adjusted by Holm's method; options in `across` may differ.

    Raises InstanceError without a common task.
    """
    old, new = _by_task(before), _by_task(after)
    common = [name for name in old if name in new]
    if not common:
        raise InstanceError(f"the runs have no task and split in common: {sorted(old)} and {sorted(new)}")
    comparisons = [compare(old[name], new[name], across=across) for name in common]
    adjusted = zip(*(holm([getattr(one, name).p for one in comparisons]) for name in ("success", "score")), strict=True)
    samples: tuple[Samples, Samples] = ([], [])  # of A and of B, on their common instances
    for name in common if len(common) > 1 else ():
        scores = [_means(report.played, "score") for report in (old[name], new[name])]
        both = sorted(scores[0].keys() & scores[1].keys(), key=repr)
        for sample, means in zip(samples, scores, strict=True):
            sample.append([np.array([means[index] for index in both])])
    return Comparisons(
        tasks=tuple(replace(one, holm=p, holm_score=q) for one, (p, q) in zip(comparisons, adjusted, strict=True)),
        only=(tuple(sorted(set(old) - set(common))), tuple(sorted(set(new) - set(common)))),
        overall=_overall(*samples) if samples[0] else {},
        profiles={side: profile(sample, THRESHOLDS) for side, sample in zip("AB", samples, strict=True) if sample},
    )


def _by_task(reports: Sequence[Report]) -> dict[str, Report]:
    by_task: dict[str, Report] = {}
    for report in reports:
        name = f"{report.task} {report.split}"
        if name in by_task:
            raise InstanceError(f"one side has two runs on {name}: compare them one by one")
        by_task[name] = report
    return by_task


Samples = list[list[Array]]  # mean scores of the instances, by task and run


def _overall(old: Samples, new: Samples) -> dict[str, Interval]:
    """Return aggregates over tasks."""
    differences = [[after[0] - before[0]] for before, after in zip(old, new, strict=True)]
    return {
        "A: interquartile mean": aggregate(old, interquartile_mean),
        "B: interquartile mean": aggregate(new, interquartile_mean),
        "A: mean": aggregate(old, lambda scores: scores.mean(-1)),
        "B: mean": aggregate(new, lambda scores: scores.mean(-1)),
        "mean gain": aggregate(differences, lambda scores: scores.mean(-1)),
        "probability of improvement": improvement(old, new),
    }


def page(result: Comparisons) -> Page:
    """Return the comparison as a document."""
    first, second = result.tasks[0].policies
    names = [f"{one.task} {one.split}" for one in result.tasks]
    tasks = list(zip(names, result.tasks, strict=True))
    header = ("task", "figure", "A", "B", "B - A", "95 % interval", "better / worse", "p", "test", "detectable at 80 %")
    lines = [[name, *line] for name, one in tasks for line in _lines(one)]
    counts = [[name, str(one.common), *map(str, one.only), *map(str, one.voided)] for name, one in tasks]
    parts: list[TextTable | Plot] = [
        TextTable("", header, lines, "Paired by instance. The last column is the smallest detectable difference.")
    ]
    if result.overall:
        for figure_name, adjusted in (("Success", "holm"), ("Score", "holm_score")):
            ps = [
                [name, f"{getattr(one, figure_name.lower()).p:.2g}", f"{getattr(one, adjusted):.2g}"]
                for name, one in tasks
            ]
            title = f"{figure_name}, adjusted for the number of tasks"
            parts.append(TextTable(title, ("task", "p", "p by Holm"), ps))
        overall = [[name, figure(one.mean), span(state(one))] for name, one in result.overall.items()]
        parts.append(TextTable("Aggregates over tasks", ("figure", "estimate", "95 % interval"), overall))
    parts.append(TextTable("Instances", ("task", "compared", "only A", "only B", "voided A", "voided B"), counts))
    if settings := [[name, *row] for name, one in tasks for row in one.settings]:
        note = "The policies played under different settings, which may explain a difference."
        parts.append(TextTable("Settings that differ", ("task", "setting", "A", "B"), settings, note))
    for side, shares in result.profiles.items():
        points = [(low, share.mean, share.low, share.high) for low, share in zip(THRESHOLDS, shares, strict=True)]
        parts.append(Plot(f"Performance profile of {side}", points, "Share of tasks with a mean score above x."))
    if rest := [[name, side] for side, names in zip("AB", result.only, strict=True) for name in names]:
        parts.append(TextTable("Tasks of one side only", ("task", "side"), rest))
    return Page(f"A {first} and B {second}", parts)


def _lines(one: Comparison) -> list[list[str]]:
    return [
        [
            *(name, figure(result.before), figure(result.after), f"{result.gain.mean:+.3f}"),
            *(f"{result.gain.low:+.3f} to {result.gain.high:+.3f}", f"{result.better} / {result.worse}"),
            *(f"{result.p:.2g}", result.test, figure(result.smallest)),
        ]
        for name, result in (("success", one.success), ("score", one.score))
    ]
