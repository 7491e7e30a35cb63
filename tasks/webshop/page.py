"""The shop's pages as HTML, for mode "html" and the browser."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from lmgym.tasks.webshop.products import Product
from lmgym.tasks.webshop.session import BACK, BUY, NEXT, PREVIOUS, ShopSession

STYLE = (
    "body{font:15px/1.4 sans-serif;margin:0 auto;max-width:60em;padding:1em;color:#222}h2,h3,h4,h5{margin:.4em 0}"
    ".btn{font:inherit;padding:.3em .8em;margin:.2em;border:1px solid #456;border-radius:4px;background:#eef;"
    "cursor:pointer}"
    ".item{display:flex;gap:1em;border:1px solid #ccd;border-radius:6px;padding:.6em;margin:.6em 0}"
    "img{width:96px;height:96px;flex:none;display:block}.options{margin:.4em 0}label{border:1px solid #99a;"
    "border-radius:4px;padding:.15em .6em;margin:.15em;cursor:pointer}input:checked+label{background:#cde}"
    ".purchase{background:#fd8}"
)


FORM = (  # what buttons post: their own label; the script posts a chosen option in the same way
    '<form method="post" action="/click" id="say"><input type="hidden" name="label" disabled></form>\n'
    "<script>addEventListener('change', event => {\n"
    "  if (!event.target.matches('[data-say]')) return;\n"
    "  const form = document.getElementById('say'), label = form.querySelector('input');\n"
    "  label.disabled = false;\n"
    "  label.value = event.target.value;\n"
    "  form.submit();\n"
    "});</script>"
)


def html(session: ShopSession) -> str:
    """Return the source of the page."""
    body = {
        "index": _index,
        "search_results": _results,
        "item_page": _item,
        "item_sub_page": _tab,
        "done": _done,
    }[session.kind](session)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>WebShop</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _index(session: ShopSession) -> str:
    words = escape(session.instruction)
    return (
        f'<h2>WebShop</h2>\n<div id="instruction-text">\n<h4>Instruction: <br>{words}</h4>\n</div>\n'
        '<form method="post" action="/search">\n<input id="search_input" type="text" name="search_query" '
        'aria-label="Search" placeholder="Search..." required>\n'
        '<button class="btn" type="submit">Search</button>\n</form>'
    )


def _head(session: ShopSession, *names: str) -> str:
    buttons = "\n".join(_button(name) for name in (BACK, *names))
    words = escape(session.instruction)
    return f'<div id="instruction-text">\n<h4>Instruction:<br>{words}</h4>\n</div>\n{FORM}\n{buttons}'


def _button(name: str, kind: str = "btn") -> str:
    label = escape(name)
    return f'<button class="{kind}" type="submit" form="say" name="label" value="{label.lower()}">{label}</button>'


def _results(session: ShopSession) -> str:
    pages = [PREVIOUS] if session.page > 1 else []
    listed = "\n".join(_listed(session.shop.product(place)) for place in session.listed)
    return (
        f"{_head(session)}\n<h3>Page {session.page} (Total results: {len(session.hits)})</h3>\n"
        + "\n".join(_button(name) for name in (*pages, NEXT))
        + f"\n{listed}"
    )


def _listed(product: Product) -> str:
    code = escape(product.asin)
    return (
        f'<div class="item">\n{_picture(product)}\n<div>\n<h4><a class="product-link" '
        f'href="/item/{quote(product.asin, safe="")}">{code}</a></h4>\n'
        f"<h4>{escape(product.title)}</h4>\n<h5>{escape(product.tag)}</h5>\n</div>\n</div>"
    )


def _item(session: ShopSession) -> str:
    product = session.product
    groups = "\n".join(_group(session, place, name) for place, name in enumerate(product.options))
    tabs = "\n".join(_button(name) for name in session.tabs)
    return (
        f"{_head(session, PREVIOUS)}\n{_picture(product)}\n{groups}\n<h2>{escape(product.title)}</h2>\n"
        f"<h4>Price: {escape(product.tag)}</h4>\n<h4>Rating: N.A.</h4>\n{tabs}\n{_button(BUY, 'btn purchase')}"
    )


def _group(session: ShopSession, place: int, name: str) -> str:
    """Return the radio buttons of an option group; a click posts the chosen value."""
    rows = []
    for number, value in enumerate(session.product.options[name]):
        checked = " checked" if session.options.get(name) == value else ""
        rows.append(
            f'<input type="radio" id="radio_{place}_{number}" name="{escape(name)}" value="{escape(value)}" '
            f'data-say{checked}>\n<label for="radio_{place}_{number}">{escape(value)}</label>'
        )
    return f'<div class="options">\n<h4>{escape(name)}</h4>\n' + "\n".join(rows) + "\n</div>"


def _tab(session: ShopSession) -> str:
    product = session.product
    if session.tab == "Description":
        content = f'<p class="product-info">{escape(product.description)}</p>'
    elif session.tab == "Features":
        content = _list(product.bullets)
    elif session.tab == "Attributes":
        levels = "\n".join(f"<h5>{escape(words)}</h5>" for words in (product.category, product.query, product.path))
        content = f"{_list(product.attributes)}\n{levels}"
    else:
        content = ""
    return f"{_head(session, PREVIOUS)}\n<div>\n{content}\n</div>"


def _list(texts: Iterable[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li><p> {escape(text)}</p></li>" for text in texts) + "\n</ul>"


def _done(session: ShopSession) -> str:
    return (
        "<h1>Thank you for shopping with us!</h1>\n<h2>Purchased</h2>\n"
        f"<h4>asin<pre>{escape(session.product.asin)}</pre></h4>\n"
        f"<h4>options<pre>{escape(json.dumps(session.options))}</pre></h4>"
    )


def _picture(product: Product) -> str:
    return f'<img alt="" src="{escape(product.image)}">'
