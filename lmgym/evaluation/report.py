"""What an evaluation found: `report.json` with the record and its statistics, the same in Markdown and HTML.

Nothing is dropped silently: what was planned and not played, what a backend voided, and what is not known is counted.
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
    ratio,
    student,
    unit,
)

NAME = "report.json"
COUNTED = ("turns", "tokens_in", "tokens_out", "seconds")  # of an outcome, unbounded
UNKNOWN = {"mean": None, "low": None, "high": None, "method": "", "total": None}
BUDGETS = 40  # points of the curve over turn budgets, at most

State = dict[str, Any]


def statistics(report: Report) -> State:
    """All figures of a report as plain values; an interval is `{mean, low, high, method}`, null where not known."""
    played, found = report.played, report.outcomes
    names = report.instances
    tries = Counter(outcome.index for outcome in found)
    return {
        "episodes": {
            "planned": max(report.planned, len(found)),
            "played": len(played),
            "voided": len(found) - len(played),
            "missing": max(report.planned - len(found), 0),
        },
        "instances": len(set(names)),
        "tries": {"least": min(Counter(names).values(), default=0), "most": max(tries.values(), default=0)},
        "success": _unit([float(outcome.success) for outcome in played], names),
        "score": _unit([outcome.score for outcome in played], names),
        **_partial(report),
        "passes": _passes(played, max(tries.values(), default=0)),
        "success_by_turns": _by_turns(played),
        **_counted(played, names),
        "cost": _cost(found),
        "invalid": state(_invalid(played)),
        "answers": {name: sum(getattr(outcome, name) for outcome in played) for name in ("cut", "filtered")},
        "stops": dict(Counter(outcome.stop or "not recorded" for outcome in found).most_common()),
        "truncated": sum(outcome.truncated for outcome in played),
        "stopped": report.stopped,
    }


def state(interval: Interval) -> State:
    """As plain values; what is no number is null."""
    values = {name: getattr(interval, name) for name in ("mean", "low", "high")}
    return {
        **{name: value if math.isfinite(value) else None for name, value in values.items()},
        "method": interval.method,
    }


def _unit(values: list[float], names: Sequence[object]) -> State:
    """Interval of a mean in [0, 1], and what other methods say."""
    means, tries = by_instance(values, names)
    others = {"t": state(student(means, bounds=(0.0, 1.0))), "bootstrap": state(bootstrap(means, bounds=(0.0, 1.0)))}
    if len(tries) and tries.max() == 1 and set(values) <= {0.0, 1.0}:
        others["clopper_pearson"] = state(clopper_pearson(int(sum(values)), len(values)))
    return {**state(unit(values, names)), **others}


def _partial(report: Report) -> State:
    """Share of episodes with a score above 0, by its name, where others count it as success."""
    try:
        name = find(report.task).partial
    except InstanceError:  # a task of another version, or of somebody else
        return {}
    above = [float(outcome.score > 0) for outcome in report.played]
    return {"partial": {"name": name, **_unit(above, report.instances)}} if name else {}


def _passes(played: Sequence[Outcome], tries: int) -> list[State]:
    """pass@k and pass^k over the instances that have k results; their number stands beside them."""
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
    """pass@k and pass^k of a report. Raises InstanceError where an instance has fewer than k results."""
    successes, tries = _counts(report.played)
    if not 1 <= k <= min(tries, default=0):
        raise InstanceError(
            f"{report.task} {report.split} has instances with {int(min(tries, default=0))} results: "
            f"neither pass@{k} nor pass^{k} can be estimated without bias; evaluate with --tries {k}"
        )
    return passes(successes, tries, [k])[0]


def _by_turns(played: Sequence[Outcome]) -> list[State]:
    """Success if episodes had ended after so many turns."""
    longest = max((outcome.turns for outcome in played), default=0)
    names = [outcome.index for outcome in played]
    budgets = sorted({math.ceil(longest * n / BUDGETS) for n in range(1, BUDGETS + 1)}) if longest else []
    solved = {
        budget: [float(outcome.solved_at is not None and outcome.solved_at <= budget) for outcome in played]
        for budget in budgets
    }
    return [{"turns": budget, **state(unit(values, names))} for budget, values in solved.items()]


def _counted(played: Sequence[Outcome], names: Sequence[object]) -> State:
    """Means over instances, bootstrap intervals, and sums; null as soon as the figure of one episode is not known."""
    columns = {name: [getattr(outcome, name) for outcome in played] for name in COUNTED}
    known = {name: [float(value) for value in column] for name, column in columns.items() if None not in column}
    means = np.stack([by_instance(column, names)[0] for column in known.values()], axis=1)
    found = {
        name: {**state(interval), "total": sum(column)}
        for (name, column), interval in zip(known.items(), bootstraps(means), strict=True)
    }
    return {name: found.get(name, UNKNOWN) for name in COUNTED}


def _cost(found: Sequence[Outcome]) -> State:
    """US dollars of all episodes, voided ones too; the total is null while that of any episode is not known."""
    known = [outcome.cost for outcome in found if outcome.cost is not None]
    unknown = len(found) - len(known)
    total = sum(known) if not unknown else None
    return {"total": total, "known": sum(known), "episodes_unknown": unknown}


def _invalid(played: Sequence[Outcome]) -> Interval:
    """Share of the turns whose action was none."""
    names = [outcome.index for outcome in played]
    invalid, tries = by_instance([float(outcome.invalid) for outcome in played], names)
    turns, _ = by_instance([float(outcome.turns) for outcome in played], names)
    return ratio(invalid * tries, turns * tries)


# Files ---------------------------------------------------------------------------------------------------------


def write(folder: Path, report: Report) -> State:
    """Write `report.json`, `report.md` and `report.html`; return the statistics."""
    found = statistics(report)
    shown = page(report, found)
    pages.replace_file(folder / "report.md", pages.as_markdown(shown))
    pages.replace_file(folder / "report.html", pages.as_html(shown))
    record = {**report.state_dict(), "statistics": found}
    pages.replace_file(folder / NAME, json.dumps(record, indent=1, allow_nan=False))
    return found


def read(path: Path) -> Report:
    """The report of a file or of a run's folder. Raises InstanceError where there is none."""
    file = path / NAME if path.is_dir() else path
    if not file.is_file():
        raise InstanceError(f"{path} has no {NAME}; lmgym eval --out writes one")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return Report.from_state({name: value for name, value in record.items() if name != "statistics"})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InstanceError(f"{file} is no report: {error!r}") from error


