"""Reports of evaluations: `report.json` with outcomes and statistics, and the same as Markdown and HTML.

Every planned episode is in one count (played, voided or missing), and an unknown figure is null, never 0.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.env.registry import find
from lmgym.errors import InstanceError
from lmgym.evaluation import pages
from lmgym.evaluation.passes import passes
from lmgym.evaluation.runner import Outcome, Report
from lmgym.evaluation.stats import (
    Array,
    Interval,
    bootstrap,
    bootstraps,
    by_instance,
    clopper_pearson,
    mean_figure,
    ratio,
    student,
    unit,
)
from lmgym.rollout.picture_folder import write_whole

NAME = "report.json"
COUNTED = ("turns", "tokens_in", "tokens_out", "seconds")  # unbounded figures of an outcome
UNKNOWN = {"mean": None, "low": None, "high": None, "method": "", "total": None}
BUDGETS = 40  # maximum points of the curve over turn budgets

State = dict[str, Any]


def statistics(report: Report) -> State:
    """Return all figures of a report as plain values; an interval is `{mean, low, high, method}`, null if unknown."""
    played, outcomes, names = report.played, report.outcomes, report.instances
    tries = Counter(outcome.index for outcome in outcomes)
    invalid, results = by_instance([float(outcome.invalid) for outcome in played], names)
    turns, _ = by_instance([float(outcome.turns) for outcome in played], names)
    costs = [outcome.cost for outcome in outcomes if outcome.cost is not None]
    unknown = len(outcomes) - len(costs)
    longest = max((outcome.turns for outcome in played), default=0)
    budgets = sorted({math.ceil(longest * n / BUDGETS) for n in range(1, BUDGETS + 1)}) if longest else []
    solved_at = [math.inf if outcome.solved_at is None else outcome.solved_at for outcome in played]
    by_budget = {limit: unit([float(count <= limit) for count in solved_at], names) for limit in budgets}
    return {
        "episodes": {
            "planned": max(report.planned, len(outcomes)),
            "played": len(played),
            "voided": len(outcomes) - len(played),
            "missing": max(report.planned - len(outcomes), 0),
        },
        "instances": len(set(names)),
        "tries": {"least": min(Counter(names).values(), default=0), "most": max(tries.values(), default=0)},
        "success": _unit([float(outcome.success) for outcome in played], names),
        "score": _unit([outcome.score for outcome in played], names),
        **_partial(report),
        "figures": {name: {**state(each), "episodes": count} for name, (each, count) in own_figures(played).items()},
        "exact": dict(report.exact),
        "passes": _passes(played, max(tries.values(), default=0)),
        "success_by_turns": [{"turns": limit, **state(rate)} for limit, rate in by_budget.items()],
        **_counted(played, names),
        # US dollars, of voided episodes as well; the total is null if one is unknown
        "cost": {"total": None if unknown else sum(costs), "known": sum(costs), "episodes_unknown": unknown},
        "invalid": state(ratio(invalid * results, turns * results)),  # share of turns
        "answers": {name: sum(getattr(outcome, name) for outcome in played) for name in ("cut", "filtered")},
        "stops": dict(Counter(outcome.stop or "not recorded" for outcome in outcomes).most_common()),
        "truncated": sum(outcome.truncated for outcome in played),
        "stopped": report.stopped,
    }


def state(interval: Interval) -> State:
    """Return an interval as plain values, with null for nan and infinity."""
    values = {name: getattr(interval, name) for name in ("mean", "low", "high")}
    return {
        **{name: value if math.isfinite(value) else None for name, value in values.items()},
        "method": interval.method,
    }


def _unit(values: list[float], names: Sequence[object]) -> State:
    """Return the interval of a mean in [0, 1], and those of other methods."""
    means, tries = by_instance(values, names)
    others = {"t": state(student(means, bounds=(0.0, 1.0))), "bootstrap": state(bootstrap(means, bounds=(0.0, 1.0)))}
    if len(tries) and tries.max() == 1 and set(values) <= {0.0, 1.0}:
        others["clopper_pearson"] = state(clopper_pearson(int(sum(values)), len(values)))
    return {**state(unit(values, names)), **others}


def _partial(report: Report) -> State:
    """Return the share of episodes with a score above 0, if the task's benchmark reports it, under its name there."""
    try:
        name = find(report.task).partial
    except InstanceError:  # a task of another version or plug-in
        return {}
    above = [float(outcome.score > 0) for outcome in report.played]
    return {"partial": {"name": name, **_unit(above, report.instances)}} if name else {}


