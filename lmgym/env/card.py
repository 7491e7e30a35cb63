"""The card of a task: a block of its README.md, generated from its spec."""

from __future__ import annotations

from pathlib import Path

from lmgym.env.golden import folder
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError

FILE = "README.md"
END = "<!-- /spec -->"


def card(spec: TaskSpec) -> str:
    """Return the generated block with its markers."""
    splits = ", ".join(f"{name} {size or '(official data)'}" for name, size in spec.splits.items())
    references = ", ".join(f"{name} {_figure(value)}" for name, value in spec.references.items())
    rows = {
        "id": f"`{spec.id}`",
        "what": spec.summary,
        "turns": "as the task says that is played" if spec.remote else f"{spec.max_turns} at most",
        "splits": "those of the task that is played" if spec.remote else splits,
        "splits share instances": spec.overlap,
        "no training on": ", ".join(spec.held_out),
        "score": spec.score,
        "known scores": references,
        "options of this id": ", ".join(f"`{name}={value!r}`" for name, value in spec.options.items()),
        "needs": f"`pip install 'lmgym[{','.join(spec.extras)}]'`" if spec.extras else "",
        "chance": "" if spec.deterministic else "the same seed and actions may lead elsewhere",
        "source": spec.source,
    }
    cells = {name: value.replace("|", "\\|").replace("\n", " ") for name, value in rows.items()}
    lines = [f"| {name} | {cell} |" for name, cell in cells.items() if cell]
    return "\n".join([_start(spec), "| | |", "|---|---|", *lines, END])


def differs(spec: TaskSpec) -> str | None:
    """Return how the folder's README differs from the spec; None if it agrees or the spec is part of another task."""
    if spec.part_of:
        return None
    path = folder(spec) / FILE
    if not path.is_file():
        return f"{FILE} is missing; write it with: lmgym golden {spec.name} --write"
    text = path.read_text(encoding="utf-8")
    if _start(spec) not in text:
        return f"{FILE} has no block {_start(spec)}; write it with: lmgym golden {spec.name} --write"
    if card(spec) not in text:
        return f"{FILE} differs from the spec; write it with: lmgym golden {spec.name} --write"
    return None


def write(spec: TaskSpec) -> Path:
    """Write the card into the README of the task's folder, replacing the old one."""
    path = folder(spec) / FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else f"# {spec.id.partition('/')[2]}\n"
    before, start, after = text.partition(_start(spec))
    if not start:
        path.write_text(f"{text.rstrip()}\n\n{card(spec)}\n", encoding="utf-8")
        return path
    _, end, rest = after.partition(END)
    if not end:
        raise InstanceError(f"{path}: the block {start} has no {END}; add it after the table")
    path.write_text(before + card(spec) + rest, encoding="utf-8")
    return path


def _start(spec: TaskSpec) -> str:
    return f"<!-- spec {spec.id} -->"


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"
