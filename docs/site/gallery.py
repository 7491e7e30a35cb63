"""Write docs/reference/gallery.md: an oracle episode of every task that runs here, with a picture where it has one.

`make cards` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from lmgym.cli.tasks import built_in
from lmgym.env.registry import build, load, options_of
from lmgym.env.spec import TaskSpec

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "reference/gallery.md"
PICTURES = DOCS / "pictures/gallery"
HEAD = """# Task gallery

The oracle plays the first test instance of each task; `make cards` writes this page. Tasks without an
oracle, and those that need official data or a server of yours, are not shown. Long observations are cut.
"""
TURNS, WIDTH, LINES = 3, 110, 8  # turns of an episode, characters of a line and lines of an observation that are shown
SPLIT = "test"


def main() -> None:
    """Write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join([HEAD, *map(episode, tasks())]))


def tasks() -> Iterator[TaskSpec]:
    """Yield the tasks with instances of their own and an oracle."""
    for spec in built_in():
        if spec.splits.get(SPLIT) and "oracle" in spec.references and not spec.remote:
            yield spec


def episode(spec: TaskSpec) -> str:
    """Return the section of a task: what its oracle sees and does on test instance 0."""
    pixels = {"pixels": "screenshot"} if "pixels" in options_of(load(spec)) else {}
    env = build(spec.id, split=SPLIT, **pixels)
    try:
        observation, info = env.reset(seed=0, options={"index": 0})
        lines, hidden, terminated, truncated = [cut(observation["text"])], 0, False, False
        picture = save(spec, observation)
        for number, action in enumerate(env.unwrapped.oracle()):
            observation, _, terminated, truncated, info = env.step(action)
            if number < TURNS:
                lines += [f"> {cut(action)}", cut(observation["text"])]
            else:
                hidden += 1
            if terminated or truncated:
                break
    finally:
        env.close()
    if hidden:
        lines.append(f"[{hidden} more turns]")
    lines.append(f"score {info['score']:g}, success {info['success']}")
    card = f"[card](../../tasks/{spec.name}/README.md)"
    transcript = "\n".join(line for line in lines if line)
    image = f"![First observation of {spec.id}]({picture})\n\n" if picture else ""
    title = f"## {spec.id.partition('/')[2]}\n\n{spec.summary} (`{spec.id}`, {card})"
    return f"{title}\n\n{image}<!-- output -->\n```text\n{transcript}\n```\n"


def cut(text: str) -> str:
    """Return the text with few and short lines, safe inside a fenced block."""
    lines = [
        line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
        for line in text.strip().replace("```", "'''").splitlines()
    ]
    return "\n".join(lines if len(lines) <= LINES else [*lines[:LINES], f"[{len(lines) - LINES} more lines]"])


def save(spec: TaskSpec, observation: dict[str, Any]) -> str:
    """Save the first picture of an observation, if it has one, and return its path from the page."""
    images = observation.get("images", ())
    if not len(images):
        return ""
    name = f"{spec.id.partition('/')[2]}.png"
    Image.fromarray(images[0]).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(
        PICTURES / name, optimize=True
    )
    return f"../pictures/gallery/{name}"


if __name__ == "__main__":
    main()