def own_figures(played: Sequence[Outcome]) -> dict[str, tuple[Interval, int]]:
    """Return the mean of each of the task's own figures, with its interval and the number of episodes that have it."""
    named = sorted({name for outcome in played for name in outcome.figures})
    averaged = {}
    for name in named:
        having = [outcome for outcome in played if name in outcome.figures]
        values = [outcome.figures[name] for outcome in having]
        averaged[name] = mean_figure(values, [outcome.index for outcome in having]), len(having)
    return averaged


def _passes(played: Sequence[Outcome], tries: int) -> list[State]:
    """Return pass@k and pass^k over the instances with k results, and their number."""
    successes, results = _counts(played)
    ks = [k for k in range(1, tries + 1) if tries <= 10 or k & (k - 1) == 0 or k == tries]
    rows = []
    for k in ks:
        enough = results >= k
        if enough.any():
            ((any_of, all_of),) = passes(successes[enough], results[enough], [k])
            rows.append({"k": k, "instances": int(enough.sum()), "any": state(any_of), "all": state(all_of)})
    return rows


def _counts(played: Sequence[Outcome]) -> tuple[Array, Array]:
    means, tries = by_instance([float(outcome.success) for outcome in played], [outcome.index for outcome in played])
    return np.rint(means * tries), tries


def pass_k(report: Report, k: int) -> tuple[Interval, Interval]:
    """Return pass@k and pass^k of a report. Raises InstanceError if an instance has fewer than k results."""
    successes, tries = _counts(report.played)
    if not 1 <= k <= min(tries, default=0):
        raise InstanceError(
            f"{report.task} {report.split} has instances with {int(min(tries, default=0))} results: "
            f"neither pass@{k} nor pass^{k} can be estimated without bias; evaluate with --tries {k}"
        )
    return passes(successes, tries, [k])[0]


def _counted(played: Sequence[Outcome], names: Sequence[object]) -> State:
    """Return means over instances with bootstrap intervals, and sums; null if one episode's figure is unknown."""
    columns = {name: [getattr(outcome, name) for outcome in played] for name in COUNTED}
    complete = {name: [float(value) for value in column] for name, column in columns.items() if None not in column}
    means = np.stack([by_instance(column, names)[0] for column in complete.values()], axis=1)
    figures = {
        name: {**state(interval), "total": sum(column)}
        for (name, column), interval in zip(complete.items(), bootstraps(means), strict=True)
    }
    return {name: figures.get(name, UNKNOWN) for name in COUNTED}


def write(folder: Path, report: Report) -> State:
    """Write `report.json`, `report.md` and `report.html`; return the statistics."""
    figures = statistics(report)
    document = page(report, figures)
    write_whole(folder / "report.md", pages.as_markdown(document).encode())
    write_whole(folder / "report.html", pages.as_html(document).encode())
    record = {**report.state_dict(), "statistics": figures}
    write_whole(folder / NAME, json.dumps(record, indent=1, allow_nan=False).encode())
    return figures


def read(path: Path) -> Report:
    """Read the report of a file or of a run's folder. Raises InstanceError if there is none."""
    file = path / NAME if path.is_dir() else path
    if not file.is_file():
        raise InstanceError(f"{path} has no {NAME}; lmgym eval --out writes one")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return Report.from_state({name: value for name, value in record.items() if name != "statistics"})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InstanceError(f"{file} is not a report: {error!r}") from error


def read_all(path: Path) -> list[Report]:
    """Read the report of a run, or those of all runs in the folders of `path`."""
    if path.is_file() or (path / NAME).is_file():
        return [read(path)]
    reports = [read(file) for file in sorted(path.glob(f"*/{NAME}"))]
    if not reports:
        raise InstanceError(f"neither {path} nor a folder in it has a {NAME}; lmgym eval --out writes one")
    return reports


