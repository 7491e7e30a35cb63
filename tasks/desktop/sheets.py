"""Goals in spreadsheets: values, formulas, sorting, filters, formats, charts, and sheets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.tasks.desktop.goals import Builder, DesktopGoal, numbers, office, words
from lmgym.tasks.desktop.moves import SAVE, Move, cell, click, key, menu, typed
from lmgym.tasks.desktop.office import read_book, read_cells, read_pdf, workbook

Rng = np.random.Generator
Row = tuple[str, int, int]
LENGTH = 6  # rows below the heading


def _rows(rng: Rng) -> list[Row]:
    names, prices, counts = words(rng, LENGTH), numbers(rng, LENGTH), numbers(rng, LENGTH, 2, 9)
    return list(zip(names, prices, counts, strict=True))


def _table(rows: list[Row]) -> dict[str, Any]:
    """Return the cells of the open sheet."""
    lines: list[tuple[Any, ...]] = [("Name", "Price", "Count"), *rows]
    return {f"{column}{y}": value for y, line in enumerate(lines, 1) for column, value in zip("ABC", line, strict=True)}


def _goal(
    text: str,
    rows: list[Row],
    plan: tuple[Move, ...],
    reached: Callable[[Path], bool],
    *,
    file: str = "stock.xlsx",
    changes: tuple[str, ...] = ("stock.xlsx",),
) -> DesktopGoal:
    return DesktopGoal(
        text=text,
        files={file: workbook(("Stock", [("Name", "Price", "Count"), *rows]))},
        launches=office(file),
        plan=plan,
        reached=lambda home: reached(home / file),
        changes=frozenset(changes),
    )


def _values(text: str, rows: list[Row], cells: dict[str, Any], *plan: Move) -> DesktopGoal:
    """Return the goal that a sheet keeps its values but for some cells; None is an empty one."""
    wanted = {place: value for place, value in (_table(rows) | cells).items() if value is not None}
    return _goal(text, rows, (*plan, SAVE), lambda path: read_cells(path) == wanted)


def _formulas(text: str, rows: list[Row], cells: dict[str, float], *plan: Move) -> DesktopGoal:
    """Return the goal of formulas in new cells."""

    def reached(path: Path) -> bool:
        values, written = read_cells(path), read_cells(path, formulas=True)
        right = all(isinstance(values.get(place), int | float) for place in cells)
        right = right and all(abs(values[place] - value) < 1e-6 for place, value in cells.items())
        kept = all(values.get(place) == value for place, value in _table(rows).items())
        return right and kept and all(str(written.get(place)).startswith("=") for place in cells)

    return _goal(text, rows, (*plan, SAVE), reached)


def set_cell(rng: Rng) -> DesktopGoal:
    """Change one cell."""
    rows, place, value = _rows(rng), int(rng.integers(LENGTH)), int(rng.integers(100, 999))
    text = f"In stock.xlsx, which is open, the price of {rows[place][0]} becomes {value}. Change it and save the file."
    return _values(text, rows, {f"B{place + 2}": value}, *cell(f"B{place + 2}"), typed(f"{value}\n"))


def add_row(rng: Rng) -> DesktopGoal:
    """Add a row below a table."""
    *rows, (name, price, count) = _rows(rng)
    last = len(rows) + 2
    text = f"Add a row for {name} below the last one of stock.xlsx: price {price}, count {count}. Save the file."
    cells = {f"A{last}": name, f"B{last}": price, f"C{last}": count}
    return _values(text, rows, cells, *cell(f"A{last}"), typed(f"{name}\t{price}\t{count}\n"))


def clear_cell(rng: Rng) -> DesktopGoal:
    """Empty one cell."""
    rows, place = _rows(rng), int(rng.integers(LENGTH))
    text = f"Empty the cell with the count of {rows[place][0]} in stock.xlsx and save the file."
    return _values(text, rows, {f"C{place + 2}": None}, *cell(f"C{place + 2}"), key("delete"))


def delete_row(rng: Rng) -> DesktopGoal:
    """Delete one row."""
    rows, place = _rows(rng), int(rng.integers(LENGTH))
    wanted = _table(rows[:place] + rows[place + 1 :])
    text = f"Delete the whole row of {rows[place][0]} in stock.xlsx, so that the rows below move up. Save the file."
    plan = (*cell(f"A{place + 2}"), *menu("s", "Delete Rows"), SAVE)
    return _goal(text, rows, plan, lambda path: read_cells(path) == wanted)


def sort_rows(rng: Rng) -> DesktopGoal:
    """Sort a table by its first column."""
    rows = _rows(rng)
    wanted = _table(sorted(rows))
    text = "Sort the rows of stock.xlsx by name, from A to Z, below the heading. Save the file."
    plan = (*cell(f"A2:C{LENGTH + 1}"), *menu("d", "Sort Ascending"), SAVE)
    return _goal(text, rows, plan, lambda path: read_cells(path) == wanted)


def total_price(rng: Rng) -> DesktopGoal:
    """Write a sum below a column."""
    rows = _rows(rng)
    text = f"Write a formula for the sum of all prices into cell B{LENGTH + 2} of stock.xlsx and save the file."
    plan = (*cell(f"B{LENGTH + 2}"), typed(f"=SUM(B2:B{LENGTH + 1})\n"))
    return _formulas(text, rows, {f"B{LENGTH + 2}": sum(row[1] for row in rows)}, *plan)


def mean_and_extremes(rng: Rng) -> DesktopGoal:
    """Write the mean, the smallest and the largest number of a column."""
    rows = _rows(rng)
    prices = [row[1] for row in rows]
    cells = {"E1": sum(prices) / LENGTH, "E2": float(min(prices)), "E3": float(max(prices))}
    text = (
        "Write formulas into stock.xlsx: the average price in E1, the lowest in E2, the highest in E3. Save the file."
    )
    lines = "".join(f"={name}(B2:B{LENGTH + 1})\n" for name in ("AVERAGE", "MIN", "MAX"))
    return _formulas(text, rows, cells, *cell("E1"), typed(lines))


def line_totals(rng: Rng) -> DesktopGoal:
    """Fill a column with the products of two others."""
    rows = _rows(rng)
    cells = {f"D{y}": float(row[1] * row[2]) for y, row in enumerate(rows, 2)}
    text = "Fill column D of stock.xlsx with formulas for price times count, in every row below the heading. Save it."
    plan: list[Move] = [*cell("D2")]
    plan += [typed(f"=B{y}*C{y}\n") for y in range(2, LENGTH + 2)]
    return _formulas(text, rows, cells, *plan)


def count_above(rng: Rng) -> DesktopGoal:
    """Count the rows above a limit."""
    rows, limit = _rows(rng), int(rng.integers(30, 70))
    text = f"Write a formula into E1 of stock.xlsx that counts the prices above {limit}, and save the file."
    plan = (*cell("E1"), typed(f'=COUNTIF(B2:B{LENGTH + 1};">{limit}")\n'))
    return _formulas(text, rows, {"E1": sum(row[1] > limit for row in rows)}, *plan)


def bold_heading(rng: Rng) -> DesktopGoal:
    """Set the heading in bold type."""

    def look(book: Any) -> bool:
        page = book.worksheets[0]
        return all(page[f"{column}1"].font.b for column in "ABC") and not page["A2"].font.b

    text = "Set the heading (A1 to C1) of stock.xlsx in bold type and save the file."
    plan = (*cell("A1:C1"), key("ctrl+b"), SAVE)
    return _goal(text, _rows(rng), plan, lambda path: read_book(path, look, otherwise=False))


def centre_heading(rng: Rng) -> DesktopGoal:
    """Centre the heading."""

    def look(book: Any) -> bool:
        return all(book.worksheets[0][f"{column}1"].alignment.horizontal == "center" for column in "ABC")

    text = "Centre the heading (A1 to C1) of stock.xlsx horizontally and save the file."
    plan = (*cell("A1:C1"), key("ctrl+e"), SAVE)
    return _goal(text, _rows(rng), plan, lambda path: read_book(path, look, otherwise=False))


def filter_rows(rng: Rng) -> DesktopGoal:
    """Switch the filter of a table on."""

    def look(book: Any) -> bool:
        return (book.worksheets[0].auto_filter.ref or "").replace("$", "") == f"A1:C{LENGTH + 1}"

    text = f"Switch the AutoFilter on for the table A1 to C{LENGTH + 1} of stock.xlsx and save the file."
    plan = (*cell(f"A1:C{LENGTH + 1}"), key("ctrl+shift+l"), SAVE)
    return _goal(text, _rows(rng), plan, lambda path: read_book(path, look, otherwise=False))


def rename_sheet(rng: Rng) -> DesktopGoal:
    """Rename a sheet."""
    name = words(rng, 1)[0].title()
    text = f"Rename the sheet Stock of stock.xlsx to {name} and save the file."
    plan = (*menu("s", "Rename Sheet..."), key("ctrl+a"), typed(f"{name}\n"), SAVE)
    return _goal(text, _rows(rng), plan, lambda path: read_book(path, lambda book: book.sheetnames == [name], False))


def add_sheet(rng: Rng) -> DesktopGoal:
    """Add a sheet and write into it."""
    name, word = words(rng, 2)
    rows = _rows(rng)
    text = (
        f'Add a sheet {name.title()} after the sheet of stock.xlsx, write "{word}" into its cell A1, and save the file.'
    )

    def reached(path: Path) -> bool:
        names = read_book(path, lambda book: book.sheetnames == ["Stock", name.title()], False)
        return names and read_cells(path, name.title()) == {"A1": word} and read_cells(path) == _table(rows)

    plan = (*menu("s", "Insert Sheet at End..."), key("ctrl+a"), typed(f"{name.title()}\n"), *cell("A1"))
    return _goal(text, rows, (*plan, typed(f"{word}\n"), SAVE), reached)


def draw_chart(rng: Rng) -> DesktopGoal:
    """Draw a chart of two columns."""

    def look(book: Any) -> bool:
        return len(book.worksheets[0]._charts) == 1

    text = f"Draw a column chart of the prices by name (A1 to B{LENGTH + 1}) in stock.xlsx and save the file."
    plan = (*cell(f"A1:B{LENGTH + 1}"), *menu("i", "Chart..."), click("Finish"), key("escape"), SAVE)
    return _goal(text, _rows(rng), plan, lambda path: read_book(path, look, otherwise=False))


def merge_cells(rng: Rng) -> DesktopGoal:
    """Merge cells and write into them."""
    word = words(rng, 1)[0].title()

    def look(book: Any) -> bool:
        page = book.worksheets[0]
        return [str(area) for area in page.merged_cells.ranges] == ["E1:G1"] and page["E1"].value == word

    text = f'Merge the cells E1 to G1 of stock.xlsx into one, write "{word}" into it, and save the file.'
    plan = (*cell("E1:G1"), *menu("o", "Merge Cells", "Merge Cells"), typed(f"{word}\n"), SAVE)
    return _goal(text, _rows(rng), plan, lambda path: read_book(path, look, otherwise=False))


def export_sheet(rng: Rng) -> DesktopGoal:
    """Export a sheet as PDF."""
    rows = _rows(rng)

    def reached(path: Path) -> bool:
        pages = " ".join(read_pdf(path.with_suffix(".pdf")))
        return all(name in pages and str(price) in pages for name, price, _ in rows)

    plan = (click("Export Directly as PDF"), key("enter"))
    text = "Export stock.xlsx as stock.pdf into the home folder."
    return _goal(text, rows, plan, reached, changes=("stock.pdf",))


def new_table(rng: Rng) -> DesktopGoal:
    """Write a table row by row, with a sum and a bold heading."""
    rows = _rows(rng)
    table = {place: value for place, value in _table(rows).items() if place[0] != "C"}
    total = sum(row[1] for row in rows)
    listed = ", ".join(f"{name} {price}" for name, price, _ in rows)
    text = (
        f"Write a table into table.xlsx, which is empty: the bold heading Name in A1 and Price in B1, below it "
        f"{listed}; then Total in column A and a formula for the sum in column B. Save the file."
    )
    last = LENGTH + 2

    def reached(path: Path) -> bool:
        bold = read_book(path, lambda book: all(book.worksheets[0][place].font.b for place in ("A1", "B1")), False)
        formula = str(read_cells(path, formulas=True).get(f"B{last}"))
        return (
            bold and formula.startswith("=") and read_cells(path) == {**table, f"A{last}": "Total", f"B{last}": total}
        )

    plan: list[Move] = [*cell("A1"), typed("Name\tPrice\n")]
    plan += [typed(f"{name}\t{price}\n") for name, price, _ in rows]
    plan += [typed(f"Total\t=SUM(B2:B{last - 1})\n"), *cell("A1:B1"), key("ctrl+b"), SAVE]
    return DesktopGoal(
        text=text,
        files={"table.xlsx": workbook(("Table", []))},
        launches=office("table.xlsx"),
        plan=tuple(plan),
        reached=lambda home: reached(home / "table.xlsx"),
        changes=frozenset({"table.xlsx"}),
    )


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((set_cell, add_row, clear_cell, sort_rows, total_price, mean_and_extremes, count_above), 2),
    **dict.fromkeys((delete_row, bold_heading, centre_heading, filter_rows, rename_sheet, draw_chart), 2),
    **dict.fromkeys((add_sheet, merge_cells), 2),
    export_sheet: 1,
    line_totals: 2,
    new_table: 3,
}
