"""OSWorld's metrics of text files, structured files, archives and PDFs."""

from __future__ import annotations

import csv
import difflib
import json
import re
import sqlite3
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from lmgym.tasks.desktop.osworld.metrics.rules import fits, opened, similarity

Rules = Mapping[str, Any]
CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)")
CODING = re.compile(r"#!|#\s*(-\*-\s*)?coding[:=]")
NEARLY = 1e-4  # difference of two numbers that counts as none
ALIKE = 0.95  # similarity of the texts of two PDF files in archives


# Text files --------------------------------------------------------------------------------------------------


def compare_text_file(
    result: str | None, expected: str | None, *, ignore_blanks: bool = False, ignore_case: bool = False
) -> float:
    """Compare two text files."""
    texts = [_text(path) for path in (result, expected)]
    if None in texts:
        return 0.0
    one, other = (str(each) for each in texts)
    if ignore_blanks:
        one, other = " ".join(one.split()), " ".join(other.split())
    if ignore_case:
        one, other = one.lower(), other.lower()
    return float(one == other)


def diff_text_file(result: str | None, expected: str | None) -> float:
    """Return the similarity of two text files by lines."""
    one, other = _text(result), _text(expected)
    if one is None or other is None:
        return 0.0
    return difflib.SequenceMatcher(a=one.splitlines(), b=other.splitlines()).ratio()


def compare_config(result: str | None, expected: Rules) -> float:
    """Compare a text file with an expected text."""
    return float(_text(result) == expected["expected"])


def file_contains(result: str | None, expected: Rules) -> float:
    """Look for texts in a file."""
    text = _text(result)
    return float(text is not None and all(part in text for part in expected["expected"]))


def check_line_number(result: str | None, expected: Rules) -> float:
    """Count the lines of a file that hold a time of day."""
    text = _text(result)
    return float(
        text is not None and sum(bool(CLOCK.search(x)) for x in text.splitlines()) == int(expected["expected"])
    )


def compare_terminal_and_txt(result: str | None, expected: str | None) -> float:
    """Compare a file with a terminal's output."""
    return float(bool(expected) and _text(result) == expected)


def compare_python_pure_text(result: str | None, expected: str | None) -> float:
    """Compare two Python files without blank lines and lines that state a coding."""
    one, other = _text(result), _text(expected)
    return float(one is not None and other is not None and _code(one) == _code(other))


def compare_result_files(result: str | None, expected: str | None) -> float:
    """Compare two files as numbers, the expected one as part of the result, or as texts."""
    one, other = _text(result), _text(expected)
    if one is None or other is None:
        return 0.0
    one, other = one.strip(), other.strip()
    try:
        number = float(other)
        return float(other in one or abs(float(one) - number) < NEARLY)
    except ValueError:
        return float(one == other)


def check_html_background_image(result: str | None, expected: Rules) -> float:
    """Look for a background image in a page's styles."""
    styles = re.findall(r"<style[^>]*>(.*?)</style>", _text(result) or "", re.DOTALL | re.IGNORECASE)
    return float(any(f"background-image: url('{expected['value']}')" in style for style in styles))


def check_list(result: str | None, expected: Rules) -> float:
    """Search the lines of a file for expressions that must and must not be there."""
    text = _text(result)
    if text is None:
        return 0.0
    lines = text.splitlines()
    there = [any(re.search(each, line) for line in lines) for each in expected.get("expect", ())]
    bad = [any(re.search(each, line) for line in lines) for each in expected.get("unexpect", ())]
    return float(all(there) and not any(bad))


# Structured files --------------------------------------------------------------------------------------------


def check_csv(result: str | None, expected: Rules) -> float:
    """Look for records that a CSV file must and must not have."""
    text = _text(result)
    if text is None:
        return 0.0
    records = list(csv.DictReader(text.splitlines()))

    def has(wanted: Rules) -> bool:
        return any(all(record.get(name) == value for name, value in wanted.items()) for record in records)

    there = all(has(each) for each in expected.get("expect", ()))
    return float(there and not any(has(each) for each in expected.get("unexpect", ())))


def compare_csv(
    result: str | None, expected: str | Sequence[str] | None, *, strict: bool = True, ignore_case: bool = False
) -> float:
    """Compare the lines of a CSV file with those of one or any of several."""

    def lines(path: str | None) -> list[str] | None:
        text = _text(path)
        if text is None:
            return None
        rows = text.removeprefix("\ufeff").splitlines()
        rows = rows if strict else [row.strip() for row in rows]
        return [row.lower() for row in rows] if ignore_case else rows

    own = lines(result)
    return float(own is not None and any(own == lines(path) for path in _listed(expected)))


def check_json(result: str | None, expected: Rules, *, is_yaml: bool = False) -> float:
    """Compare values below paths of keys with rules that must and must not hold."""
    value = _yaml(result) if is_yaml else _json(result)
    if value is None:
        return 0.0
    for rule in expected.get("expect", ()):
        held, inner = _below(value, rule["key"])
        if not held or not fits(inner, rule):
            return 0.0
    for rule in expected.get("unexpect", ()):
        held, inner = _below(value, rule["key"])
        if held and inner is not None and fits(inner, rule):
            return 0.0
    return 1.0


