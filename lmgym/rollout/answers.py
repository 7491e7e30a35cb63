"""Answer formats: the part of a policy's answer that the environment receives as its action."""

from __future__ import annotations

import re
from typing import Literal

AnswerFormat = Literal["plain", "action"]
REQUEST = """You may think first, in a few sentences. End every answer with one line of this form:
Action: the action alone"""
MARKER = re.compile(r"^[\W_]*action[\W_]*:[*_ \t]*", re.IGNORECASE | re.MULTILINE)  # also **Action:** and > Action:
FENCE = re.compile(r"\A```[\w-]*\n(.*?)\n?```", re.DOTALL)
QUOTES = ("`", '"', "'", "**")


def action_of(text: str, answers: AnswerFormat) -> str:
    """Return the action in an answer.

    "plain" answers are actions as a whole. In "action" answers, the action follows the last `Action:`, as in ReAct
    (Yao et al. 2023, arXiv 2210.03629): the rest of its line or, if that is empty, the next line or fenced block.
    Without the word it is the last line. Quotes, backticks or asterisks around the action are dropped.
    """
    if answers == "plain":
        return text
    *_, last = [None, *MARKER.finditer(text)]
    rest = text if last is None else text[last.end() :]
    if last is not None and (block := FENCE.match(rest.lstrip())):
        return block[1].strip()
    lines = [line.strip() for line in rest.splitlines() if line.strip()]
    return _bare(lines[0 if last else -1]) if lines else ""


def system_prompt(system: str | None, instructions: str, answers: AnswerFormat) -> str | None:
    """Return the agent's system prompt: the caller's, and for "action" answers the task's instructions and the form."""
    if answers == "plain":
        return system
    return "\n\n".join(part for part in (system, instructions, REQUEST) if part)


def _bare(line: str) -> str:
    """Return a line without a pair of quotes around all of it."""
    for quote in QUOTES:
        inner = line[len(quote) : -len(quote)]
        if len(line) > 2 * len(quote) and line == f"{quote}{inner}{quote}" and quote not in inner:
            return inner.strip()
    return line
