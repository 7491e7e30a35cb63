"""Whether a record may be played here without knowing who made it: its task and options, not its words, decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmgym.env.registry import find
from lmgym.errors import ReplayError
from lmgym.types import Trajectory


def check_harmless(trajectory: Trajectory) -> None:
    """Raise ReplayError where playing a record calls a server, imports a function, runs code or opens a file it names.

    Words that an option has are names of files unless the task's spec knows them.
    """
    spec, options = find(trajectory.task), trajectory.options
    words = {name: set(_words(value)) for name, value in options.items()}
    known = {"others": {"scripted", "caller"}, "split": set(spec.splits)}
    for choices in (spec.options, spec.public):
        for name, value in choices.items():
            known[name] = known.get(name, set()) | set(_words(value))
    named = [name for name in options if any(word.startswith("python:") for word in words[name])]
    strange = [name for name in options if words[name] - known.get(name, set())]
    if spec.elsewhere:
        why = f"calls the server {options.get('url', '')!r}"
    elif spec.runs_code:
        why = "runs its actions, which are code"
    elif named or "others" in strange:
        name = named[0] if named else "others"
        why = f"imports {name}={options[name]!r}"
    elif strange:
        why = f"may open what it names as {strange[0]}={options[strange[0]]!r}"
    else:
        return
    raise ReplayError(
        f"to play {trajectory.id} ({spec.id}) again {why}: "
        "say --trust, in Python trusted=True, where you know who recorded it"
    )


def _words(value: Any) -> Iterator[str]:
    """All words in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from _words(pair)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _words(each)
