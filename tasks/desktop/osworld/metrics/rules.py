"""Parts that several of OSWorld's metrics share: rules for values, similarity of texts, files that may be broken."""

from __future__ import annotations

import operator
import re
import zipfile
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeVar

from lmgym.errors import InstanceError

Content = TypeVar("Content")
LARGEST = 200 << 20  # bytes of a file, unpacked
COMPARISONS = ("eq", "ne", "le", "lt", "ge", "gt")


def similarity(one: str, other: str) -> float:
    """Return the similarity of two texts: 1 minus the share of characters that were inserted or deleted."""
    from rapidfuzz import fuzz

    return fuzz.ratio(one, other) / 100


def opened(read: Callable[[str], Content], path: str | None) -> Content | None:
    """Return what `read` makes of a file; None if the file is missing or broken."""
    try:
        return None if path is None or _unpacked(path) > LARGEST else read(path)
    except Exception:  # noqa: BLE001  # the libraries raise errors of many kinds on damaged files, which policies write
        return None


def _unpacked(path: str) -> int:
    """Return the size of what an archive holds, in bytes; 0 for any other file."""
    if not zipfile.is_zipfile(path):
        return 0
    with zipfile.ZipFile(path) as archive:
        return sum(each.file_size for each in archive.infolist())


def fits(value: Any, rule: Mapping[str, Any]) -> bool:
    """Return True if a value fits a rule: its "method", such as "eq", "re.I", "approx:0.1" or "range.te", and "ref"."""
    method, wanted = str(rule["method"]), rule["ref"]
    name, _, rest = method.partition(".")
    if name == "re":
        flags = reduce(operator.or_, (getattr(re, flag) for flag in rest.split(".") if flag), re.RegexFlag(0))
        return re.search(wanted, str(value), flags) is not None
    try:
        if method in COMPARISONS:
            return bool(getattr(operator, method)(value, wanted))
        if method.startswith("approx"):
            return abs(float(value) - float(wanted)) <= float(method.partition(":")[2])
        if name == "range":  # "te": above the first, at most the second
            low, high = (getattr(operator, f"l{sign}") for sign in rest)
            return bool(low(wanted[0], value) and high(value, wanted[1]))
    except (TypeError, ValueError):
        return False
    if method == "spreadsheet_range":
        return _within_ranges(value, wanted[0], wanted[1])
    if method in ("str_list_eq", "str_set_eq"):
        parts = str(value).strip("\"'").split(",")
        return parts == list(wanted) if method == "str_list_eq" else set(parts) == set(wanted)
    raise InstanceError(f"unknown method {method!r} in a task's rule")


def _within_ranges(value: Any, least: str, most: str) -> bool:
    """Return True if ranges of cells contain those of `least` and lie in those of `most`."""
    from openpyxl.worksheet.cell_range import MultiCellRange

    smallest, largest = MultiCellRange(least), MultiCellRange(most)
    return all(each in value for each in smallest) and all(each in largest for each in value)


def registry_values(path: str | None, item: str, name: str) -> list[str]:
    """Return the values of a property in LibreOffice's settings, the last one set last."""
    from lxml import etree

    registry = "{http://openoffice.org/2001/registry}"
    root = opened(lambda file: etree.parse(file).getroot(), path)
    if root is None:
        return []
    return [
        value.text or ""
        for each in root.iter("item")
        if each.get(f"{registry}path") == item
        for setting in each.iter("prop")
        if setting.get(f"{registry}name") == name
        for value in setting.iter("value")
    ]
