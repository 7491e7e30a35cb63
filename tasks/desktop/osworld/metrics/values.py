"""OSWorld's metrics of values: outputs of commands, rules, directory listings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lmgym.tasks.desktop.osworld.metrics.rules import similarity

Rules = Mapping[str, Any]


def exact_match(result: Any, expected: Rules) -> float:
    """Compare a value with the expected one."""
    return float(result == expected["expected"])


def match_in_list(result: Any, expected: Rules) -> float:
    """Look a value up in a list."""
    return float(result in expected["expected"])


def is_in_list(result: Any, expected: Rules) -> float:
    """Look the expected value up in a list."""
    return float(result is not None and expected["expected"] in result)


def literal_match(result: Any, expected: Any, *, type: str = "str", ignore_case: bool = False) -> float:
    """Compare two values, or the items of two lists, by their text."""
    if type == "list":
        if not isinstance(result, list | tuple) or not isinstance(expected, list | tuple):
            return 0.0
        one, other = [str(each) for each in result], [str(each) for each in expected]
    else:
        one, other = [str(result)], [str(expected)]
    if ignore_case:
        one, other = [each.lower() for each in one], [each.lower() for each in other]
    return float(one == other)


def fuzzy_match(result: str | None, expected: Rules) -> float:
    """Return the similarity of two texts."""
    return 0.0 if result is None else similarity(result, expected["expected"])


def check_include_exclude(result: str | None, expected: Rules) -> float:
    """Look for parts that a text must and must not have."""
    if result is None:
        return 0.0
    there = all(part in result for part in expected.get("include", ()))
    return float(there and not any(part in result for part in expected.get("exclude", ())))


def is_in_vm_clickboard(result: Rules, expected: str | None) -> float:
    """Look for texts in a terminal's output; the task gives the texts as the result."""
    wanted = result["expected"]
    parts = wanted if isinstance(wanted, list) else [wanted]
    return float(expected is not None and all(text in expected for text in parts))


def compare_answer(result: str | None, expected: Rules) -> float:
    """Compare an output with the expected one."""
    return float(bool(result) and result == expected["expected"])


def check_text_enlarged(result: str | None) -> float:
    """Check that a scaling factor is above 1."""
    try:
        return float(float(result or "") > 1.0)
    except ValueError:
        return 0.0


def is_utc_0(result: str | None) -> float:
    """Check the time zone in the output of timedatectl."""
    lines = (result or "").split("\n")
    return float(len(lines) > 3 and lines[3].endswith("+0000)"))


def check_moved_jpgs(result: Rules | None, expected: Rules) -> float:
    """Compare the names in a folder with the expected ones."""
    names = [each["name"] for each in (result or {}).get("children", ())]
    return float(sorted(names) == sorted(expected["expected"]))


def check_direct_json_object(result: Any, expected: Rules) -> float:
    """Compare the keys of an object: equal values, or with `expect_in_result` values that contain the expected."""
    if isinstance(result, str):
        try:
            result = json.loads(result.strip().replace("'", '"'))
        except ValueError:
            return 0.0
    if not isinstance(result, Mapping):
        return 0.0
    for key, wanted in expected["expected"].items():
        value = result.get(key)
        if not expected.get("expect_in_result", False):
            right = value == wanted
        elif isinstance(wanted, list):
            right = any(each in value if isinstance(value, list) else each == value for each in wanted)
        else:
            right = isinstance(value, str) and str(wanted) in value
        if not right:
            return 0.0
    return 1.0


METRICS = (
    *(exact_match, match_in_list, is_in_list, literal_match, fuzzy_match, check_include_exclude),
    *(is_in_vm_clickboard, compare_answer, check_text_enlarged, is_utc_0, check_moved_jpgs, check_direct_json_object),
)