def read_all(path: Path) -> list[Report]:
    """The reports of a run, or of all runs in the folders of `path`."""
    if path.is_file() or (path / NAME).is_file():
        return [read(path)]
    found = [read(file) for file in sorted(path.glob(f"*/{NAME}"))]
    if not found:
        raise InstanceError(f"neither {path} nor a folder in it has a {NAME}; lmgym eval --out writes one")
    return found


# Pages ---------------------------------------------------------------------------------------------------------


def page(report: Report, found: Mapping[str, Any]) -> pages.Page:
    """The figures as a document."""
    settings = [["policy", report.policy], ["weights", str(report.version)], ["seed", str(report.seed)]]
    settings += [[str(name), str(value)] for name, value in report.options.items()]
    settings += [["identity", report.identity]] if report.identity else []
    curve = [(point["turns"], point["mean"], point["low"], point["high"]) for point in found["success_by_turns"]]
    parts: list[pages.TextTable | pages.Plot] = [
        pages.TextTable("", ("figure", "mean", "95 % interval", "how"), _results(found))
    ]
    parts.append(pages.TextTable("Episodes", ("episodes", "number"), _episodes(found), _warning(found)))
    if found["tries"]["most"] > 1:
        parts.append(_pass_table(found))
    parts.append(pages.Plot("Success by turn budget", curve, "Share solved within so many turns, by number of turns."))
    parts.append(pages.TextTable("Per episode", ("figure", "mean", "95 % interval", "in all"), _costs(found)))
    parts.append(pages.TextTable("What ended episodes", ("reason", "episodes"), _pairs(found["stops"])))
    parts.append(pages.TextTable("Settings", ("setting", "value"), settings))
    return pages.Page(f"{report.task} {report.split}: {report.policy}", parts)


