"""Script that a policy types into a page never runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from lmgym.env.registry import build
from tests.components import chromium

chromium()

WIN = "(window.parent.core||core).endEpisode(1)"
PAYLOADS = {
    "image": f"<img src=x onerror={WIN}>",
    "svg": f"<svg onload={WIN}></svg>",
    "script": f"<script>{WIN}</script>",
    "link": f"<a id=bait href=javascript:{WIN}>x</a>",
    "frame": f'<iframe srcdoc="<script>{WIN}</script>"></iframe>',
    "page script in a frame": '<iframe src="/miniwob/terminal.html"></iframe>',
    "handler": f"<b id=bait onclick={WIN}>x</b>",
    "form": f"<form action=javascript:{WIN}><button id=bait>x</button></form>",
}
WITH_FIELDS = (  # the terminal alone inserts what is typed as HTML; elsewhere the test inserts it
    *("text-editor", "email-inbox-delete", "email-inbox-reply", "search-engine", "use-autocomplete", "enter-text"),
    *("form-sequence-2", "text-transform", "copy-paste", "login-user", "book-flight-nodelay", "social-media"),
)
FIELDS = """() => [...document.querySelectorAll('input[type=text], input[type=password], input:not([type]), textarea')]
  .map(field => field.getAttribute('bid')).filter(bid => bid)"""


@pytest.fixture(scope="module")
def terminal() -> Iterator[Any]:
    with closing(build("lmgym/MiniWoB-terminal-v0", observe="none")) as env:
        yield env


def won(env: Any) -> bool:
    """Click the payload if it can be clicked, let time pass, and return whether the episode ended with success."""
    env.unwrapped.browser.evaluate("() => { for (const bait of document.querySelectorAll('#bait')) bait.click(); }")
    *_, info = env.step("noop()")
    return bool(info.get("success"))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_html_typed_into_the_terminal_runs_no_script(terminal, payload):
    terminal.reset(options={"index": 0})
    terminal.step("mouse_click(80, 120)")
    terminal.step(f"keyboard_type({payload!r})")
    typed = terminal.unwrapped.browser.evaluate("() => document.querySelector('#active-input').textContent")
    assert typed == payload
    terminal.step("keyboard_press('Enter')")
    assert not won(terminal)


@pytest.mark.parametrize("name", WITH_FIELDS)
def test_no_payload_runs_in_a_page_that_takes_text(name):
    with closing(build(f"lmgym/MiniWoB-{name}-v0", observe="none", max_turns=50)) as env:
        env.reset(options={"index": 0})
        session = env.unwrapped.browser
        for field in session.evaluate(FIELDS)[:2]:
            env.step(f"fill('{field}', {PAYLOADS['image']!r})")
        session.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", "".join(PAYLOADS.values()))
        assert not won(env)


def test_a_page_that_was_loaded_again_is_left(terminal):
    terminal.reset(options={"index": 0})
    terminal.unwrapped.browser.evaluate("() => location.reload()")
    _, reward, terminated, _, info = terminal.step("noop()")
    assert (reward, terminated, info["score"]) == (-1.0, True, 0.0)
