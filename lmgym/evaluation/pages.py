"""Tables and plots as Markdown and as one HTML file. Their text is untrusted: it is escaped everywhere."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lmgym.visible import visible

MARKED = re.compile(r"[\\`*_{}\[\]#!|~:@$]|(?<=www)\.", re.IGNORECASE)  # characters of Markdown's syntax

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: light-dark(#59616d, #a5adb8); --mark: #2a6fb0; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
html { background: light-dark(#fff, #16181c); }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .25rem .8rem; border-bottom: 1px solid var(--line); }
th { text-align: left; } td { overflow-wrap: anywhere; } td + td { font-variant-numeric: tabular-nums; }
p { color: var(--soft); max-width: 45rem; } .scroll { overflow-x: auto; }
svg { max-width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.axis { stroke: var(--soft); } .band { fill: var(--mark); opacity: .2; } .curve { fill: none; stroke: var(--mark); }
"""


@dataclass(frozen=True)
class TextTable:
    """A table of text."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """A line with a band: (x, y, low, high), y in [0, 1]."""

    title: str
    points: Sequence[tuple[float, float, float, float]]
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A document."""

    title: str
    parts: Sequence[TextTable | Plot] = field(default_factory=tuple)
    note: str = ""


def in_markdown(text: str) -> str:
    """Escape text for Markdown: it contains no markup, link, table cell or line break."""
    return html.escape(MARKED.sub(r"\\\g<0>", visible(text)), quote=False)


def in_html(text: str) -> str:
    """Escape text for HTML elements and quoted attributes."""
    return html.escape(visible(text))


def as_markdown(page: Page) -> str:
    """Return the document in GitHub's Markdown, with plots as tables."""
    lines = [f"# {in_markdown(page.title)}", ""]
    if page.note:
        lines += [in_markdown(page.note), ""]
    for part in page.parts:
        table = part if isinstance(part, TextTable) else _points(part)
        lines += [f"## {in_markdown(table.title)}", ""] if table.title else []
        lines += [_row(table.header), f"|{'---|' * len(table.header)}", *map(_row, table.rows), ""]
        lines += [in_markdown(table.note), ""] if table.note else []
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(in_markdown(cell) for cell in cells)} |"


def _points(plot: Plot) -> TextTable:
    rows = [[f"{x:g}", f"{y:.3f}", f"{low:.3f} to {high:.3f}"] for x, y, low, high in plot.points]
    return TextTable(plot.title, ("at", "mean", "95 % interval"), rows, plot.note)


def as_html(page: Page) -> str:
    """Return the document as one HTML file that loads nothing and runs no script."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    parts = [_table(part) if isinstance(part, TextTable) else _figure(part) for part in page.parts]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{in_html(page.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{in_html(page.title)}</h1>
{_paragraph(page.note)}
{"".join(parts)}
</main>
</body>
</html>
"""


def _paragraph(text: str) -> str:
    return f"<p>{in_html(text)}</p>\n" if text else ""


def _table(table: TextTable) -> str:
    head = "".join(f'<th scope="col">{in_html(cell)}</th>' for cell in table.header)
    rows = "".join(f"<tr>{''.join(f'<td>{in_html(cell)}</td>' for cell in row)}</tr>\n" for row in table.rows)
    title = f"<h2>{in_html(table.title)}</h2>\n" if table.title else ""
    body = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
    return f'{title}<div class="scroll" tabindex="0">{body}</div>\n{_paragraph(table.note)}'


def _figure(plot: Plot) -> str:
    """Draw line and band as an SVG of 600 x 195 units."""
    title = f"<h2>{in_html(plot.title)}</h2>\n"
    if not plot.points:
        return title + _paragraph(plot.note)
    first, last = plot.points[0][0], plot.points[-1][0]

    def at(x: float, y: float) -> str:
        return f"{40 + 550 * (x - first) / ((last - first) or 1):.1f},{10 + 160 * (1 - y):.1f}"

    low = [at(x, bottom) for x, _, bottom, _ in plot.points]
    high = [at(x, top) for x, _, _, top in plot.points]
    line = [at(x, y) for x, y, _, _ in plot.points]
    ticks = "".join(f'<text x="4" y="{14 + 160 * (1 - y):.0f}">{y:g}</text>' for y in (0.0, 0.5, 1.0))
    ends = f'<text x="40" y="188">{first:g}</text><text x="570" y="188">{last:g}</text>'
    return f"""{title}<svg viewBox="0 0 600 195" width="600" role="img" aria-label="{in_html(plot.title)}">
<path class="axis" fill="none" d="M40,10 V170 H590"/>{ticks}{ends}
<polygon class="band" points="{" ".join([*high, *reversed(low)])}"/>
<polyline class="curve" points="{" ".join(line)}"/>
</svg>
{_paragraph(plot.note)}"""
