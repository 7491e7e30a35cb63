"""Check from a record's task and options, not from its text, that a stranger's episode is safe to play here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmgym.env.registry import find
from lmgym.errors import ReplayError
from lmgym.types import Trajectory


def check_harmless(trajectory: Trajectory) -> None:
    """Raise ReplayError if playing a record calls a server, imports a function, runs code or opens a file it names.

    Strings in an option count as file names unless the task's spec lists them.
    """
    spec, options = find(trajectory.task), trajectory.options
    strings = {name: set(_strings(value)) for name, value in options.items()}
    listed = {"others": {"scripted", "caller"}, "split": set(spec.splits)}
    for choices in (spec.options, spec.public):
        for name, value in choices.items():
            listed[name] = listed.get(name, set()) | set(_strings(value))
    imports = [name for name in options if any(text.startswith("python:") for text in strings[name])]
    unlisted = [name for name in options if strings[name] - listed.get(name, set())]
    if spec.remote:
        reason = f"calls the server {options.get('url', '')!r}"
    elif spec.isolated:
        reason = "runs its actions as code"
    elif imports or "others" in unlisted:
        name = imports[0] if imports else "others"
        reason = f"imports {name}={options[name]!r}"
    elif unlisted:
        reason = f"may open the file {unlisted[0]}={options[unlisted[0]]!r}"
    else:
        return
    raise ReplayError(
        f"playing {trajectory.id} ({spec.id}) again {reason}: "
        "pass --trust, in Python trusted=True, if you know who recorded it"
    )


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.items() if isinstance(value, Mapping) else value:
            yield from _strings(each)
