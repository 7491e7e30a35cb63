"""Helpers that WebArena's tasks name instead of an address or a locator ("func:...").

An address or a text that no page shows by itself: of the newest order, of the last review, of a post, of a member's
role. A call is read, never evaluated; the shop's are asked of its interface as its administrator.
"""

from __future__ import annotations

import ast
import json
import os
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from lmgym.errors import BackendError

PREFIX = "func:"
LAST, PAGE = "__last_url__", "__page__"
SHOP = "WA_SHOPPING"  # environment variable: where the shop is
ADMINISTRATOR = "WA_SHOPPING_LOGIN"  # environment variable: name:password
PUBLISHED = "admin:admin1234"  # of the administrator of the shop that the benchmark hands out
PATIENCE = 60.0  # seconds for the shop to answer
ROLE = """account => {
  const accounts = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
  const row = accounts.findIndex(shown => shown.outerText === '@' + account);
  const roles = document.querySelectorAll('td.col-max-role span');
  return row >= 0 && roles[row] ? roles[row].outerText : '';
}"""


@dataclass(frozen=True)
class LivePage:
    """The page that is open when a helper is called."""

    url: str
    evaluate: Callable[[str, Any], Any]  # a script and its argument


def known(source: str) -> bool:
    """Return True if an address or locator calls no helper, or a supported one with valid arguments."""
    return not source.startswith(PREFIX) or _parsed(source) is not None


def ask(source: str, live: LivePage) -> str:
    """Return a helper's value."""
    parsed = _parsed(source)
    assert parsed is not None, source  # tasks with others are left out when they are read
    name, words = parsed
    return HELPERS[name][1](live, *(word.replace(LAST, live.url) for word in words))


def post_url(url: str) -> str:
    """Return the address of the post that a forum page belongs to; return any other address unchanged."""
    parts = urlsplit(url)
    levels = parts.path.split("/")
    if len(levels) < 4 or levels[1] != "f":
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{levels[2]}/{levels[3]}/"


def _parsed(source: str) -> tuple[str, list[str]] | None:
    """Return a helper's name and arguments, or None for anything else."""
    try:
        call = ast.parse(source.removeprefix(PREFIX).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
        return None
    given = [argument for argument in call.args if not (isinstance(argument, ast.Name) and argument.id == PAGE)]
    words = [word.value for word in given if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    if call.func.id not in HELPERS or len(words) != len(given) or len(words) != HELPERS[call.func.id][0]:
        return None
    return call.func.id, words


def _latest_order(live: LivePage) -> str:
    newest = {
        "searchCriteria[sortOrders][0][field]": "created_at",
        "searchCriteria[sortOrders][0][direction]": "DESC",
        "searchCriteria[pageSize]": "1",
    }
    answer = _of_shop(f"orders?{urlencode(newest)}")
    try:
        return f"{_shop()}/sales/order/view/order_id/{int(answer['items'][0]['increment_id'])}/"
    except (LookupError, TypeError, ValueError) as error:
        raise BackendError(f"{_shop()} answers no order: {answer!r:.200}") from error


def _of_last_review(sku: str, *keys: str | int) -> str:
    """Return a field of a product's last review, or ""."""
    answer = _of_shop(f"products/{quote(sku, safe='')}/reviews")
    try:
        return str(reduce(lambda part, key: part[key], keys, answer[-1])) if answer else ""
    except (LookupError, TypeError) as error:
        raise BackendError(f"{_shop()} answers no review: {answer!r:.200}") from error


def _of_shop(path: str) -> Any:
    """Query the shop's interface as its administrator."""
    name, _, password = os.environ.get(ADMINISTRATOR, PUBLISHED).partition(":")
    login = json.dumps({"username": name, "password": password}).encode()
    token = _answer("default/V1/integration/admin/token", {}, login)
    return _answer(f"V1/{path}", {"Authorization": f"Bearer {token}"})


def _answer(path: str, headers: Mapping[str, str], body: bytes | None = None) -> Any:
    url = f"{_shop()}/rest/{path}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError) as error:
        raise BackendError(f"{url}: {error}; its administrator is ${ADMINISTRATOR}=name:password") from error


def _shop() -> str:
    return os.environ.get(SHOP, "").rstrip("/")


HELPERS: Mapping[str, tuple[int, Callable[..., str]]] = {  # by name, as tasks spell it: words it is given, and it
    "shopping_get_latest_order_url": (0, _latest_order),
    "shopping_get_sku_latest_review_author": (1, lambda live, sku: _of_last_review(sku, "nickname")),
    "shopping_get_sku_latest_review_rating": (1, lambda live, sku: _of_last_review(sku, "ratings", 0, "percent")),
    "reddit_get_post_url": (1, lambda live, url: post_url(url)),
    "gitlab_get_project_memeber_role": (1, lambda live, account: str(live.evaluate(ROLE, account))),
}
