"""Answer formats: the part of a policy's answer that the environment receives as its action."""

from __future__ import annotations

import re
from typing import Literal

AnswerFormat = Literal["plain", "action"]
REQUEST = """You may think first, in a few sentences. End every answer with one line of this form:
Action: the action alone"""
NAMES = r"(?:(?:my|the|next|final|first|best|right)\s)*(?:action|guess|move|answer|command|choice)"
MARKER = re.compile(  # also **Action:**, > Action: and My next guess:
    rf"^[\W_]*{NAMES}(?:\s#?\d{{1,3}})?[\W_]*:[*_ \t]*", re.IGNORECASE | re.MULTILINE
)
FENCE = re.compile(r"\A```[\w-]*\n(.*?)\n?```", re.DOTALL)
QUOTES = ("`", '"', "'", "**")
SENTENCE = re.compile(r"(?<=[.!?])\s+")
OPENING = (  # "2) So, now "
    r"(?:(?:[-*]|\d{1,2}[.)])\s+)?"
    r"(?:(?:so|now|then|next|first|okay|ok|therefore|thus|finally|well|sure)\b[,:!.]?\s*){0,3}"
)
THOUGHT = r"(?:(?:I|we)\s(?:think|believe|guess)\s(?:that\s)?(?=I\b|we\b|the\b|my\b))?"  # "I think that "
SPEAKER = (  # "I would like to ", but not what the speaker sees, has or knows
    r"(?:I|we)(?:['\u2019](?:ll|d|m|re)|\s(?:will|would|should|shall|must|am going|are going))?"
    r"(?:\s(?:now|then|first|next|going|to|like|want|need|have to|try|choose|decide|guess|say|play|answer|with))*"
    r"(?!\s(?:a[mr]e?|ca\w+|could\w*|do\w*|did\w*|feel|found|ha[sd]|have|know|notice|see|so|think|believe|was)\b)"
)
SUGGESTION = r"let(?:['\u2019]?s|\sus|\sme)(?:\s(?:now|first|try|guess|say|play))*"  # "Let me try "
NAMED = rf"{NAMES}\s(?:is|would be|will be)(?:\sto)?"  # "My next guess is "
INTENT = re.compile(
    rf"{OPENING}{THOUGHT}(?:{SPEAKER}|{SUGGESTION}|{NAMED})\s+(?:the (?:word|number)\s+)?(?=\S)", re.IGNORECASE
)
REASON = re.compile(r",?\s(?:because|since|so that|in order to|as it|which)\b|,\s(?:as|so)\b", re.IGNORECASE)
MARKED = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\"([^\"]+)\"|\u201c([^\u201d]+)\u201d")


def action_of(text: str, answers: AnswerFormat) -> str:
    """Return the action in an answer.

    "plain" answers are actions as a whole. In "action" answers, the action follows the last `Action:`, as in ReAct
    (Yao et al. 2023, arXiv 2210.03629), or `Guess:`, `Next move:` and the like: the rest of its line or, if that is
    empty, the next line or fenced block. Without such a word it is the last line or, if that says what its speaker
    does ("I will go north."), what is said there. Quotes, backticks or asterisks around the action are dropped.
    """
    if answers == "plain":
        return text
    *_, last = [None, *MARKER.finditer(text)]
    rest = text if last is None else text[last.end() :]
    if last is not None and (block := FENCE.match(rest.lstrip())):
        return block[1].strip()
    lines = [line.strip() for line in rest.splitlines() if line.strip()]
    if not lines:
        return ""
    return _bare(lines[0]) if last else _said(_bare(lines[-1]))


def system_prompt(system: str | None, instructions: str, answers: AnswerFormat) -> str | None:
    """Return the agent's system prompt: the caller's, and for "action" answers the task's instructions and the form."""
    if answers == "plain":
        return system
    return "\n\n".join(part for part in (system, instructions, REQUEST) if part)


def _said(line: str) -> str:
    """Return what the last sentence of intent in a line says its speaker does; the line, if there is none."""
    for sentence in reversed(SENTENCE.split(line)):
        if intent := INTENT.match(sentence):
            action = REASON.split(sentence[intent.end() :])[0].strip()
            if marked := MARKED.search(action):
                return next(text for text in marked.groups() if text).strip()
            return action.rstrip(".!,;:") or line
    return line


def _bare(line: str) -> str:
    """Return a line without a pair of quotes around all of it."""
    for quote in QUOTES:
        inner = line[len(quote) : -len(quote)]
        if len(line) > 2 * len(quote) and line == f"{quote}{inner}{quote}" and quote not in inner:
            return inner.strip()
    return line
