"""OSWorld's metrics of the lines of a document: records, references, sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.tasks.desktop.osworld.metrics.docs import docx_file, two_docx
from lmgym.tasks.desktop.osworld.metrics.rules import similarity

FIELDS = 4  # of a line that names a train
LEAST = 0.01  # by which references must be better than the base to count


def _lines(document: Any) -> list[str]:
    return [text for paragraph in document.paragraphs if (text := paragraph.text.strip())]


def compare_docx_lines(result: str | None, expected: str | None) -> float:
    """Compare the sets of lines of two documents."""
    pair = two_docx(result, expected)
    return float(pair is not None and set(_lines(pair[0])) == set(_lines(pair[1])))


def evaluate_alignment(result: str | None) -> float:
    """Check that in every sentence the first three words stand before the rest, with single blanks in each part."""
    document = docx_file(result)
    if document is None:
        return 0.0
    for paragraph in document.paragraphs:
        for sentence in paragraph.text.split("."):
            words = sentence.split()
            first, rest = " ".join(words[:3]), " ".join(words[3:])
            if len(words) >= 3 and not -1 < sentence.find(first) < sentence.find(rest):
                return 0.0
    return 1.0


def _trains(document: Any) -> list[str]:
    """Return the second fields of lines of four."""
    fields = [paragraph.text.split(",") for paragraph in document.paragraphs]
    return [each[1].strip() for each in fields if len(each) == FIELDS]


def check_no_duplicates(result: str | None, expected: str | None) -> float:
    """Check that the second document names each train of the first one once."""
    pair = two_docx(result, expected)
    if pair is None:
        return 0.0
    before, after = _trains(pair[0]), _trains(pair[1])
    return float(len(after) == len(set(after)) and set(after) == set(before))


def compare_unique_train_records(result: str | None, expected: Sequence[str] | None) -> float:
    """Check that all lines are from the initial file, as many as in the gold file, and name its trains once each."""
    if not isinstance(expected, list) or len(expected) < 2:
        return 0.0
    own, gold, initial = (docx_file(path) for path in (result, expected[0], expected[1]))
    if own is None or gold is None or initial is None:
        return 0.0
    trains = _trains(own)
    right = set(_lines(own)) <= set(_lines(initial)) and len(trains) == len(set(trains))
    return float(right and set(trains) == set(_trains(gold)) and len(_lines(own)) == len(_lines(gold)))


def compare_references(
    result: str | None,
    expected: str | None,
    *,
    reference_indicator: str = "References",
    reference_base_result: float = 0.5,
) -> float:
    """Return the similarity of the references of two documents, scaled from a base to 1."""
    pair = two_docx(result, expected)
    if pair is None:
        return 0.0
    sides = []
    for document in pair:
        lines = [paragraph.text for paragraph in document.paragraphs]
        place = lines.index(reference_indicator) if reference_indicator in lines else -1
        sides.append(None if place < 0 else [line for line in lines[place + 1 :] if line.strip()])
    one, other = sides
    if one is None or other is None:
        return float(one == other)
    if len(one) != len(other):
        return 0.0
    if not one:
        return 1.0
    mean = sum(similarity(a, b) for a, b in zip(one, other, strict=True)) / len(one)
    base = reference_base_result
    return (mean - base) / (1 - base) if mean >= base + LEAST else 0.0


def fuzzy_place_math(result: str | None, expected: Mapping[str, Any]) -> float:
    """Return the mean similarity of a document's three words to the likeliest of the expected ones."""
    document = docx_file(result)
    words = "\n".join(_lines(document)).split() if document is not None else []
    if len(words) != 3:
        return 0.0
    return sum(max(similarity(word, each) for each in expected["expected"]) for word in words) / 3


METRICS = (
    *(compare_docx_lines, evaluate_alignment, check_no_duplicates, compare_unique_train_records),
    *(compare_references, fuzzy_place_math),
)
