"""Goals in the browser, on pages of the home folder."""

from __future__ import annotations

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.goals import Builder, DesktopGoal, content, editor, numbers, office, words
from lmgym.tasks.desktop.moves import SAVE, Move, cell, click, key, typed
from lmgym.tasks.desktop.office import read_cells, workbook

Rng = np.random.Generator
PAGE, NEXT, BOOK = "shop.html", "prices.html", "stock.xlsx"


def _page(title: str, body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>\n"


def _prices(names: list[str], amounts: list[int]) -> str:
    rows = "".join(f"<tr><td>{name}</td><td>{n} EUR</td></tr>" for name, n in zip(names, amounts, strict=True))
    return _page("Prices", f"<table>{rows}</table>")


def _shop(rng: Rng) -> str:
    paragraphs = "".join(f"<p>{' '.join(words(rng, 6)).capitalize()}.</p>" for _ in range(3))
    return _page("Shop", f'{paragraphs}<p><a href="{NEXT}">All prices</a></p>')


def _browser(name: str, title: str) -> tuple[Launch, ...]:
    return (Launch("chromium", (name,), title),)


def page_to_text(rng: Rng) -> DesktopGoal:
    """Write a number of a page into a text."""
    names, amounts = words(rng, 5), numbers(rng, 5)
    place = int(rng.integers(5))
    return DesktopGoal(
        text=f"Which price has the open page for {names[place]}? Write the number into answer.txt; save it.",
        files={NEXT: _prices(names, amounts), "answer.txt": ""},
        launches=(*_browser(NEXT, "Prices"), *editor("answer.txt")),
        plan=(typed(str(amounts[place])), SAVE),
        reached=lambda home: (content(home / "answer.txt") or "").strip() == str(amounts[place]),
        changes=frozenset({"answer.txt"}),
    )


def linked_page_to_text(rng: Rng) -> DesktopGoal:
    """Follow a link and write a number of the page that it leads to into a text."""
    names, amounts = words(rng, 5), numbers(rng, 5)
    place = int(rng.integers(5))
    return DesktopGoal(
        text=f'Follow the link "All prices" of the open page, and write the price of {names[place]}, the number alone, '
        "into the open answer.txt; save it.",
        files={PAGE: _shop(rng), NEXT: _prices(names, amounts), "answer.txt": ""},
        launches=(*editor("answer.txt"), *_browser(PAGE, "Shop")),
        plan=(click("All prices", "link"), key("alt+tab"), typed(str(amounts[place])), SAVE),
        reached=lambda home: (content(home / "answer.txt") or "").strip() == str(amounts[place]),
        changes=frozenset({"answer.txt"}),
    )


def page_to_sheet(rng: Rng) -> DesktopGoal:
    """Copy the numbers of a page into a sheet."""
    names, amounts = words(rng, 3), numbers(rng, 3)
    wanted = {f"A{y}": name for y, name in enumerate(names, 1)} | {f"B{y}": n for y, n in enumerate(amounts, 1)}
    plan: tuple[Move, ...] = (*cell("B1"), typed("".join(f"{amount}\n" for amount in amounts)), SAVE)
    return DesktopGoal(
        text="Enter the prices of the open page beside their names, in column B of stock.xlsx; save the sheet.",
        files={NEXT: _prices(names, amounts), BOOK: workbook(("Stock", [(name,) for name in names]))},
        launches=(*_browser(NEXT, "Prices"), *office(BOOK)),
        plan=plan,
        reached=lambda home: read_cells(home / BOOK) == wanted,
        changes=frozenset({BOOK}),
    )


FAMILIES: dict[Builder, int] = {page_to_text: 1, **dict.fromkeys((linked_page_to_text, page_to_sheet), 2)}