def check_json_settings(result: str | None, expected: Rules) -> float:
    """Look for keys with their values in a JSON file."""
    value = _json(result)
    wanted = expected["expected"].items()
    return float(isinstance(value, dict) and all(name in value and value[name] == each for name, each in wanted))


def check_json_keybindings(result: str | None, expected: Rules) -> float:
    """Look for an entry in a JSON list, which a line of comment may precede."""
    text = _text(result)
    for words in () if text is None else (text, text.partition("\n")[2]):
        try:
            value = json.loads(words)
        except ValueError:
            continue
        if isinstance(value, list):
            return float(expected["expected"] in value)
    return 0.0


def is_included_all_json_objects(result: str | None, expected: str | None) -> float:
    """Check that a JSON file has all entries of another; as in OSWorld, the first is the one that is contained."""
    gold, value = _json(result), _json(expected)
    if not isinstance(gold, dict) or not isinstance(value, dict):
        return 0.0
    return float(all(name in value and value[name] == each for name, each in gold.items()))


def run_sqlite3(result: str | None, expected: Rules) -> float:
    """Return the number that a query selects."""
    if result is None or not Path(result).is_file():
        return 0.0
    try:
        with closing(sqlite3.connect(f"file:{result}?mode=ro", uri=True)) as connection:
            row = connection.execute(expected["sql"]).fetchone()
    except sqlite3.Error:
        return 0.0
    return float((row or (0,))[0] or 0)


def compare_zip_files(result: str | None, expected: str | None) -> float:
    """Compare the files of two archives; PDF files by their text."""

    def alike(name: str, one: bytes, other: bytes) -> bool:
        if not name.lower().endswith(".pdf"):
            return one == other
        return difflib.SequenceMatcher(None, _pdf_text(one), _pdf_text(other)).ratio() >= ALIKE

    archives = [opened(_members, path) for path in (result, expected)]
    if archives[0] is None or archives[1] is None or archives[0].keys() != archives[1].keys():
        return 0.0
    return float(all(alike(name, content, archives[1][name]) for name, content in archives[0].items()))


def check_pdf_pages(result: str | None, expected: Rules) -> float:
    """Compare the number of pages of a PDF file with a rule."""
    pages = opened(_pdf_pages, result)
    return float(pages is not None and fits(len(pages), {"method": expected["relation"], "ref": expected["ref_value"]}))


def compare_pdfs(result: str | Sequence[str] | None, expected: str | Sequence[str] | None) -> float:
    """Return the mean similarity of the texts of PDF files."""
    pairs = list(zip(_listed(result), _listed(expected), strict=False))
    scores = []
    for one, other in pairs:
        own, gold = opened(_pdf_pages, one), opened(_pdf_pages, other)
        scores.append(0.0 if own is None or gold is None else similarity("".join(own), "".join(gold)))
    return sum(scores) / len(scores) if scores else 0.0


def is_gold_text_included_in_pdf(result: str | None, expected: str | None) -> float:
    """Look for all values of a JSON file in a PDF file."""
    pages, gold = opened(_pdf_pages, result), _json(expected)
    if pages is None or not isinstance(gold, dict):
        return 0.0
    return float(all(str(text) in "".join(pages) for text in gold.values()))


# Inside ------------------------------------------------------------------------------------------------------


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _text(path: str | None) -> str | None:
    """Return a file's text; None if it is missing or no text."""
    try:
        return None if path is None else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _json(path: str | None) -> Any:
    try:
        return json.loads(_text(path) or "")
    except (ValueError, RecursionError):
        return None


def _yaml(path: str | None) -> Any:
    import yaml

    try:
        return yaml.safe_load(_text(path) or "")
    except yaml.YAMLError:
        return None


def _below(value: Any, keys: Sequence[Any]) -> tuple[bool, Any]:
    """Return whether there is a value below a path of keys, and that value."""
    for key in keys:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return False, None
    return True, value


def _code(text: str) -> list[str]:
    lines = text.splitlines()
    while lines and CODING.match(lines[0].strip()):
        del lines[0]
    return [line.expandtabs(4).rstrip() for line in lines if line.strip()]


def _members(path: str) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _pdf_pages(source: Any) -> list[str]:
    from pypdf import PdfReader

    return [page.extract_text() for page in PdfReader(source).pages]


def _pdf_text(content: bytes) -> str:
    import io

    return "".join(_pdf_pages(io.BytesIO(content)))


METRICS = (
    *(compare_text_file, diff_text_file, compare_config, file_contains),
    *(check_line_number, compare_terminal_and_txt, compare_python_pure_text, compare_result_files),
    *(check_html_background_image, check_list, check_csv, compare_csv, check_json, check_json_settings),
    *(check_json_keybindings, is_included_all_json_objects, run_sqlite3, compare_zip_files, check_pdf_pages),
    *(compare_pdfs, is_gold_text_included_in_pdf),
)
