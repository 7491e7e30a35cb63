"""Goals in presentations: titles, slides, and export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from lmgym.tasks.desktop.goals import Builder, DesktopGoal, office, words
from lmgym.tasks.desktop.moves import SAVE, Move, click, key, menu, typed
from lmgym.tasks.desktop.office import deck, read_pdf, read_slides

Rng = np.random.Generator
FILE = "talk.pptx"
Slides = list[tuple[str, str]]


def _slides(rng: Rng, count: int = 3) -> Slides:
    drawn = words(rng, 4 * count)
    return [(drawn[i].title(), " ".join(drawn[i + count :: count]).capitalize()) for i in range(count)]


def _goal(text: str, slides: Slides, plan: tuple[Move, ...], after: Callable[[list[list[str]]], bool]) -> DesktopGoal:
    return DesktopGoal(
        text=f"{text} Save the presentation.",
        files={FILE: deck(*slides)},
        launches=office(FILE),
        plan=(*plan, SAVE),
        reached=lambda home: after(read_slides(home / FILE)),
        changes=frozenset({FILE}),
    )


def replace_in_slides(rng: Rng) -> DesktopGoal:
    """Replace a word on all slides."""
    slides, new = _slides(rng), "Zebra"
    old = slides[1][0]
    wanted = [[title.replace(old, new), body] for title, body in slides]
    plan = (key("ctrl+h"), typed(old), key("alt+p"), typed(new), click("Replace All"), click("Close"))
    return _goal(f'Replace the word "{old}" in talk.pptx by "{new}".', slides, plan, lambda texts: texts == wanted)


def add_slide(rng: Rng) -> DesktopGoal:
    """Add an empty slide after the first."""
    slides = _slides(rng)
    titles = [title for title, _ in slides]

    def after(pages: list[list[str]]) -> bool:
        return [texts[:1] for texts in pages] == [titles[:1], [], *([title] for title in titles[1:])]

    return _goal("Add a slide without text after the first slide of talk.pptx.", slides, (key("ctrl+m"),), after)


def delete_slide(rng: Rng) -> DesktopGoal:
    """Delete the first slide."""
    slides = _slides(rng)
    wanted = [list(slide) for slide in slides[1:]]
    plan = menu("l", "Delete Slide")
    return _goal("Delete the first slide of talk.pptx.", slides, plan, lambda texts: texts == wanted)


def duplicate_slide(rng: Rng) -> DesktopGoal:
    """Duplicate the first slide."""
    slides = _slides(rng)
    wanted = [list(slide) for slide in (slides[0], *slides)]
    plan = menu("l", "Duplicate Slide")
    return _goal("Duplicate the first slide of talk.pptx.", slides, plan, lambda texts: texts == wanted)


def title_slide(rng: Rng) -> DesktopGoal:
    """Add a slide with a title."""
    slides, title = _slides(rng, 2), " ".join(words(rng, 2)).title()
    text = f'Add a slide after the first slide of talk.pptx and give it the title "{title}".'

    def after(pages: list[list[str]]) -> bool:
        return [texts[0] for texts in pages if texts] == [slides[0][0], title, slides[1][0]] and len(pages) == 3

    plan = (key("ctrl+m"), key("ctrl+enter"), typed(title), key("escape"))
    return _goal(text, slides, plan, after)


def export_slides(rng: Rng) -> DesktopGoal:
    """Export a presentation as PDF."""
    slides = _slides(rng)

    def reached(home: Path) -> bool:
        pages = read_pdf(home / "talk.pdf")
        return len(pages) == len(slides) and all(title in page for (title, _), page in zip(slides, pages, strict=True))

    return DesktopGoal(
        text="Export talk.pptx, which is open, as talk.pdf into the home folder.",
        files={FILE: deck(*slides)},
        launches=office(FILE),
        plan=(*menu("f", "Export As", "Export Directly as PDF"), key("enter")),
        reached=reached,
        changes=frozenset({"talk.pdf"}),
    )


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((replace_in_slides, title_slide, export_slides), 2),
    **dict.fromkeys((add_slide, delete_slide, duplicate_slide), 1),
}
