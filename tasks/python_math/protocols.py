"""Protocols of tool-integrated reasoning: how a reply calls Python or answers, and how a result looks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lmgym.env.actions import parse_tag
from lmgym.env.answers import boxed

TICKS = re.compile(r"`{3,}")
LANGUAGES = ("", "python", "python3", "py")  # of a fence that holds a program, in any case
CLOSING = re.compile(r" {0,3}(`{3,})")
MARKUP = (  # of any protocol and of chat templates: what a result must not contain
    re.compile(r"<(?=/?(?:code|python|interpreter|output|answer|think|tool_call|tool_response)\b)", re.IGNORECASE),
    re.compile(r"<(?=\||/?s>|/?(?:start|end)_of_turn>|\uff5c)", re.IGNORECASE),
    re.compile(r"\[(?=/?(?:INST|SYSTEM_PROMPT)\])", re.IGNORECASE),
)
FENCES = re.compile(r"`{3,}")
RESULT = re.compile(r"(code execution results?):", re.IGNORECASE)
CUT = "\n... {} characters left out ...\n"
QUIET = "(no output)"


@dataclass(frozen=True)
class AgentReply:
    """A reply of a policy: a program, or an answer, or neither: a void turn."""

    code: str | None = None
    answer: str | None = None


@dataclass(frozen=True, kw_only=True)
class ToolProtocol:
    """Markup, limits and rewards of a system."""

    tag: str = ""  # programs stand in it
    fences: bool = False  # programs stand in fences
    answer: Callable[[str], str | None]
    call: str  # with {code}
    final: str  # with {answer}
    result: str  # with {result}
    runs: int  # programs of an episode; a further one counts as a void turn
    longest: int  # characters of a result; longer ones lose their middle
    last_line: bool = False  # of an error, its last line alone is shown, and no output with it
    helper: bool = False  # programs may answer by calling final_answer(value)
    void_ends: bool = True  # a reply without a program and without an answer ends the episode
    wrong: float = 0.0  # reward of an episode that ends without the right answer
    bonus: Mapping[str, float] | None = None  # rewards of "format" and "tool"


def read(protocol: ToolProtocol, action: str) -> AgentReply:
    """Return what a reply says: what comes first counts, and all behind a program is dropped."""
    calls = (_tagged(action, protocol.tag) if protocol.tag else None, fence(action) if protocol.fences else None)
    call = min((each for each in calls if each is not None), default=None)
    answer = protocol.answer(action if call is None else action[: call[0]])
    if answer is not None:
        return AgentReply(answer=answer)
    return AgentReply(code=None if call is None else call[1])


def neutral(text: str) -> str:
    r"""Return a result in which nothing reads as markup: a space parts tags, fences, \boxed and marks of turns."""
    for pattern in MARKUP:
        text = pattern.sub(lambda match: match[0] + " ", text)
    text = FENCES.sub(lambda match: " ".join(match[0]), text).replace("\\boxed", "\\ boxed")
    return RESULT.sub(r"\1 :", text)


def shown(protocol: ToolProtocol, text: str) -> str:
    """Return the observation of a result."""
    text = neutral(text.strip()) or QUIET
    if len(text) > protocol.longest:
        half = (protocol.longest - len(CUT) - 10) // 2
        text = neutral(f"{text[:half]}{CUT.format(len(text) - 2 * half)}{text[-half:]}")
    return protocol.result.format(result=text)


def fence(action: str) -> tuple[int, str] | None:
    """Return start and content of the first closed fence of Python or of no language; other fences are skipped."""
    position = 0
    opening: tuple[int, int, int, bool] | None = None  # start, ticks, start of the content, and if it is a program
    for rest in action.split("\n"):
        begin, position = position, position + len(rest) + 1
        if opening is not None:
            start, ticks, content, program = opening
            closing = CLOSING.match(rest)
            if closing is None or len(closing[1]) < ticks:
                continue
            if program:
                return start, _code(action[content:begin])
            begin, rest, opening = begin + closing.end(), rest[closing.end() :], None
        marks = list(TICKS.finditer(rest))
        if len(marks) % 2:  # a pair is code within a line
            mark = marks[-1]
            program = _is_program(rest[mark.end() :])
            if program or not rest[: mark.start()].strip():
                opening = begin + mark.start(), len(mark[0]), position, program
    return None


def _tagged(action: str, tag: str) -> tuple[int, str] | None:
    """Return start and content of the first closed `<tag>`, without a fence around it."""
    start = action.find(f"<{tag}>")
    end = action.find(f"</{tag}>", start) if start >= 0 else -1
    if end < 0:
        return None
    inside = action[start + len(tag) + 2 : end]
    if (program := fence(inside)) is not None:
        return start, program[1]
    first, _, rest = inside.strip().partition("\n")
    if rest.endswith("```") and (mark := TICKS.match(first)) and _is_program(first[mark.end() :]):
        return start, _code(rest.rstrip("`"))  # the last line closes the fence
    return start, _code(inside)


def _is_program(language: str) -> bool:
    return language.strip().lower() in LANGUAGES


def _code(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n")


def _boxed_answer(action: str) -> str | None:
    r"""Return the content of \boxed{} in the last `<answer>`."""
    return boxed(parse_tag(action, "answer") or "")


def _tagged_answer(action: str) -> str | None:
    r"""Return the content of the last `<answer>`, without \boxed{}."""
    tagged = parse_tag(action, "answer")
    return None if tagged is None else boxed(tagged) or tagged


PROTOCOLS: Mapping[str, ToolProtocol] = {
    "retool": ToolProtocol(
        tag="code",
        answer=_boxed_answer,
        call="<code>\n```python\n{code}\n```\n</code>",
        final="<answer>\\boxed{{{answer}}}</answer>",
        result="<interpreter>\n{result}\n</interpreter>",
        runs=8,
        longest=2000,
        wrong=-1.0,
    ),
    "simpletir": ToolProtocol(
        fences=True,
        answer=boxed,
        call="```python\n{code}\n```",
        final="\\boxed{{{answer}}}",
        result="Code execution result: {result}",
        runs=9,  # ten turns
        longest=512,
        last_line=True,
        helper=True,
    ),
    "artist": ToolProtocol(
        tag="python",
        answer=_tagged_answer,
        call="<python>\n{code}\n</python>",
        final="<answer>{answer}</answer>",
        result="<output>\n{result}\n</output>",
        runs=10,
        longest=2000,
        void_ends=False,
        bonus={"format": 0.1, "tool": 0.1},
    ),
    "gem": ToolProtocol(
        tag="python",
        fences=True,
        answer=boxed,
        call="<python>\n{code}\n</python>",
        final="\\boxed{{{answer}}}",
        result="Code execution result: {result}",
        runs=10,
        longest=2000,
    ),
}
