"""WebShop's pages: what is read directly is what the original's rule reads out of the HTML."""

import re
import string

import numpy as np
import pytest
import webshop_files
from bs4 import BeautifulSoup
from bs4.element import Comment
from hypothesis import given
from hypothesis import strategies as st

from lmgym.tasks.webshop import official, shop
from lmgym.tasks.webshop.page import html
from lmgym.tasks.webshop.session import ShopSession, parse
from lmgym.tasks.webshop.view import text, text_rich

UNSEEN = {"style", "script", "head", "title", "meta", "[document]"}


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBSHOP_DATA", str(webshop_files.write(tmp_path_factory.mktemp("data"))))
        patch.setenv("LMGYM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield official.shop(0)


def parsed(session):
    return BeautifulSoup(html(session), "html.parser")


def visible(page):
    """The original's rule: text nodes but those of some tags, line ends alone left out."""
    found = page.find_all(string=True)
    return [t for t in found if t.parent.name not in UNSEEN and not isinstance(t, Comment) and t != "\n"]


def read_text(page):
    return " [SEP] ".join(t.strip() for t in visible(page))


def read_rich(source, session):
    seen = {session.shop.product(place).asin for place in session.seen}
    page = ""
    for t in visible(source):
        if t.parent.name == "button":
            line = f"[button] {t} [button_]"
        elif t.parent.name == "label" and f'"{t}"' in session.url:
            line, page = f"  [clicked button] {t} [clicked button_]", f"You have clicked {t}.\n{page}"
        elif t.parent.name == "label":
            line = f"  [button] {t} [button_]"
        elif t.parent.get("class") == ["product-link"]:
            mark = "clicked button" if t in seen else "button"
            line = f"\n[{mark}] {t} [{mark}_]"
        else:
            line = str(t)
        page += f"{line}\n"
    return page


def read_clickables(page):
    buttons = page.find_all(class_="btn") + page.find_all(class_="product-link")
    return [*{b.get_text().lower(): 0 for b in buttons} | {o["value"]: 0 for o in page.select('input[type="radio"]')}]


def walk(session, words, seed, steps=8):
    """Wander through the shop, yielding the session on every page."""
    rng = np.random.default_rng(seed)
    yield session
    for _ in range(steps):
        labels = [label for label in session.clickables() if label != "search"]
        if not labels and session.kind == "done":
            return
        if not labels or rng.random() < 0.15:
            session.search(" ".join(words[i] for i in rng.integers(len(words), size=rng.integers(1, 4))))
        else:
            calm = [label for label in labels if label not in ("buy now", "back to search")]
            chosen = calm if calm and rng.random() < 0.9 else labels
            assert session.click(chosen[rng.integers(len(chosen))])
        yield session


def pages(sold, words, walks, **options):
    for seed in range(walks):
        session = ShopSession(sold, name=f"test_{seed}", instruction="i need a <rug> & more", **options)
        yield from walk(session, words, seed)


@pytest.mark.parametrize("options", [{}, {"attributes": True, "length": 4}])
def test_text_is_what_the_original_reads_out_of_the_html(options):
    words = ["rug", "red", "washable", "lamp", "blue", "xyzzy"]
    kinds = set()
    for session in pages(shop.procedural(1000), words, 100, **options):
        source = parsed(session)
        kinds.add(session.kind)
        assert text(session) == read_text(source)
        assert text_rich(session) == read_rich(source, session)
        assert list(session.clickables()) == read_clickables(source)
    assert kinds == {"index", "search_results", "item_page", "item_sub_page", "done"}


def test_the_start_page_has_the_original_s_blank_before_the_line_break():
    start = ShopSession(shop.procedural(1000), name="0", instruction="x")
    assert text_rich(start) == "WebShop\nInstruction: \nx\n[button] Search [button_]\n"


def test_blank_and_marked_up_texts_are_read_as_a_parser_reads_them(strange):
    for session in pages(strange, ["rug", "odd", "lamp", "mat", "described"], 60, attributes=True):
        source = parsed(session)
        assert text(session) == read_text(source)
        assert text_rich(session) == read_rich(source, session)
        assert list(session.clickables()) == read_clickables(source)


def test_a_blank_description_is_an_empty_page_and_a_blank_feature_an_empty_field(strange):
    session = ShopSession(strange, name="0", instruction="x")
    session.search("odd rug co")
    session.click("b000000006")
    session.click("description")
    assert text(session) == "Instruction: [SEP] x [SEP] Back to Search [SEP] < Prev"
    session.click("< prev")
    session.click("features")
    assert text(session).endswith("< Prev [SEP]  [SEP] a\nb [SEP] ")


@given(st.text(alphabet=string.ascii_letters + "[]\n é", max_size=40))
def test_actions_are_split_where_the_original_pattern_splits_them(action):
    found = re.match(r"(.+)\[(.+)\]", action)
    name, argument = found.groups() if found else (action, None)
    assert parse(action) == (name, argument if argument is None else argument.lower())


def test_hostile_brackets_take_linear_time():
    assert parse("[" * 1_000_000)[1] is None
    assert parse("a" + "[" * 500_000 + "]" * 500_000)[1] == "]" * 499_999
