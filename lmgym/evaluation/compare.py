"""Two policies on the same instances: the paired difference, exact tests, and what the run could have shown."""

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

FLIPS = 20_000  # sign flips of the permutation test, where all of them are too many
THRESHOLDS = tuple(n / 20 for n in range(20))  # of performance profiles
COUNTED = ("task", "split", "options", "instances")  # settings that are refused where they differ, or counted
LONGEST = 60  # characters of a setting that are shown
EXACT = 14  # instances up to which all of them are made


@dataclass(frozen=True, kw_only=True)
class Difference:
    """B over A in one figure, over the instances that both have results of."""

    before: float  # mean of A there
    after: float
    gain: Interval
    bootstrap: Interval
    better: int  # instances on which B is better
    worse: int
    test: str  # "mcnemar", "sign" or "permutation"
    p: float  # two-sided
    smallest: float  # difference that a run of this size shows in 80 % of cases


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
    settings: tuple[tuple[str, str, str], ...] = ()  # what else differs between the runs: name, A's, B's
    holm: float = math.nan  # p of success, adjusted for the number of tasks
    holm_score: float = math.nan  # p of the score, adjusted likewise: the two figures are two families

    def state_dict(self) -> dict[str, Any]:
        """As plain values; what is no number is null."""
        return dict(_plain(asdict(self)))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: _plain(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in plain.items()
    }


# Tests ---------------------------------------------------------------------------------------------------------


