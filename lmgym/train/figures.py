"""Figures for the log, computed from episodes and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmgym.evaluation.report import own_figures
from lmgym.evaluation.runner import Report
from lmgym.train.parts.filters import drop_flat_groups, groups
from lmgym.train.seats import is_trained
from lmgym.types import Trajectory


def of_play(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return means over the episodes of a step, of each seat that is trained; without any, counts alone."""
    trajectories = [trajectory for trajectory in trajectories if is_trained(trajectory)]
    if not trajectories:
        return {"episodes": 0, "sampled_tokens": 0, "played_turns": 0}
    count = len(trajectories)
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    own = [turn for trajectory in trajectories for turn in trajectory.turns[trajectory.forked_at :]]
    flat = drop_flat_groups(trajectories).drop
    members = [group for group in groups(trajectories).values() if len(group) > 1]
    columns: dict[str, list[float]] = {}  # the task's own figures, of the episodes that have them
    for trajectory in trajectories:
        for name, value in trajectory.figures.items():
            columns.setdefault(f"figure_{name}", []).append(value)
    return {
        "episodes": count,
        "return": sum(t.reward for t in trajectories) / count,
        "success": sum(t.success for t in trajectories) / count,
        "score": sum(t.score for t in trajectories) / count,
        "turns": len(turns) / count,
        "truncated": sum(t.truncated for t in trajectories) / count,
        "invalid": sum(not turn.info.get("valid", True) for turn in turns) / max(1, len(turns)),
        "cut_answers": sum(turn.completion.finish != "stop" for turn in turns) / max(1, len(turns)),
        "flat_groups": sum(group[0].id in flat for group in members) / max(1, len(members)),
        "sampled_tokens": sum(len(turn.completion.ids) for turn in own),
        "played_turns": len(own),
        **{name: sum(values) / len(values) for name, values in sorted(columns.items())},
    }


def of_demonstrations(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return means over demonstrations; their success is logged as `demonstrated_success`."""
    played = of_play(trajectories)
    names = ("episodes", "turns", "truncated", "invalid", "played_turns")
    kept = {name: value for name, value in played.items() if name in names}
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    kept["stumbles"] = sum(bool(turn.info.get("stumble")) for turn in turns) / max(1, len(turns))
    kept["longest_answer"] = float(max((len(turn.completion.ids) for turn in turns), default=0))
    success = {"demonstrated_success": played["success"]} if "success" in played else {}
    return {**kept, **success, "demonstrated_tokens": played["sampled_tokens"]}


def over_draws(drawn: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Combine the figures of several updates of a step: token sums, extremes, last counts, and means of the rest.

    An update without trained tokens has no other figures.
    """
    names = {name: None for figures in drawn for name in figures}
    columns = {name: [figures[name] for figures in drawn if name in figures] for name in names}
    return {name: _together(name, values) for name, values in columns.items()}


def _together(name: str, values: Sequence[float]) -> float:
    if name == "trained_tokens":
        return sum(values)
    if name in ("optimiser_steps", "lr"):
        return values[-1]
    if name.endswith(("_min", "_max")):
        return (min if name.endswith("_min") else max)(values)
    return sum(values) / len(values)


def of_evaluation(report: Report, prefix: str) -> dict[str, float]:
    """Return the figures of an evaluation report, with `prefix` before their names."""
    figures = {
        "episodes": len(report.outcomes),
        "success": report.success.mean,
        "low": report.success.low,
        "high": report.success.high,
        "score": report.score.mean,
        "turns": report.turns.mean,
        **{f"figure_{name}": each.mean for name, (each, _) in own_figures(report.played).items()},
    }
    return {f"{prefix}_{name}": value for name, value in figures.items()}
