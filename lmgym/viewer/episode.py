"""Recorded episodes as JSON values for the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmgym.types import Completion, Message, Trajectory, Turn
from lmgym.viewer.marks import points

Decode = Callable[[Sequence[int]], str]  # token ids to text

MAX_SPLIT = 8  # tokens that may form one character


def episode_json(trajectory: Trajectory, *, decode: Decode | None = None) -> dict[str, Any]:
    """Return an episode turn by turn, with the text of tokens if there is a decoder."""
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
    completion = turn.completion
    return {
        "observation": _message(turn.observation),
        "text": completion.text,
        "thinking": completion.thinking,
        "action": None if turn.action == completion.text else turn.action,
        "replaced": turn.action is not None and turn.action != completion.text,
        "kind": turn.kind,
        "fresh": turn.fresh,
        "finish": completion.finish,
        "version": completion.version,
        "reward": plain(turn.reward),
        "terms": plain(turn.terms),
        "info": plain(turn.info),
        "usage": plain(completion.usage),
        "points": [list(point) for point in points(turn)],
        "tokens": tokens(completion, decode),
    }


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "text": message.text, "images": list(message.images)}


def tokens(completion: Completion, decode: Decode | None) -> list[list[Any]]:
    """Return text, log-prob and entropy of each sampled token; the id without a decoder, None where missing."""
    words = [f"\u27e8{token}\u27e9" for token in completion.ids] if decode is None else _words(completion.ids, decode)
    logprobs = [*completion.logprobs, *[None] * len(completion.ids)]
    entropy = [*completion.entropy, *[None] * len(completion.ids)]
    return [list(row) for row in zip(words, plain(logprobs), plain(entropy), strict=False)]


def _words(ids: Sequence[int], decode: Decode) -> list[str]:
    """Return the text of each id; a character of several ids is written at the last one."""
    words, held = [], 0
    for place in range(len(ids)):
        text = decode(ids[place - held : place + 1])
        if text.endswith("\ufffd") and held < MAX_SPLIT:
            held += 1
            words.append("")
        else:
            held = 0
            words.append(text)
    if held:
        words[-1] = decode(ids[len(ids) - held :])
    return words


def plain(value: Any, *, depth: int = 0) -> Any:
    """Return a value safe for JavaScript: no NaN or infinity, no integers that it would round, no deep nesting."""
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
