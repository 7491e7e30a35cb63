"""A competent buyer that uses only observations; imitation learns from it.

It searches for the last words of the instruction that say something, opens the affordable product whose title has most
of them, clicks the options that the instruction names, leaves two products at most that lack a named one, and buys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmgym.tasks.webshop.goals import CHOICES, OPENINGS, TRAITS
from lmgym.tasks.webshop.session import BACK, BUY, PREVIOUS, ShopSession

CLAUSE = re.compile(r",? and price lower than ([\d.]+) dollars$")
PAIR = re.compile(r"(?:with|, and) ([\w ]+): (.+?)(?=, and [\w ]+: |$)")
WORD = re.compile(r"[^\s,;:!?()\[\]]+")
PATIENCE = 2  # products that are looked at and left
WORDS, CHARACTERS = 7, 46  # of a search: with its name, 32 tokens of the embedded model at most
FILLER = frozenset(
    word
    for phrase in (*OPENINGS, *TRAITS, *CHOICES, "a an and with find me color size pack design edition that one too")
    for word in (phrase if isinstance(phrase, str) else "").replace("{name}", " ").replace("{}", " ").split()
) - {"one"}


def play(session: ShopSession) -> Iterator[str]:
    """Yield actions from the present page on, from observations only."""
    left: set[str] = set()  # products that lacked an option
    while session.kind != "done":
        yield next_action(session, left)


def next_action(session: ShopSession, left: set[str]) -> str:
    """Return the action for a page; a product that is given up is added to `left`."""
    if session.kind == "index":
        return f"search[{query(session.instruction)}]"
    if session.kind == "search_results":
        code = choose(session, left)
        return click(code or BACK)
    if session.kind == "item_sub_page":
        return click(PREVIOUS)
    return _on_item(session, left)


def click(label: str) -> str:
    """Return the action that follows a label, in the lower case that pages understand."""
    return f"click[{label.lower()}]"


def terms(instruction: str) -> str:
    """Return the words of an instruction that describe the product."""
    words = WORD.findall(CLAUSE.sub("", instruction).lower())
    kept = [word.strip(".'\"") for word in words if word not in FILLER]
    return " ".join(word for word in kept if word) or "product"


def query(instruction: str) -> str:
    """Return the search: the last describing words, with the kind and options among them, in a short answer."""
    kept = terms(instruction).split()[-WORDS:]
    while len(kept) > 1 and len(" ".join(kept)) > CHARACTERS:
        kept.pop(0)
    return " ".join(kept)


def limit(instruction: str) -> float:
    """Return the price limit of an instruction, in dollars; infinity without one."""
    match = CLAUSE.search(instruction)
    return float(match[1]) if match else float("inf")


def choose(session: ShopSession, left: set[str]) -> str | None:
    """Return the affordable listed product whose title shares most words with the instruction, the first of equals."""
    wanted = set(terms(session.instruction).split())
    most = limit(session.instruction)
    ranked: list[tuple[bool, bool, int, int, str]] = []
    for place in session.listed:
        product = session.shop.product(place)
        matches = len(wanted & set(product.title.lower().split()))
        ranked.append((product.asin in left, product.prices[0] > most, -matches, len(ranked), product.asin))
    return min(ranked)[-1] if ranked else None


def named(instruction: str, name: str, values: tuple[str, ...]) -> str | None:
    """Return the value of a group that an instruction names in whole words, the longest if there are several."""
    words = CLAUSE.sub("", instruction).lower()
    pairs = dict(PAIR.findall(words))
    if name in pairs:
        return pairs[name] if pairs[name] in values else None
    standing = (value for value in values if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", words))
    return max(standing, key=len, default=None)


def _on_item(session: ShopSession, left: set[str]) -> str:
    product = session.product
    pairs = dict(PAIR.findall(CLAUSE.sub("", session.instruction).lower()))
    missing = any(value not in product.options.get(name, ()) for name, value in pairs.items())
    if missing and len(left) < PATIENCE and product.asin not in left:
        left.add(product.asin)
        return click(PREVIOUS)
    for name, values in product.options.items():
        value = named(session.instruction, name, values)
        if value is not None and session.options.get(name) != value:
            return click(value)
    return click(BUY)
