"""Goals over several applications: what one shows goes into another."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.goals import TERMINAL, Builder, DesktopGoal, content, editor, note, numbers, office, words
from lmgym.tasks.desktop.moves import SAVE, Move, cell, click, key, shell, typed
from lmgym.tasks.desktop.office import charted, document, pdf, read_cells, read_charts, read_paragraphs, workbook

Rng = np.random.Generator
BOOK = "stock.xlsx"


def pdf_to_sheet(rng: Rng) -> DesktopGoal:
    """Copy the numbers of a PDF file into a sheet."""
    names, amounts = words(rng, 3), numbers(rng, 3)
    lines = [f"{name}: {amount} EUR" for name, amount in zip(names, amounts, strict=True)]
    wanted = {f"A{y}": name for y, name in enumerate(names, 1)} | {f"B{y}": n for y, n in enumerate(amounts, 1)}
    return DesktopGoal(
        text="The open bill.pdf lists amounts. Enter each amount beside its name, in column B of stock.xlsx; save it.",
        files={"bill.pdf": pdf("Bill", *lines), BOOK: workbook(("Stock", [(name,) for name in names]))},
        launches=(Launch("evince", ("bill.pdf",), "bill.pdf"), *office(BOOK)),
        plan=(*cell("B1"), typed("".join(f"{amount}\n" for amount in amounts)), SAVE),
        reached=lambda home: read_cells(home / BOOK) == wanted,
        changes=frozenset({BOOK}),
    )


def sheet_to_text(rng: Rng) -> DesktopGoal:
    """Write a number of a sheet into a text."""
    names, amounts = words(rng, 5), numbers(rng, 5)
    name = names[amounts.index(max(amounts))]
    rows = list(zip(names, amounts, strict=True))
    return DesktopGoal(
        text="Write the name with the largest number in stock.xlsx, and nothing else, into answer.txt. Both are open.",
        files={BOOK: workbook(("Stock", rows)), "answer.txt": ""},
        launches=(*office(BOOK), *editor("answer.txt")),
        plan=(typed(name), SAVE),
        reached=lambda home: (content(home / "answer.txt") or "").strip() == name,
        changes=frozenset({"answer.txt"}),
    )


def text_to_sheet(rng: Rng) -> DesktopGoal:
    """Copy the lines of a text into a sheet."""
    lines = words(rng, 5)
    wanted = {f"A{y}": line for y, line in enumerate(lines, 1)}
    plan: list[Move] = [*cell("A1")]
    for line in lines:
        plan += [typed(line), key("enter")]
    return DesktopGoal(
        text="Copy the lines of the open list.txt into column A of stock.xlsx, one a row from A1 on. Save the sheet.",
        files={"list.txt": "\n".join(lines) + "\n", BOOK: workbook(("Stock", []))},
        launches=(*editor("list.txt"), *office(BOOK)),
        plan=(*plan, SAVE),
        reached=lambda home: read_cells(home / BOOK) == wanted,
        changes=frozenset({BOOK}),
    )


def list_to_text(rng: Rng) -> DesktopGoal:
    """Write the names of a folder's files, seen in a terminal, into a text."""
    names = sorted(f"{word}.dat" for word in words(rng, 4))
    return DesktopGoal(
        text="Write the names of the files in the folder data into the open list.txt, sorted, one a line; save it.",
        files={"list.txt": "", **{f"data/{name}": name for name in names}},
        launches=(*editor("list.txt"), *TERMINAL),
        plan=(*shell("ls data"), key("alt+tab"), typed("\n".join(names) + "\n"), SAVE),
        reached=lambda home: (content(home / "list.txt") or "").split() == names,
        changes=frozenset({"list.txt"}),
    )


def text_to_script(rng: Rng) -> DesktopGoal:
    """Write a script in the editor and run it in the terminal."""
    word, name = words(rng, 2)
    script = f'echo "{word}" >result.txt\n'
    return DesktopGoal(
        text=f'Write the line echo "{word}" >result.txt into {name}.sh, save it, and run it with bash in '
        "the home folder of the terminal.",
        files={f"{name}.sh": ""},
        launches=(*TERMINAL, *editor(f"{name}.sh")),
        plan=(typed(script), SAVE, key("alt+tab"), *shell(f"bash {name}.sh")),
        reached=lambda home: content(home / f"{name}.sh") == script and content(home / "result.txt") == f"{word}\n",
        changes=frozenset({f"{name}.sh", "result.txt"}),
    )


def pdf_to_text(rng: Rng) -> DesktopGoal:
    """Write a number of a PDF file into a text."""
    names, amounts = words(rng, 4), numbers(rng, 4)
    lines = [f"{name}: {amount} EUR" for name, amount in zip(names, amounts, strict=True)]
    place = int(rng.integers(4))
    return DesktopGoal(
        text=f"Which amount has the open bill.pdf for {names[place]}? Write it into answer.txt; save it.",
        files={"bill.pdf": pdf("Bill", *lines), "answer.txt": note(rng, 0)},
        launches=(Launch("evince", ("bill.pdf",), "bill.pdf"), *editor("answer.txt")),
        plan=(typed(str(amounts[place])), SAVE),
        reached=lambda home: (content(home / "answer.txt") or "").strip() == str(amounts[place]),
        changes=frozenset({"answer.txt"}),
    )


def chart_to_document(rng: Rng) -> DesktopGoal:
    """Copy the chart of a sheet into a document."""
    rows = list(zip(words(rng, 4), numbers(rng, 4), strict=True))
    lines = [" ".join(words(rng, 5)).capitalize() + "." for _ in range(2)]

    def reached(home: Path) -> bool:
        path = home / "report.docx"
        kept = [line for _, line in read_paragraphs(path)] == lines
        return kept and read_charts(path) == [[number for _, number in rows]]

    return DesktopGoal(
        text="Copy the chart of stock.xlsx to the end of report.docx; save the document. Both are open.",
        files={BOOK: charted("Stock", rows), "report.docx": document(*lines)},
        launches=(*office("report.docx"), *office(BOOK)),
        plan=(click("Chart 1"), key("ctrl+c"), key("alt+tab"), key("ctrl+end"), key("ctrl+v"), SAVE),
        reached=reached,
        changes=frozenset({"report.docx"}),
    )


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((sheet_to_text, pdf_to_text), 1),
    **dict.fromkeys((pdf_to_sheet, list_to_text, text_to_script), 2),
    text_to_sheet: 3,
}
LATER: dict[Builder, int] = {chart_to_document: 2}
