"""One episode as the page shows it: plain values only, whatever was in its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmgym.types import Completion, Message, Trajectory, Turn
from lmgym.viewer.marks import points

Decode = Callable[[Sequence[int]], str]  # ids to the text they stand for

HELD = 8  # tokens that one character may take


def shown(trajectory: Trajectory, *, decode: Decode | None = None) -> dict[str, Any]:
    """The episode turn by turn; tokens with their text where `decode` knows it."""
    names = ("id", "task", "split", "index", "attempt", "seed", "seat", "stop", "terminated", "truncated", "parent")
    facts = {name: getattr(trajectory, name) for name in names}
    info = {name: value for name, value in trajectory.info.items() if name not in ("score", "success")}
    facts |= {"score": trajectory.info.get("score"), "success": trajectory.info.get("success")}
    return {
        "facts": plain({**facts, "reward": trajectory.reward, "options": trajectory.options, "tags": trajectory.tags}),
        "info": plain(info),
        "prompt": trajectory.prompt,
        "turns": [_turn(turn, decode) for turn in trajectory.turns],
        "final": None if trajectory.final is None else _message(trajectory.final),
    }


def _turn(turn: Turn, decode: Decode | None) -> dict[str, Any]:
    said = turn.completion
    return {
        "observation": _message(turn.observation),
        "text": said.text,
        "thinking": said.thinking,
        "action": None if turn.action == said.text else turn.action,
        "replaced": turn.action is not None and turn.action != said.text,
        "kind": turn.kind,
        "fresh": turn.fresh,
        "finish": said.finish,
        "version": said.version,
        "reward": plain(turn.reward),
        "terms": plain(turn.terms),
        "info": plain(turn.info),
        "usage": plain(said.usage),
        "points": [list(point) for point in points(turn)],
        "tokens": tokens(said, decode),
    }


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "text": message.text, "images": list(message.images)}


def tokens(said: Completion, decode: Decode | None) -> list[list[Any]]:
    """Of each sampled token its text (its id where no tokenizer is known), log-prob and entropy, null if unknown."""
    words = [f"\u27e8{token}\u27e9" for token in said.ids] if decode is None else _words(said.ids, decode)
    logprobs = [*said.logprobs, *[None] * len(said.ids)]
    entropy = [*said.entropy, *[None] * len(said.ids)]
    return [list(row) for row in zip(words, plain(logprobs), plain(entropy), strict=False)]


def _words(ids: Sequence[int], decode: Decode) -> list[str]:
    """Text of each id; a character that several ids make up stands at the last of them."""
    words, held = [], 0
    for place in range(len(ids)):
        text = decode(ids[place - held : place + 1])
        if text.endswith("\ufffd") and held < HELD:
            held += 1
            words.append("")
        else:
            held = 0
            words.append(text)
    if held:
        words[-1] = decode(ids[len(ids) - held :])
    return words


def plain(value: Any, *, depth: int = 0) -> Any:
    """A value that every JSON reader takes: no nan or infinity, no number that JavaScript rounds, no deep nest."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= 53 else str(value) if bits < 4096 else f"a number of {bits} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > 20:
        return "..."
    if isinstance(value, Mapping):
        return {str(name): plain(one, depth=depth + 1) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [plain(one, depth=depth + 1) for one in value]
    return str(value)