def page(report: Report, figures: Mapping[str, Any]) -> pages.Page:
    """Return the figures as a document."""
    settings = [["policy", report.policy], ["weights", str(report.version)], ["seed", str(report.seed)]]
    settings += [[str(name), str(value)] for name, value in report.options.items()]
    settings += [["identity", report.identity]] if report.identity else []
    curve = [(point["turns"], point["mean"], point["low"], point["high"]) for point in figures["success_by_turns"]]
    header = ("figure", "mean", "95 % interval")
    counts = {**figures["episodes"], "instances": figures["instances"], "truncated": figures["truncated"]}
    least, most = figures["tries"]["least"], figures["tries"]["most"]
    counts["tries per instance"] = str(most) if least == most else f"{least} to {most}"
    counts |= {f"answers {name}": number for name, number in figures["answers"].items()}
    parts: list[pages.TextTable | pages.Plot] = [
        pages.TextTable("", (*header, "method"), _results(figures)),
        pages.TextTable("Episodes", ("episodes", "number"), _pairs(counts), _warning(figures)),
        *([_pass_table(figures)] if figures["tries"]["most"] > 1 else []),
        pages.Plot("Success by turn budget", curve, "Share of episodes solved within a number of turns."),
        pages.TextTable("Per episode", (*header, "total"), _costs(figures)),
        pages.TextTable("Stop reasons", ("reason", "episodes"), _pairs(figures["stops"])),
        pages.TextTable("Settings", ("setting", "value"), settings),
    ]
    return pages.Page(f"{report.task} {report.split}: {report.policy}", parts)


def rows(figures: Mapping[str, Any]) -> list[list[str]]:
    """Return the lines of a terminal's table: name, mean, interval and method."""
    return [*_results(figures), *([label, mean, interval, ""] for label, mean, interval, _ in _costs(figures))]


def _results(figures: Mapping[str, Any]) -> list[list[str]]:
    named = [("success", figures["success"]), ("score", figures["score"]), ("invalid actions", figures["invalid"])]
    if partial := figures.get("partial"):
        named.insert(1, (partial["name"], partial))
    named += ((name.replace("_", " "), own) for name, own in figures["figures"].items())
    results = [[label, figure(one["mean"]), span(one), one["method"]] for label, one in named]
    exact = figures.get("exact", {}).items()
    return [*results, *([name.replace("_", " "), f"{value:.5f}", "", "exact"] for name, value in exact)]


def _warning(figures: Mapping[str, Any]) -> str:
    counts, sentences = figures["episodes"], []
    if counts["missing"]:
        sentences.append(f"This run is partial: {counts['missing']} of {counts['planned']} episodes are missing.")
    if figures["stopped"]:
        sentences.append(f"It stopped early: {figures['stopped']}.")
    if counts["voided"]:
        sentences.append(f"{counts['voided']} episodes failed at every attempt and are in no mean.")
    return " ".join(sentences)


def _pass_table(figures: Mapping[str, Any]) -> pages.TextTable:
    lines = [
        [str(row["k"]), *(text for kind in ("any", "all") for text in (figure(row[kind]["mean"]), span(row[kind])))]
        + [str(row["instances"])]
        for row in figures["passes"]
    ]
    header = ("k", "pass@k: any", "95 % interval", "pass^k: all", "95 % interval", "instances")
    return pages.TextTable("pass@k and pass^k", header, lines, "Unbiased; bootstrap over instances with k results.")


def _costs(figures: Mapping[str, Any]) -> list[list[str]]:
    lines = [
        [
            name.replace("_", " "),
            figure(figures[name]["mean"]),
            span(figures[name]),
            "unknown" if figures[name]["total"] is None else f"{figures[name]['total']:.6g}",
        ]
        for name in COUNTED
    ]
    cost, episodes = figures["cost"], figures["episodes"]["played"] + figures["episodes"]["voided"]
    if cost["total"] is None:
        detail = f"unknown for {cost['episodes_unknown']} of {episodes} episodes; ${cost['known']:.4f} known"
        return [*lines, ["cost", "unknown", "", detail]]
    return [*lines, ["cost", f"${cost['total'] / max(episodes, 1):.4f}", "", f"${cost['total']:.4f}"]]


def _pairs(counts: Mapping[str, Any]) -> list[list[str]]:
    return [[name, str(value)] for name, value in counts.items()]


def figure(value: float | None) -> str:
    """Format a number; "-" if it is unknown."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def span(interval: Mapping[str, Any]) -> str:
    """Format the bounds of an interval."""
    if interval["low"] is None or interval["high"] is None:
        return interval["method"] or "-"
    return f"{figure(interval['low'])} to {figure(interval['high'])}"
