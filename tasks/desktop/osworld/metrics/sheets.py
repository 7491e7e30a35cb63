"""OSWorld's metrics of spreadsheets: tables of rules over two workbooks."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.desktop.osworld.metrics.parts import Rule, SheetOfBook, Workbooks, charts, pivots, style, styles
from lmgym.tasks.desktop.osworld.metrics.rules import fits, opened, similarity

DIGITS = 4  # decimals that are compared
ALIKE = 85.0  # percent of similarity of two cells
SPARKLINE = "{http://schemas.microsoft.com/office/spreadsheetml/2009/9/main}sparkline"
FORMULA = "{http://schemas.microsoft.com/office/excel/2006/main}f"
PLACE = "{http://schemas.microsoft.com/office/excel/2006/main}sqref"
SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}sheet"
CITIES = "C2:C22"  # cells of the list of cities


def _read(path: str) -> Workbooks:
    import openpyxl

    return Workbooks(path, openpyxl.load_workbook(path), openpyxl.load_workbook(path, data_only=True))


def compare_table(result: str | None, expected: str | None = None, *, rules: list[Rule]) -> float:
    """Return 1 if a workbook keeps all rules, most of which compare it with another workbook."""
    own = opened(_read, result)
    gold = opened(_read, expected)
    if own is None or (expected is not None and gold is None):
        return 0.0
    for rule in rules:
        check = CHECKS.get(rule["type"])
        if check is None:
            raise InstanceError(f"unknown rule {rule['type']!r} of compare_table")
        if not check(rule, own, gold):
            return 0.0
    return 1.0


def _sheet(index: int | str, own: Workbooks, gold: Workbooks | None) -> SheetOfBook:
    """Return the sheet of an index: 0, "RI0", "RNName" of the result; "EI0", "ENName" of the expected file."""
    words = f"RI{index}" if isinstance(index, int) else index
    book = own if words.startswith("R") else gold
    if book is None or words[:2] not in ("RI", "RN", "EI", "EN"):
        raise InstanceError(f"unknown sheet {index!r} in a task's rule")
    if words[1] == "N":
        return SheetOfBook(book, words[2:])
    number = int(words[2:])
    return SheetOfBook(book, book.names[number] if number < len(book.names) else "")


def _pair(rule: Rule, own: Workbooks, gold: Workbooks | None) -> tuple[SheetOfBook, SheetOfBook]:
    return _sheet(rule["sheet_idx0"], own, gold), _sheet(rule["sheet_idx1"], own, gold)


def _same(of: Callable[[SheetOfBook, Rule], Any]) -> Callable[[Rule, Workbooks, Workbooks | None], bool]:
    """Return a check that compares a property of two sheets; sheets that are missing never agree."""

    def check(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
        one, other = _pair(rule, own, gold)
        if one.styled is None or other.styled is None:
            return False
        return bool(of(one, rule) == of(other, rule))

    return check


def _names(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
    return gold is not None and own.names == gold.names


def _data(sheet: SheetOfBook, rule: Rule) -> list[list[Any]]:
    """Return the rows of values, numbers rounded, without empty rows and columns at the end."""
    digits = rule.get("precision", DIGITS)
    rows = [[_rounded(cell.value, digits) for cell in row] for row in sheet.values.iter_rows()]
    rows = [row[: max((i + 1 for i, value in enumerate(row) if value is not None), default=0)] for row in rows]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _rounded(value: Any, digits: int) -> Any:
    return round(float(value), digits) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _printed(sheet: SheetOfBook, rule: Rule) -> list[str] | None:
    """Return the lines of the CSV file that the task's last steps have made of a sheet."""
    path = Path(sheet.book.path)
    try:
        lines = path.with_name(f"{path.stem}-{sheet.name}.csv").read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    lines = [line.strip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return [line.lower() for line in lines] if rule.get("ignore_case", False) else lines


def _print(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
    one, other = (_printed(sheet, rule) for sheet in _pair(rule, own, gold))
    return one is not None and one == other


def _fuzzy(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.cell_range import MultiCellRange

    one, other = _pair(rule, own, gold)
    for part in rule["rules"]:
        for area in MultiCellRange(" ".join(part["range"])):
            for row, column in area.cells:
                place = f"{get_column_letter(column)}{row}"
                if not _alike(_cleaned(one.cell(place), part), _cleaned(other.cell(place), part), part):
                    return False
    return True


def _cleaned(value: Any, rule: Rule) -> str:
    text = str(value)
    for old, new in rule.get("normalization", ()):
        text = text.replace(old, new)
    text = text.lstrip(rule["trim_leadings"]) if "trim_leadings" in rule else text
    text = text.rstrip(rule["trim_trailings"]) if "trim_trailings" in rule else text
    text = "".join(letter for letter in text if letter not in rule.get("ignore_chars", ""))
    return text.lower() if rule.get("ignore_case", False) else text


def _alike(one: str, other: str, rule: Rule) -> bool:
    kinds = {
        "includes": other in one,
        "included_by": one in other,
        "exact_match": one == other,
        "fuzzy_match": similarity(one, other) * 100 >= rule.get("threshold", ALIKE),
    }
    return bool(kinds[rule["type"]])


def _sparklines(sheet: SheetOfBook, rule: Rule) -> dict[str, str]:
    """Return the sources of sparklines by the cells they stand in."""
    from lxml import etree

    with zipfile.ZipFile(sheet.book.path) as archive:
        sheets = list(etree.fromstring(archive.read("xl/workbook.xml")).iter(SHEET))
        number = next(i for i, each in enumerate(sheets, 1) if each.get("name") == sheet.name)
        root = etree.fromstring(archive.read(f"xl/worksheets/sheet{number}.xml"))
    return {each.findtext(PLACE, ""): each.findtext(FORMULA, "") for each in root.iter(SPARKLINE)}


def _frozen(sheet: SheetOfBook, rule: Rule) -> tuple[Any, ...]:
    """Return how many rows and columns are frozen; where the rest is scrolled to does not matter."""
    pane = sheet.styled.sheet_view.pane
    if pane is None:
        return ()
    split = int(pane.xSplit or 0), int(pane.ySplit or 0)
    return ("frozen", *split) if (pane.state or "").startswith("frozen") else ("split", *split, pane.topLeftCell)


def _zoom(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
    page = _sheet(rule["sheet_idx"], own, gold).styled
    return page is not None and fits(page.sheet_view.zoomScale or 100.0, rule)


def _validation(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
    page = _sheet(rule["sheet_idx"], own, gold).styled
    validations = [] if page is None else page.data_validations.dataValidation
    return len(validations) >= len(rule["dv_props"]) and all(
        any(all(fits(_of_validation(each, name), part) for name, part in wanted.items()) for wanted in rule["dv_props"])
        for each in validations
    )


def _of_validation(validation: Any, name: str) -> Any:
    return validation.sqref if name == "ranges" else getattr(validation, name)


def _rows(sheet: SheetOfBook, rule: Rule) -> dict[Any, dict[str, Any]]:
    return _dimensions(sheet.styled.row_dimensions, rule)


def _columns(sheet: SheetOfBook, rule: Rule) -> dict[Any, dict[str, Any]]:
    return _dimensions(sheet.styled.column_dimensions, rule)


def _dimensions(dimensions: Any, rule: Rule) -> dict[Any, dict[str, Any]]:
    return {key: {name: getattr(each, name) for name in rule.get("props", ())} for key, each in dimensions.items()}


def _filters(sheet: SheetOfBook, rule: Rule) -> tuple[Any, ...]:
    filters = sheet.styled.auto_filter
    columns = [
        (
            each.colId,
            each.hiddenButton,
            each.showButton,
            each.filters and (each.filters.blank, sorted(each.filters.filter)),
            each.customFilters
            and (each.customFilters._and, sorted((one.operator, one.val) for one in each.customFilters.customFilter)),
        )
        for each in sorted(filters.filterColumn, key=lambda each: each.colId)
    ]
    return filters.ref, columns, repr(filters.sortState)


def _cell(rule: Rule, own: Workbooks, gold: Workbooks | None) -> bool:
    sheet = _sheet(rule["sheet_idx"], own, gold)
    if sheet.styled is None:
        return False
    place = rule["coordinate"]
    return all(
        fits(sheet.cell(place) if name == "value" else style(name, sheet.styled[place]), part)
        for name, part in rule["props"].items()
    )


CHECKS: Mapping[str, Callable[[Rule, Workbooks, Workbooks | None], bool]] = {
    "sheet_name": _names,
    "sheet_data": _same(_data),
    "sheet_print": _print,
    "sheet_fuzzy": _fuzzy,
    "sparkline": _same(_sparklines),
    "chart": _same(charts),
    "style": _same(styles),
    "freeze": _same(_frozen),
    "zoom": _zoom,
    "data_validation": _validation,
    "row_props": _same(_rows),
    "col_props": _same(_columns),
    "filter": _same(_filters),
    "pivot_table": _same(pivots),
    "check_cell": _cell,
}


def compare_conference_city_in_order(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check that the cells of a column name the expected cities, each by one of its names."""
    book = opened(_read, result)
    if book is None:
        return 0.0
    cities = [_plain(cell.value) for row in book.styled.active[CITIES] for cell in row]
    wanted = [[each] if isinstance(each, str) else each for each in expected["expected"]]
    if len(wanted) < len(cities):
        return 0.0
    pairs = zip(cities, wanted, strict=False)
    return float(all(any(_plain(name) and _plain(name) in city for name in names) for city, names in pairs))


def _plain(value: Any) -> str:
    """Return a text in lower case without accents and punctuation."""
    letters = unicodedata.normalize("NFKD", "" if value is None else str(value))
    base = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9]+", " ", base.lower()).strip()


METRICS = (compare_table, compare_conference_city_in_order)
