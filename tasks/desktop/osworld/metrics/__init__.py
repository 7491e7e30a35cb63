"""OSWorld's metrics by name: those whose applications exist here. Each returns a score in [0, 1].

A metric gets the result, what was expected, and the task's options. Files are paths; None is a file that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lmgym.tasks.desktop.osworld.metrics import colours, docs, lines, plain, sheets, slides, values

Metric = Callable[..., float]
METRICS: Mapping[str, Metric] = {
    metric.__name__: metric
    for module in (plain, values, colours, docs, lines, sheets, slides)
    for metric in module.METRICS
}