def rows(found: Mapping[str, Any]) -> list[list[str]]:
    """The lines that a terminal shows: name, mean, interval, how it was found."""
    return [*_results(found), *([label, mean, interval, ""] for label, mean, interval, _ in _costs(found))]


def _results(found: Mapping[str, Any]) -> list[list[str]]:
    names = (("success", "success"), ("score", "score"), ("invalid actions", "invalid"))
    lines = [[label, figure(found[name]["mean"]), span(found[name]), found[name]["method"]] for label, name in names]
    if above := found.get("partial"):
        lines.insert(1, [above["name"], figure(above["mean"]), span(above), above["method"]])
    return lines


def _episodes(found: Mapping[str, Any]) -> list[list[str]]:
    counts = {**found["episodes"], "instances": found["instances"], "cut off (truncated)": found["truncated"]}
    least, most = found["tries"]["least"], found["tries"]["most"]
    answers = {f"answers {name}": number for name, number in found["answers"].items()}
    return [
        *_pairs(counts),
        ["tries of an instance", str(most) if least == most else f"{least} to {most}"],
        *_pairs(answers),
    ]


def _warning(found: Mapping[str, Any]) -> str:
    counts = found["episodes"]
    said = [f"This run is partial: {counts['missing']} of {counts['planned']} episodes are missing."] * bool(
        counts["missing"]
    )
    said += [f"It stopped early: {found['stopped']}."] * bool(found["stopped"])
    said += [f"{counts['voided']} episodes broke at every try and are in no mean."] * bool(counts["voided"])
    return " ".join(said)


def _pass_table(found: Mapping[str, Any]) -> pages.TextTable:
    lines = [
        [str(row["k"]), *(text for kind in ("any", "all") for text in (figure(row[kind]["mean"]), span(row[kind])))]
        + [str(row["instances"])]
        for row in found["passes"]
    ]
    header = ("k", "pass@k: any", "95 % interval", "pass^k: all", "95 % interval", "instances")
    return pages.TextTable("Of k tries", header, lines, "Unbiased; bootstrap over the instances that have k results.")


def _costs(found: Mapping[str, Any]) -> list[list[str]]:
    labels = {"tokens_in": "tokens in", "tokens_out": "tokens out"}
    lines = [
        [labels.get(name, name), figure(found[name]["mean"]), span(found[name]), _total(found[name]["total"])]
        for name in COUNTED
    ]
    cost, episodes = found["cost"], found["episodes"]["played"] + found["episodes"]["voided"]
    if cost["total"] is None:
        known = f"unknown for {cost['episodes_unknown']} of {episodes} episodes; ${cost['known']:.4f} known"
        return [*lines, ["cost", "unknown", "", known]]
    return [*lines, ["cost", f"${cost['total'] / max(episodes, 1):.4f}", "", f"${cost['total']:.4f}"]]


def _total(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"


def _pairs(counts: Mapping[str, Any]) -> list[list[str]]:
    return [[name, str(value)] for name, value in counts.items()]


def figure(value: float | None) -> str:
    """A number for people; "-" where it is not known."""
    return "-" if value is None else f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def span(interval: Mapping[str, Any]) -> str:
    """The ends of an interval for people."""
    if interval["low"] is None or interval["high"] is None:
        return interval["method"] or "-"
    return f"{figure(interval['low'])} to {figure(interval['high'])}"