def sign_test(differences: Array) -> float:
    """Exact two-sided p that an instance is as often better as worse; ties say nothing.

    For single tries at success this is McNemar's exact test on the discordant pairs.
    """
    from scipy.stats import binomtest

    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def permutation_test(differences: Array, *, seed: int = 0) -> float:
    """Two-sided p of the mean difference, had A and B changed places on any of the instances; exact for few."""
    moved = differences[differences != 0]
    count = len(moved)
    if not count:
        return 1.0
    found = abs(float(moved.sum())) * (1 - 1e-12)
    if count <= EXACT:
        signs = 1.0 - 2.0 * ((np.arange(1 << count)[:, None] >> np.arange(count)) & 1)
        return float((np.abs(signs @ moved) >= found).mean())
    noise, extreme, rows = np.random.default_rng(seed), 0, 500
    for _ in range(FLIPS // rows):
        signs = 1.0 - 2.0 * noise.integers(2, size=(rows, count))
        extreme += int((np.abs(signs @ moved) >= found).sum())
    return (extreme + 1) / (FLIPS + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjustment of p values for their number."""
    adjusted, highest = [math.nan] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted


# Comparisons ---------------------------------------------------------------------------------------------------


def compare(before: Report, after: Report) -> Comparison:
    """Compare two reports over common instances. Raises InstanceError where they are not of the same thing."""
    for name in ("task", "split", "options"):
        mine, theirs = (json.dumps(getattr(report, name), sort_keys=True, default=str) for report in (before, after))
        if mine != theirs:
            raise InstanceError(f"the runs differ in {name} and do not compare: {mine} and {theirs}")
    names = [{outcome.index for outcome in report.played} for report in (before, after)]
    common = names[0] & names[1]
    if not common:
        raise InstanceError(f"the runs on {before.task} {before.split} have no instance in common")
    old, new = ([o for o in report.played if o.index in common] for report in (before, after))
    return Comparison(
        task=before.task,
        split=before.split,
        policies=(before.policy, after.policy),
        common=len(common),
        only=(len(names[0] - common), len(names[1] - common)),
        voided=(len(before.outcomes) - len(before.played), len(after.outcomes) - len(after.played)),
        success=_difference(old, new, "success"),
        score=_difference(old, new, "score"),
        settings=unlike(before, after),
    )


def unlike(before: Report, after: Report) -> tuple[tuple[str, str, str], ...]:
    """Settings in which two reports differ beside the policy, each with both values: a gain may be theirs.

    Where a report does not hold its settings, their digests stand for them.
    """
    if before.identity == after.identity:
        return ()
    if not (before.settings and after.settings):
        return (("identity", before.identity or "not recorded", after.identity or "not recorded"),)
    sides = [_members({k: v for k, v in one.settings.items() if k not in COUNTED}) for one in (before, after)]
    values = [(name, *(side.get(name, "none") for side in sides)) for name in {**sides[0], **sides[1]}]
    return tuple((name, _clipped(old), _clipped(new)) for name, old, new in values if old != new)


def _members(values: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Every value in JSON, by the path to it."""
    found: dict[str, str] = {}
    for name, value in values.items():
        inner = isinstance(value, Mapping)
        found |= _members(value, f"{path}{name}.") if inner else {f"{path}{name}": json.dumps(value, sort_keys=True)}
    return found


def _clipped(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}..."


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
    """Mean over the tries of each instance."""
    indices = [outcome.index for outcome in outcomes]
    means, _ = by_instance([float(getattr(outcome, name)) for outcome in outcomes], indices)
    return dict(zip(dict.fromkeys(indices), map(float, means), strict=True))


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """Two policies over the tasks that both have played."""

    tasks: tuple[Comparison, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]  # tasks that only A has, only B has
    overall: Mapping[str, Interval]  # figures over all tasks; none for a single one
    profiles: Mapping[str, Sequence[Interval]]  # of A and of B: share of tasks with a score above each of THRESHOLDS

    def state_dict(self) -> dict[str, Any]:
        """As plain values; what is no number is null."""
        tasks = [comparison.state_dict() for comparison in self.tasks]
        overall = {name: state(interval) for name, interval in self.overall.items()}
        shares = {side: [state(share) for share in found] for side, found in self.profiles.items()}
        profiles = {"thresholds": list(THRESHOLDS), **shares}
        return {"tasks": tasks, "only": [list(names) for names in self.only], "overall": overall, "profiles": profiles}


def compare_all(before: Sequence[Report], after: Sequence[Report]) -> Comparisons:
    """Compare task by task, p values adjusted by Holm; the rest is named. Raises InstanceError where no task is."""
    old, new = _by_task(before), _by_task(after)
    common = [name for name in old if name in new]
    if not common:
        raise InstanceError(f"the runs have no task and split in common: {sorted(old)} and {sorted(new)}")
    found = [compare(old[name], new[name]) for name in common]
    adjusted = zip(*(holm([getattr(one, name).p for one in found]) for name in ("success", "score")), strict=True)
    samples = _samples([(old[name], new[name]) for name in common]) if len(common) > 1 else None
    return Comparisons(
        tasks=tuple(replace(one, holm=p, holm_score=q) for one, (p, q) in zip(found, adjusted, strict=True)),
        only=(tuple(sorted(set(old) - set(common))), tuple(sorted(set(new) - set(common)))),
        overall=_overall(*samples) if samples else {},
        profiles={side: profile(found, THRESHOLDS) for side, found in zip("AB", samples, strict=True)}
        if samples
        else {},
    )


def _by_task(reports: Sequence[Report]) -> dict[str, Report]:
    found: dict[str, Report] = {}
    for report in reports:
        name = f"{report.task} {report.split}"
        if name in found:
            raise InstanceError(f"one side has two runs on {name}: compare them one by one")
        found[name] = report
    return found


Samples = list[list[Array]]  # of each task its runs, of each run the instances' mean scores


def _samples(pairs: Sequence[tuple[Report, Report]]) -> tuple[Samples, Samples]:
    """Mean scores of A and of B on the instances that both have."""
    samples: tuple[Samples, Samples] = ([], [])
    for reports in pairs:
        scores = [_means(report.played, "score") for report in reports]
        common = sorted(scores[0].keys() & scores[1].keys(), key=repr)
        for sample, found in zip(samples, scores, strict=True):
            sample.append([np.array([found[index] for index in common])])
    return samples


def _overall(old: Samples, new: Samples) -> dict[str, Interval]:
    """Figures over tasks."""
    apart = [[after[0] - before[0]] for before, after in zip(old, new, strict=True)]
    return {
        "A: interquartile mean": aggregate(old, interquartile_mean),
        "B: interquartile mean": aggregate(new, interquartile_mean),
        "A: mean": aggregate(old, lambda scores: scores.mean(-1)),
        "B: mean": aggregate(new, lambda scores: scores.mean(-1)),
        "mean gain": aggregate(apart, lambda scores: scores.mean(-1)),
        "probability of improvement": improvement(old, new),
    }


# Pages ---------------------------------------------------------------------------------------------------------


def page(found: Comparisons) -> Page:
    """The comparison as a document."""
    first, second = found.tasks[0].policies
    header = ("task", "figure", "A", "B", "B - A", "95 % interval", "better / worse", "p", "test", "shows at 80 %")
    lines = [line for one in found.tasks for line in _lines(one)]
    counts = [
        [f"{one.task} {one.split}", str(one.common), *map(str, one.only), *map(str, one.voided)] for one in found.tasks
    ]
    parts: list[TextTable | Plot] = [
        TextTable(
            "", header, lines, "Paired by instance. The last column is the smallest difference it could have shown."
        ),
        TextTable("Instances", ("task", "compared", "only A", "only B", "voided A", "voided B"), counts),
    ]
    settings = [[f"{one.task} {one.split}", *row] for one in found.tasks for row in one.settings]
    if settings:
        note = "The policies did not play under the same settings: what is found may be due to these."
        parts.append(TextTable("Settings that differ", ("task", "setting", "A", "B"), settings, note))
    if found.overall:
        overall = [[name, figure(one.mean), span(state(one))] for name, one in found.overall.items()]
        parts.insert(1, TextTable("Scores over tasks", ("figure", "estimate", "95 % interval"), overall))
        for name, place in (("Score", "holm_score"), ("Success", "holm")):
            ps = [
                [f"{one.task} {one.split}", f"{getattr(one, name.lower()).p:.2g}", f"{getattr(one, place):.2g}"]
                for one in found.tasks
            ]
            parts.insert(1, TextTable(f"{name}, adjusted for the number of tasks", ("task", "p", "p by Holm"), ps))
    for side, shares in found.profiles.items():
        points = [(low, share.mean, share.low, share.high) for low, share in zip(THRESHOLDS, shares, strict=True)]
        parts.append(Plot(f"Performance profile of {side}", points, "Share of tasks with a mean score above."))
    left = [[name, side] for side, names in zip("AB", found.only, strict=True) for name in names]
    parts += [TextTable("Tasks that only one side has", ("task", "side"), left)] if left else []
    return Page(f"A {first} and B {second}", parts)


def _lines(one: Comparison) -> list[list[str]]:
    return [
        [
            *(f"{one.task} {one.split}", name, figure(found.before), figure(found.after), f"{found.gain.mean:+.3f}"),
            *(f"{found.gain.low:+.3f} to {found.gain.high:+.3f}", f"{found.better} / {found.worse}"),
            *(f"{found.p:.2g}", found.test, figure(found.smallest)),
        ]
        for name, found in (("success", one.success), ("score", one.score))
    ]
