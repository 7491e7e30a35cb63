"""curve.png: the learning curves of a run over its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmgym.train.log import read_metrics, writing

PANELS = (
    ("success of the episodes played and evaluated", ("success",)),
    ("loss, nats a token", ("loss",)),
    ("entropy, nats a token", ("entropy",)),
    ("turns of an episode", ("turns",)),
)
SMOOTH = 10  # steps of a running mean


def draw(folder: Path) -> Path:
    """Draw the log in `folder` and return the picture's path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = read_metrics(folder)
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for number, (title, names) in enumerate(PANELS):
        axes = figure.add_subplot(2, 2, number + 1)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("step of the run")
        for name in names:
            _lines(axes, rows, name)
        if number == 0:
            _evaluations(axes, rows)
            axes.set_ylim(-0.02, 1.02)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8, loc="lower left" if number == 0 else "upper right")
    path = folder / "curve.png"
    partial = folder / "curve.partial.png"
    with writing(path):
        canvas.print_png(partial)  # type: ignore[no-untyped-call]
        partial.replace(path)
    return path


def _lines(axes: Any, rows: list[dict[str, Any]], name: str) -> None:
    """Draw a smoothed line over a pale raw one for each stage."""
    for stage in dict.fromkeys(row["stage"] for row in rows):
        points = [(row["run_step"], row[name]) for row in rows if row["stage"] == stage and name in row]
        points = [point for point in points if isinstance(point[1], int | float)]
        if len(points) < 2:
            continue
        steps, values = zip(*points, strict=True)
        (line,) = axes.plot(steps, values, alpha=0.25, linewidth=0.8)
        smooth = [sum(values[max(0, i - SMOOTH + 1) : i + 1]) / min(i + 1, SMOOTH) for i in range(len(values))]
        axes.plot(steps, smooth, color=line.get_color(), linewidth=1.5, label=f"{stage}: {name}")


def _evaluations(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Draw evaluated success with its 95 % interval."""
    evaluations = [row for row in rows if "evaluated_success" in row]
    if not evaluations:
        return
    mean = [row["evaluated_success"] for row in evaluations]
    below = [row["evaluated_success"] - row["evaluated_low"] for row in evaluations]
    above = [row["evaluated_high"] - row["evaluated_success"] for row in evaluations]
    steps = [row["run_step"] for row in evaluations]
    axes.errorbar(steps, mean, yerr=(below, above), fmt="ko", capsize=3, label="evaluated success, 95 %")
