"""Text observations of pages: the visible texts, generated directly as the original extracts them from HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Literal

from lmgym.tasks.webshop.page import html
from lmgym.tasks.webshop.products import Product
from lmgym.tasks.webshop.session import BACK, BUY, NEXT, PREVIOUS, ShopSession

SEPARATOR = " [SEP] "
SPACES = " \n\t\f\r"  # what the original's parser takes for blank
Part = tuple[Literal["words", "button", "option", "link"], str]  # a visible text, and what it stands in


def nodes(session: ShopSession) -> list[Part]:
    """Return the visible texts of the page; blank ones as an HTML parser leaves them."""
    parts = [part for part in _parts(session) if part[1]]
    blank = [(kind, words if words.strip(SPACES) else "\n" if "\n" in words else " ") for kind, words in parts]
    return [part for part in blank if part[1] != "\n"]


def text(session: ShopSession) -> str:
    """Return the page in mode "text": its visible texts, stripped, joined by " [SEP] "."""
    return SEPARATOR.join(words.strip() for _, words in nodes(session))


def text_rich(session: ShopSession) -> str:
    """Return the page in mode "text_rich": one text per line, clickable ones between marks."""
    lines: list[str] = []
    chosen: list[str] = []
    url, seen = session.url, {session.shop.product(place).asin for place in session.seen}
    for kind, words in nodes(session):
        if kind == "words":
            lines.append(words)
            continue
        clicked = (kind == "option" and f'"{words}"' in url) or (kind == "link" and words in seen)
        if clicked and kind == "option":
            chosen.insert(0, f"You have clicked {words}.")
        mark = "clicked button" if clicked else "button"
        before = {"button": "", "option": "  ", "link": "\n"}[kind]
        lines.append(f"{before}[{mark}] {words} [{mark}_]")
    return "".join(f"{line}\n" for line in (*chosen, *lines))


def brief(session: ShopSession) -> str:
    """Return the page in mode "brief", for small models: lower case, one product per line, no repetition, no marks.

    The instruction stands on the start page only, title and price on the results page; a chosen option is answered by
    its name instead of the page.
    """
    if session.kind == "index":
        lines = [session.instruction, "search"]
    elif session.kind == "done":
        lines = ["thank you for shopping with us"]
    elif session.kind == "search_results":
        products = (session.shop.product(place) for place in session.listed)
        lines = [f"{product.asin} {product.title} {product.tag}" for product in products]
        pages = [PREVIOUS, NEXT] if session.page > 1 else [NEXT]
        lines = [f"page {session.page} of {len(session.hits)} results", *lines, ", ".join((*pages, BACK))]
    elif session.clicked:
        lines = [f"{session.clicked} chosen"]
    elif session.kind == "item_page":
        groups = [f"{name}: {', '.join(values)}" for name, values in session.product.options.items()]
        lines = [*groups, ", ".join((*session.tabs, BUY, PREVIOUS, BACK))]
    else:
        lines = [words.strip() for words in tab_texts(session.product, session.tab)] + [", ".join((PREVIOUS, BACK))]
    return "\n".join(lines).lower()


MODES: Mapping[str, Callable[[ShopSession], str]] = {
    "text": text,
    "text_rich": text_rich,
    "html": html,
    "url": lambda session: session.url,
    "brief": brief,
}


def _parts(session: ShopSession) -> list[Part]:
    if session.kind == "index":
        return [("words", "WebShop"), ("words", "Instruction: "), ("words", session.instruction), ("button", "Search")]
    if session.kind == "done":
        bought = (session.product.asin, "options", json.dumps(session.options))
        return [_words(words) for words in ("Thank you for shopping with us!", "Purchased", "asin", *bought)]
    head: list[Part] = [("words", "Instruction:"), ("words", session.instruction), ("button", BACK)]
    if session.kind == "search_results":
        return head + _results(session)
    head.append(("button", PREVIOUS))
    return head + (_item(session) if session.kind == "item_page" else _tab(session))


def _words(words: str) -> Part:
    return "words", words


def _results(session: ShopSession) -> list[Part]:
    parts: list[Part] = [("words", f"Page {session.page} (Total results: {len(session.hits)})")]
    if session.page > 1:
        parts.append(("button", PREVIOUS))
    parts.append(("button", NEXT))
    for place in session.listed:
        product = session.shop.product(place)
        parts += [("link", product.asin), ("words", product.title), ("words", product.tag)]
    return parts


def _item(session: ShopSession) -> list[Part]:
    product, parts = session.product, []
    for name, values in product.options.items():
        parts.append(_words(name))
        parts += [("option", value) for value in values]
    parts += map(_words, (product.title, f"Price: {product.tag}", "Rating: N.A."))
    return parts + [("button", name) for name in (*session.tabs, BUY)]


def _tab(session: ShopSession) -> list[Part]:
    return [_words(words) for words in tab_texts(session.product, session.tab)]


def tab_texts(product: Product, tab: str) -> tuple[str, ...]:
    """Return the texts of an item's tab; there are no reviews."""
    if tab == "Description":
        return (product.description,)
    if tab == "Features":
        return tuple(f" {bullet}" for bullet in product.bullets)
    if tab == "Attributes":
        listed = (f" {attribute}" for attribute in product.attributes)
        return (*listed, product.category, product.query, product.path)
    return ()
