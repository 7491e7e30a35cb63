"""Layout of plain text."""

from .boxes import Box, beside, stacked
from .outline import Outline, tree_lines
from .tables import Table, columns
from .wrapping import hyphenate, justified, minimal_raggedness, wrap

__all__ = [
    "Box",
    "Outline",
    "Table",
    "beside",
    "columns",
    "hyphenate",
    "justified",
    "minimal_raggedness",
    "stacked",
    "tree_lines",
    "wrap",
]
