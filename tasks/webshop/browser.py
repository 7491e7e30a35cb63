"""The shop as a web site in Chromium: observed by accessibility tree, HTML or picture, used by BrowserGym's calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from importlib import resources
from string import Template
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from lmgym.backends.browser.calls import describe
from lmgym.backends.browser.gate import Request, Response, Sites
from lmgym.backends.browser.session import BrowserSession
from lmgym.env.browser_env import BrowserEnv
from lmgym.env.env import Reply
from lmgym.errors import InstanceError
from lmgym.tasks.webshop import BROWSER
from lmgym.tasks.webshop.env import WebShop
from lmgym.tasks.webshop.goals import ShopGoal
from lmgym.tasks.webshop.page import html
from lmgym.tasks.webshop.picture import svg
from lmgym.tasks.webshop.session import BACK, HOST, parse

SITE = "http://shop.test"
PATIENCE = 4  # times that a player tries a call
NAMED = re.compile(r"""\s*\[(\w+)\] (button|link|radio|textbox|searchbox) ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


class WebShopBrowser(BrowserEnv, WebShop):
    """The shop in a browser. Every address shows the buyer's current page."""

    SPEC = BROWSER

    window = (1024, 768)

    def __init__(self, **common: Any) -> None:
        """Choose the observations and WebShop's options; `mode` and what is repeated have no effect."""
        super().__init__(**common)
        self.refused = False  # the last call
        sets = ("bid", "coord", "nav")
        self.browser = BrowserSession(Sites({SITE: self._serve}), sets=sets, only=self.actions, size=self.window)

    def act(self, action: str) -> Reply:
        """Perform one call in the browser."""
        wrong = self.call(action)
        self.refused = bool(wrong)
        text, images = self._look()
        return self._answer(f"Error: {wrong}\n\n{text}" if wrong else text, not wrong, images)

    def oracle(self) -> Iterator[str]:
        """Yield calls that buy the goal's product with its options."""
        for action in super().oracle():
            yield from self.calls(action)

    def demonstrator(self) -> Iterator[str]:
        """Yield calls of a buyer who knows the pages alone."""
        for action in super().demonstrator():
            yield from self.calls(action)

    def admissible(self) -> list[str] | None:  # type: ignore[override]  # calls with any argument cannot be listed
        """Return None: calls with free text cannot be listed."""
        return None

    def calls(self, action: str) -> Iterator[str]:
        """Yield the calls that do what an action of the text shop does, as the page is when each is asked for."""
        name, argument = parse(action)
        if name == "click":
            yield from self._until_taken(lambda: self._click(argument or "", "button", "link", "radio"))
            return
        if self.begun(self.session).kind != "index":
            yield from self._until_taken(lambda: self._click(BACK.lower(), "button"))
        yield from self._until_taken(lambda: f"fill({self._bid('search', 'textbox', 'searchbox')!r}, {argument!r})")
        yield from self._until_taken(lambda: self._click("search", "button"))

    def _open(self, goal: ShopGoal, index: int) -> Reply:
        super()._open(goal, index)
        self.browser.open(SITE)
        page, images = self._look()
        prompt = Template(resources.files(__package__).joinpath("browser.md").read_text(encoding="utf-8"))
        width, height = self.window
        words = prompt.substitute(width=width, height=height, actions=describe(self.browser.names), page=page)
        return Reply(words.strip(), images=images)

    def _look(self) -> tuple[str, tuple[Any, ...]]:
        """Return the address and the page's text, and its picture, if any."""
        seen = self.look()
        return f"{seen.url}\n{seen.text}".rstrip(), seen.images

    def _until_taken(self, call: Callable[[], str]) -> Iterator[str]:
        """Yield a call until it is not refused: on a busy machine a page may be on its way, or not be ready yet."""
        for left in reversed(range(PATIENCE)):
            try:
                words = call()
            except InstanceError:
                if not left:
                    raise
                yield "noop()"
                continue
            yield words
            if not self.refused:
                return

    def _click(self, label: str, *roles: str) -> str:
        return f"click({self._bid(label, *roles)!r})"

    def _bid(self, label: str, *roles: str) -> str:
        """Return the number of the element of that name and one of these roles; InstanceError where there is none."""
        for line in self.browser.look("axtree").text.splitlines():
            match = NAMED.match(line)
            if match and match[2] in roles and str(ast.literal_eval(match[3])).lower() == label:
                return match[1]
        raise InstanceError(f"the page has no {' or '.join(roles)} {label!r}")

    def _serve(self, request: Request) -> Response:
        """Answer a request: perform a posted action, then redirect to the resulting page."""
        session, path = self.begun(self.session), unquote(urlsplit(request.path).path)
        if path.startswith("/pictures/"):
            number = self.shop.number(path.removeprefix("/pictures/").removesuffix(".svg"))
            if number is None:
                return Response(b"no such picture", "text/plain", 404)
            return Response(svg(self.shop.product(number)).encode(), "image/svg+xml")
        form = parse_qs(request.body.decode("utf-8", "replace"))
        if request.method == "POST" and path == "/search" and session.kind == "index":
            if words := form.get("search_query", [""])[0].lower():
                session.search(words)
        elif request.method == "POST" and path == "/click":
            session.click(form.get("label", [""])[0].lower())
        elif path.startswith("/item/") and session.kind == "search_results":
            session.click(path.removeprefix("/item/").lower())
        elif request.method != "POST":
            return Response(html(session).encode(), headers={"Cache-Control": "no-store"})
        return Response(status=303, headers={"Location": SITE + quote(session.url.removeprefix(HOST), safe="/+")})
