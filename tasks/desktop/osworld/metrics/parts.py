"""Parts of a spreadsheet that OSWorld's rules compare: values, charts, styles, pivot tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmgym.errors import InstanceError

Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Workbooks:
    """A file twice: with its formulas and styles, and with the values that were computed last."""

    path: str
    styled: Any
    values: Any

    @property
    def names(self) -> list[str]:
        """The names of its sheets."""
        return list(self.styled.sheetnames)


@dataclass(frozen=True)
class SheetOfBook:
    """One sheet of a file; it may not exist."""

    book: Workbooks
    name: str

    @property
    def styled(self) -> Any:
        """The sheet with its formulas and styles; None if there is none of this name."""
        return self.book.styled[self.name] if self.name in self.book.names else None

    @property
    def values(self) -> Any:
        """The sheet with its values; None if there is none of this name."""
        return self.book.values[self.name] if self.name in self.book.names else None

    def cell(self, place: str) -> Any:
        """Return the value of a cell, numbers as floats; None if it is empty."""
        value = None if self.values is None else self.values[place].value
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def charts(sheet: SheetOfBook, rule: Rule) -> dict[str, dict[str, Any]]:
    """Return the properties of charts by their sources."""
    wanted = rule.get("chart_props", ())
    listed = {}
    for chart in sheet.styled._charts:
        series = ";".join(f"{_source(each.val)},{_source(each.cat)}" for each in chart.series)
        listed[series] = {name: _of_chart(chart, name) for name in wanted}
    return listed


def _source(values: Any) -> str:
    for kind in ("numRef", "strRef"):
        if (reference := getattr(values, kind, None)) is not None:
            return str(reference.f)
    return ""


def _of_chart(chart: Any, name: str) -> Any:
    if name == "anchor":
        anchor = chart.anchor
        return [anchor.editAs, anchor._from.col, anchor._from.row, anchor.to.col, anchor.to.row]
    values: dict[str, Callable[[], Any]] = {
        "title": lambda: _heading(chart),
        "legend": lambda: chart.legend and chart.legend.position,
        "width": lambda: chart.width,
        "height": lambda: chart.height,
        "type": lambda: chart.tagname,
        "direction": lambda: getattr(chart, "barDir", None),
        "xtitle": lambda: _heading(chart.x_axis),
        "ytitle": lambda: _heading(chart.y_axis),
        "ztitle": lambda: _heading(getattr(chart, "z_axis", None)),
    }
    return values[name]()


def _heading(part: Any) -> str | None:
    """Return the first words of the title of a chart or an axis."""
    try:
        return str(part.title.tx.rich.p[0].r[0].t)
    except (AttributeError, IndexError, TypeError):
        return None


def styles(sheet: SheetOfBook, rule: Rule) -> tuple[dict[str, list[Any]], list[Any]]:
    """Return styles by cell, and conditional formats with their ranges, conditions and styles.

    OSWorld evaluates the conditions instead; two equal lists of conditions over equal data give the same there.
    """
    names = rule.get("props", ())
    cells = {cell.coordinate: [style(name, cell) for name in names] for row in sheet.styled.iter_rows() for cell in row}
    conditions = [
        (str(each.cells), condition.type, condition.formula, [_of_condition(name, condition.dxf) for name in names])
        for each in sheet.styled.conditional_formatting
        for condition in each.rules
    ]
    return cells, sorted(conditions, key=str)


def style(name: str, cell: Any) -> Any:
    """Return one style of a cell by OSWorld's name; None for fonts and formats of an empty cell."""
    from openpyxl.cell.cell import MergedCell

    if name == "merge":
        return isinstance(cell, MergedCell)
    if name in ("fill_type", "bgcolor", "fgcolor"):
        fill = getattr(cell, "fill", None)
        return None if fill is None else fill.tagname if name == "fill_type" else fill.fgColor.rgb
    if cell.value is None:
        return None
    if name == "number_format":
        return cell.number_format if cell.data_type == "n" else None
    if name == "hyperlink":
        return (cell.hyperlink and cell.hyperlink.target) or ""
    kind, _, part = name.partition("_")
    if kind != "font" or part not in ("name", "family", "color", "bold", "italic", "underline", "size"):
        raise InstanceError(f"unknown style {name!r} in a task's rule")
    if part == "color":
        return cell.font.color and cell.font.color.rgb
    return getattr(cell.font, part)


def _of_condition(name: str, differences: Any) -> str:
    part = {"font": "font", "number": "numFmt"}.get(name.partition("_")[0], "fill")
    return repr(getattr(differences, part, None))


def pivots(sheet: SheetOfBook, rule: Rule) -> dict[str, dict[str, Any]]:
    """Return the properties of pivot tables by their sources."""
    wanted = rule.get("pivot_props", ())
    tables = {}
    for table in sheet.styled._pivots:
        source = table.cache.cacheSource
        key = f"{source.type};{source.worksheetSource.ref};{source.worksheetSource.sheet}"
        tables[key] = {name: _of_pivot(table, name, wanted) for name in wanted}
    return tables


def _of_pivot(table: Any, name: str, wanted: Any) -> Any:
    def chosen() -> list[Any]:
        fields = [[(item.h, item.x) for item in field.items if item.x is not None] for field in table.pivotFields]
        return fields if "ordered" in wanted else [sorted(field, key=str) for field in fields]

    def data() -> list[str]:
        named = "data_fields_name" in wanted
        return [f"{f.fld};{f.name if named else ''};{f.subtotal};{f.showDataAs}" for f in table.dataFields]

    values: dict[str, Callable[[], Any]] = {
        "name": lambda: table.name,
        "show_total": lambda: table.visualTotals,
        "show_empty_row": lambda: table.showEmptyRow,
        "show_empty_col": lambda: table.showEmptyCol,
        "show_headers": lambda: table.showHeaders,
        "location": lambda: repr(table.location),
        "selection": chosen,
        "filter": lambda: (chosen(), sorted(each.fld for each in table.pageFields)),
        "col_fields": lambda: [each.x for each in table.colFields],
        "row_fields": lambda: [each.x for each in table.rowFields],
        "data_fields": data,
    }
    return values[name]() if name in values else None
