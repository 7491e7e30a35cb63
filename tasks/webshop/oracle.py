"""The oracle, which finds and buys the goal's product; and the reasons why goals are unreachable."""

from __future__ import annotations

from collections.abc import Iterator

from lmgym.tasks.webshop.demonstrator import click
from lmgym.tasks.webshop.goals import ShopGoal
from lmgym.tasks.webshop.nouns import Nouns
from lmgym.tasks.webshop.products import Product
from lmgym.tasks.webshop.reward import best
from lmgym.tasks.webshop.session import BUY, NEXT, PREVIOUS, ShopSession, parse
from lmgym.tasks.webshop.shop import Shop

WORDS = 60  # of a query at most


def play(session: ShopSession, goal: ShopGoal, price: float, nouns: Nouns) -> Iterator[str]:
    """Yield actions from the present page to the purchase of the goal's product; none if no search finds it."""
    number = session.shop.number(goal.asin)
    if number is None:
        return
    product = session.shop.product(number)
    _, chosen = best(product, goal, price, nouns)
    if session.item != number:
        hit = query(session.shop, number)
        if hit is None:
            return
        words, rank = hit
        yield f"search[{words}]"
        for _ in range(rank // session.length):
            yield click(NEXT)
        yield click(product.asin)
    elif session.kind == "item_sub_page":
        yield click(PREVIOUS)
    for name, value in chosen.items():
        if session.options.get(name) != value:
            yield click(value)
    yield click(BUY)


def query(shop: Shop, number: int) -> tuple[str, int] | None:
    """Return the search that ranks a product highest, and the rank."""
    product = shop.product(number)
    best_found: tuple[str, int] | None = None
    for text in (product.title, product.document, " ".join((product.title, *_values(product)))):
        words = " ".join(text.replace("[", " ").replace("]", " ").lower().split()[:WORDS])
        hits = shop.search(words)
        if number in hits:
            rank = list(hits).index(number)
            if best_found is None or rank < best_found[1]:
                best_found = words, rank
    return best_found


def unreachable(shop: Shop, goal: ShopGoal, price: float, nouns: Nouns) -> str | None:
    """Return why no purchase of a goal's own product earns 1, or None."""
    number = shop.number(goal.asin)
    if number is None:
        return f"there is no product {goal.asin}"
    earned, chosen = best(shop.product(number), goal, price, nouns)
    if earned < 1.0:
        return f"the product itself earns {earned:.3g}"
    for value in chosen.values():
        if parse(click(value)) != ("click", value):
            return f"no action can name the option {value!r}"
    return None if query(shop, number) else "no search finds the product"


def _values(product: Product) -> list[str]:
    return [value for values in product.options.values() for value in values]
