"""Goals in text documents: styles, type, tables, find and replace, and export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.tasks.desktop.goals import Builder, DesktopGoal, office, words
from lmgym.tasks.desktop.moves import SAVE, Move, click, key, menu, typed
from lmgym.tasks.desktop.office import document, read_document, read_paragraphs, read_pdf

Rng = np.random.Generator
FILE = "report.docx"


def _paragraphs(rng: Rng, count: int = 4) -> list[str]:
    return [" ".join(words(rng, 5)).capitalize() + "." for _ in range(count)]


def _goal(text: str, lines: list[str], plan: tuple[Move, ...], reached: Callable[[Path], bool]) -> DesktopGoal:
    return DesktopGoal(
        text=f"{text} Save the document.",
        files={FILE: document(*lines)},
        launches=office(FILE),
        plan=(*plan, SAVE),
        reached=lambda home: reached(home / FILE),
        changes=frozenset({FILE}),
    )


def _words(text: str, lines: list[str], after: list[str], *plan: Move) -> DesktopGoal:
    """Return the goal that a document has these paragraphs."""
    return _goal(text, lines, plan, lambda path: [line for _, line in read_paragraphs(path)] == after)


def _seen(text: str, lines: list[str], look: Callable[[Any], bool], *plan: Move) -> DesktopGoal:
    """Return the goal that a document keeps its words and shows something else."""

    def reached(path: Path) -> bool:
        return [line for _, line in read_paragraphs(path)] == lines and read_document(path, look, otherwise=False)

    return _goal(text, lines, plan, reached)


def append_paragraph(rng: Rng) -> DesktopGoal:
    """Add a paragraph at the end."""
    *lines, added = _paragraphs(rng)
    text = f'Add the paragraph "{added}" at the end of report.docx, which is open.'
    return _words(text, lines, [*lines, added], key("ctrl+end"), key("enter"), typed(added))


def delete_paragraph(rng: Rng) -> DesktopGoal:
    """Delete the first paragraph."""
    lines = _paragraphs(rng)
    plan = (key("ctrl+home"), key("shift+end"), key("delete"), key("delete"))
    return _words("Delete the first paragraph of report.docx.", lines, lines[1:], *plan)


def replace_in_document(rng: Rng) -> DesktopGoal:
    """Replace a word wherever it stands."""
    old, new, *rest = words(rng, 6)
    lines = [f"{rest[0].title()} {old} {rest[1]}.", f"{rest[2].title()} {old}.", f"A {old} and {rest[3]}."]
    plan = (key("ctrl+h"), typed(old), key("alt+p"), typed(new), click("Replace All"), click("Close"))
    text = f'Replace every "{old}" in report.docx by "{new}".'
    return _words(text, lines, [line.replace(old, new) for line in lines], *plan)


def make_heading(rng: Rng) -> DesktopGoal:
    """Make the first paragraph a heading."""

    def look(text: Any) -> bool:
        first, second, *_ = text.paragraphs
        return bool(first.style.name == "Heading 1" and second.style.name != "Heading 1")

    text = "Give the first paragraph of report.docx the style Heading 1."
    return _seen(text, _paragraphs(rng), look, key("ctrl+home"), key("ctrl+1"))


def _first_line(family: str, wish: str, keys: str, look: Callable[[Any], bool]) -> Builder:
    """Return a family that changes the type of the first line by a hotkey."""

    def build(rng: Rng) -> DesktopGoal:
        def seen(text: Any) -> bool:
            runs = [run for run in text.paragraphs[0].runs if run.text.strip()]
            others = [run for run in text.paragraphs[1].runs if run.text.strip()]
            return all(map(look, runs)) and not any(map(look, others))

        plan = (key("ctrl+home"), key("shift+end"), key(keys))
        return _seen(f"Set the first paragraph of report.docx {wish}.", _paragraphs(rng), seen, *plan)

    build.__name__ = family
    return build


def _aligned(family: str, wish: str, keys: str, value: int) -> Builder:
    """Return a family that aligns the whole document."""

    def build(rng: Rng) -> DesktopGoal:
        def seen(text: Any) -> bool:
            return all(line.alignment == value for line in text.paragraphs if line.text.strip())

        return _seen(f"{wish} all paragraphs of report.docx.", _paragraphs(rng), seen, key("ctrl+a"), key(keys))

    build.__name__ = family
    return build


def insert_table(rng: Rng) -> DesktopGoal:
    """Insert a table."""
    lines, word = _paragraphs(rng), words(rng, 1)[0].capitalize()

    def look(text: Any) -> bool:
        sizes = [(len(table.rows), len(table.columns)) for table in text.tables]
        return sizes == [(2, 2)] and text.tables[0].cell(0, 0).text == word

    text = f'Insert a table of 2 rows and 2 columns at the end of report.docx and write "{word}" into its first cell.'
    plan = (key("ctrl+end"), key("enter"), key("ctrl+f12"), click("Insert"), typed(word))
    return _seen(text, lines, look, *plan)


def break_page(rng: Rng) -> DesktopGoal:
    """Start a new page before the last paragraph."""

    def look(text: Any) -> bool:
        last = [line for line in text.paragraphs if line.text.strip()][-1]
        xml = "".join(line._p.xml for line in text.paragraphs)
        return bool(last.paragraph_format.page_break_before) or 'w:br w:type="page"' in xml

    text = "Insert a page break before the last paragraph of report.docx."
    return _seen(text, _paragraphs(rng), look, key("ctrl+end"), key("home"), key("ctrl+enter"))


def make_list(rng: Rng) -> DesktopGoal:
    """Turn all paragraphs into a bulleted list."""

    def look(text: Any) -> bool:
        return all(line._p.xpath("./w:pPr/w:numPr") for line in text.paragraphs if line.text.strip())

    text = "Turn all paragraphs of report.docx into one bulleted list."
    return _seen(text, _paragraphs(rng), look, key("ctrl+a"), key("shift+f12"))


def export_document(rng: Rng) -> DesktopGoal:
    """Export a document as PDF."""
    lines = _paragraphs(rng)

    def reached(home: Path) -> bool:
        pages = " ".join(" ".join(read_pdf(home / "report.pdf")).split())
        return all(line in pages for line in lines)

    return DesktopGoal(
        text="Export report.docx, which is open, as report.pdf into the home folder.",
        files={FILE: document(*lines)},
        launches=office(FILE),
        plan=(*menu("f", "Export As", "Export Directly as PDF"), key("enter")),
        reached=reached,
        changes=frozenset({"report.pdf"}),
    )


def write_report(rng: Rng) -> DesktopGoal:
    """Write a report with a heading and three paragraphs, one of them bold."""
    title, lines = " ".join(words(rng, 2)).title(), _paragraphs(rng, 3)

    def reached(path: Path) -> bool:
        def bold(text: Any) -> bool:
            last = [line for line in text.paragraphs if line.text.strip()][-1]
            return all(run.bold for run in last.runs if run.text.strip())

        wanted = [title, *lines]
        paragraphs = read_paragraphs(path)
        return (
            [line for _, line in paragraphs] == wanted
            and paragraphs[0][0] == "Heading 1"
            and read_document(path, bold, False)
        )

    told = " ".join(f'"{line}"' for line in lines)
    plan: list[Move] = [typed(title), key("enter")]
    for line in lines:
        plan += [typed(line), key("enter")]
    plan += [key("backspace"), key("shift+home"), key("ctrl+b"), key("ctrl+home"), key("ctrl+1")]
    text = (
        f'Write into the empty report.docx the title "{title}" in the style Heading 1 and then the paragraphs {told}. '
    )
    text += "The last one is in bold type."
    return _goal(text, [], tuple(plan), reached)


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((append_paragraph, delete_paragraph, replace_in_document), 2),
    make_heading: 1,
    _first_line("bold_line", "in bold type", "ctrl+b", lambda run: bool(run.bold)): 2,
    _first_line("italic_line", "in italic type", "ctrl+i", lambda run: bool(run.italic)): 2,
    _first_line("underline_line", "underlined", "ctrl+u", lambda run: bool(run.underline)): 2,
    _aligned("centre_document", "Centre", "ctrl+e", 1): 1,
    _aligned("justify_document", "Justify", "ctrl+j", 3): 1,
    **dict.fromkeys((insert_table, break_page), 2),
    make_list: 1,
    export_document: 2,
    write_report: 3,
}
