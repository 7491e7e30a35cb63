"""WebArena's evaluators: of the answer, of the final address, and of the content of pages.

`official` scores as the benchmark does, its known holes included: an answer that must include "17" may say "2017",
an address need only contain the right one, and who never answers has answered "N/A", which passes where a task cannot
be done. `strict`, the default, closes them: words and numbers must stand alone, paths must be equal, and that a task
cannot be done has to be reported. Alternatives joined by " |OR| " hold everywhere; officially answers overlook them.
A judge, where there is one, also passes an answer that gives the reason why a task cannot be done, and no other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from lmgym.errors import InstanceError
from lmgym.tasks.webforms import helpers

Scoring = Literal["strict", "official"]
Question = Literal["fuzzy_match", "ua_match"]  # is it the same answer; is it the same reason why there is none
Judge = Callable[[str, str, str, Question], bool]  # task, reference or reason, answer, what is asked -> yes or no
OR = " |OR| "
UNACHIEVABLE = "N/A"
EVALUATORS = ("string_match", "url_match", "program_html")
RULES = ("exact_match", "must_include", "fuzzy_match")  # for answers; the first two for pages


@dataclass(frozen=True)
class EpisodeEnd:
    """The end of an episode: answer, report and address."""

    answer: str | None  # what was said last; None if nothing was
    infeasible: bool  # it was reported that the task cannot be done
    url: str  # of the active tab
    read: Callable[[str, str, Sequence[str]], str]  # (address or "last", locator, preparing scripts) -> text


def evaluate(task: Mapping[str, Any], ending: EpisodeEnd, *, scoring: Scoring, judge: Judge | None) -> float:
    """Return the product of the task's evaluators."""
    wanted = task["eval"]
    score = 1.0
    for name in wanted["eval_types"]:
        if name == "string_match":
            score *= _answered(task, ending, scoring, judge)
        elif name == "url_match":
            score *= any(_same_place(one, ending.url, scoring) for one in wanted["reference_url"].split(OR))
        elif name == "program_html":
            score *= all(_holds(target, ending, scoring) for target in wanted["program_html"])
        else:
            raise InstanceError(f"task {task['task_id']} names the evaluator {name!r}, which there is none of")
    return float(score)


def strange(task: Mapping[str, Any]) -> str:
    """Return a part of a task's evaluation that is not supported, or ""."""
    wanted = task["eval"]
    targets = (wanted.get("program_html") or ()) if "program_html" in wanted["eval_types"] else ()
    answers = (wanted.get("reference_answers") or ()) if "string_match" in wanted["eval_types"] else ()
    for kind, names, supported in (
        ("evaluator", wanted["eval_types"], EVALUATORS),
        ("rule", answers, RULES),
        ("rule", [name for target in targets for name in target["required_contents"]], RULES[:2]),
    ):
        if unknown := [name for name in names if name not in supported]:
            return f"the {kind} {unknown[0]}"
    calls = [str(target[part]) for target in targets for part in ("url", "locator")]
    unknown = [call for call in calls if not helpers.known(call)]
    return f"the helper {unknown[0].removeprefix(helpers.PREFIX).partition('(')[0]}" if unknown else ""


def unachievable(task: Mapping[str, Any]) -> bool:
    """Return True for a task that cannot be done."""
    answers = task["eval"].get("reference_answers") or {}
    return UNACHIEVABLE in (answers.get("fuzzy_match"), answers.get("exact_match"))


def needs_judge(task: Mapping[str, Any]) -> bool:
    """Return True if a model has to compare the answer with the reference."""
    answers = task["eval"].get("reference_answers") or {}
    return "fuzzy_match" in answers and not unachievable(task)


def cleaned(text: str) -> str:
    """Return an answer in lower case, without one pair of quotes."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return text.lower()


def _answered(task: Mapping[str, Any], ending: EpisodeEnd, scoring: Scoring, judge: Judge | None) -> float:
    if unachievable(task) and scoring == "strict":
        reason = "" if ending.answer is None else cleaned(ending.answer)
        vain = reason in ("", cleaned(UNACHIEVABLE))
        return float(ending.infeasible or (not vain and _same_reason(task, reason, judge)))
    answer = UNACHIEVABLE if ending.infeasible or ending.answer is None else ending.answer
    if scoring == "strict" and (ending.infeasible or ending.answer is None):
        return 0.0
    score = 1.0
    for name, reference in task["eval"]["reference_answers"].items():
        if name == "exact_match":
            right = [reference] if scoring == "official" else reference.split(OR)
            score *= cleaned(answer) in map(cleaned, right)
        elif name == "fuzzy_match" and reference == UNACHIEVABLE:
            score *= cleaned(reference) == cleaned(answer) or _same_reason(task, cleaned(answer), judge)
        elif name == "must_include":
            alone = len(reference) == 1
            score *= all(_included(item, answer, scoring, alone=alone) for item in reference)
        elif name == "fuzzy_match":
            if judge is None:
                raise InstanceError(f"task {task['task_id']} needs a judge: give judge='python:module:function'")
            text, items = cleaned(answer), [reference] if isinstance(reference, str) else reference
            score *= bool(text) and all(judge(task["intent"], item, text, "fuzzy_match") for item in items)
        else:
            raise InstanceError(f"task {task['task_id']} wants the answer to {name!r}, which is no rule")
    return float(score)


def _same_reason(task: Mapping[str, Any], answer: str, judge: Judge | None) -> bool:
    """Return True if the judge accepts the answer as the reason why a task cannot be done."""
    wanted = task["eval"]
    if judge is None or wanted["reference_answers"].get("fuzzy_match") != UNACHIEVABLE:
        return False
    return bool(judge(task["intent"], wanted.get("string_note") or "", answer, "ua_match"))


def _included(item: str, answer: str, scoring: Scoring, *, alone: bool) -> bool:
    text = cleaned(answer)
    if scoring == "official":
        wanted = cleaned(item)
        return wanted in re.findall(r"\w+|[^\w\s]", text) if alone and len(wanted) == 1 else wanted in text
    return any(stands_alone(cleaned(one), text) for one in item.split(OR))


def stands_alone(wanted: str, text: str) -> bool:
    """Return True if `wanted` occurs in `text` and is not part of a longer word or number."""
    return re.search(rf"(?<![\w.,]\B)(?<!\w)(?<!\d[.,]){re.escape(wanted)}(?!\w)(?![.,]\d)", text) is not None


def _same_place(reference: str, url: str, scoring: Scoring) -> bool:
    wanted, there = urlsplit(reference), urlsplit(url)
    base, here = f"{wanted.netloc}{wanted.path}".rstrip("/"), f"{there.netloc}{there.path}".rstrip("/")
    if (base not in here) if scoring == "official" else (base != here):
        return False
    expected, actual = parse_qs(wanted.query), parse_qs(there.query)
    return all(any(value in actual.get(name, []) for value in values) for name, values in expected.items())


def _holds(target: Mapping[str, Any], ending: EpisodeEnd, scoring: Scoring) -> bool:
    """Return True if a page has the required content."""
    text = cleaned(html.unescape(ending.read(target["url"], target["locator"], target.get("prep_actions") or ())))
    wanted = target["required_contents"]
    if "exact_match" in wanted:
        return text == cleaned(wanted["exact_match"])
    contains: Callable[[str, str], bool] = stands_alone if scoring == "strict" else lambda one, text: one in text
    return all(any(contains(cleaned(one), text) for one in item.split(OR)) for item in wanted["must_include"])
