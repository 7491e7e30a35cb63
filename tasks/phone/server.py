"""The web server behind the phone's screens: the home screen and six apps over one state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from urllib.parse import parse_qs, quote, urlsplit

from lmgym.backends.browser.gate import Request, Response
from lmgym.tasks.phone.pages import GONE, Answer, PhoneScreen, Redirect, Visit, page
from lmgym.tasks.phone.people import contacts, messages
from lmgym.tasks.phone.planning import calendar, maps
from lmgym.tasks.phone.spending import settings, shop
from lmgym.tasks.phone.state import PhoneState

HOME = "http://phone.test"
LONGEST = 2_000  # characters of a typed value that are kept
APPS: Mapping[str, Callable[[PhoneState, Visit], Answer]] = {
    "Contacts": contacts,
    "Messages": messages,
    "Calendar": calendar,
    "Shop": shop,
    "Maps": maps,
    "Settings": settings,
}
ICONS = "".join(f"<a data-e='Button' class='row' href='/{name.lower()}'>{escape(name)}</a>" for name in APPS)
HOME_SCREEN = PhoneScreen("Home", f"<div class='apps'>{ICONS}</div>")


class PhoneServer:
    """Answers the requests of the phone's browser and keeps its state."""

    def __init__(self, state: PhoneState) -> None:
        self.state = state

    def __call__(self, request: Request) -> Response:
        """Answer a request."""
        answer, status = self._answer(request)
        if isinstance(answer, Redirect):
            return Response(status=303, headers={"Location": HOME + quote(answer.path, safe="/?=&%-")})
        return Response(page(answer), status=status, headers={"Cache-Control": "no-store"})

    def _answer(self, request: Request) -> tuple[Answer, int]:
        parts = urlsplit(request.path)
        head, *rest = parts.path.strip("/").split("/")
        if not head:
            return HOME_SCREEN, 200
        app = APPS.get(head.capitalize())
        given = parse_qs(parts.query) | parse_qs(request.body.decode("utf-8", "replace"))
        values = {name: texts[-1][:LONGEST].strip() for name, texts in given.items()}
        try:
            answer = app(self.state, Visit(tuple(rest), values, request.method == "POST")) if app else GONE
        except KeyError:  # a record that was deleted, or an address made up
            answer = GONE
        return answer, 404 if answer is GONE else 200
