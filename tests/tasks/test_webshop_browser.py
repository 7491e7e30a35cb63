"""The shop in Chromium: the same rewards as in text, walls and pictures."""

import numpy as np
import pytest

from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.webshop import catalogue
from lmgym.tasks.webshop.picture import svg
from tests.components import chromium
from tests.sampled import sampled

chromium()


@pytest.fixture(scope="module")
def window():
    env = build("WebShopBrowser-v0", split="test", max_turns=1000)
    yield env
    env.close()


def both(window, index, choose, turns):
    """Play the same actions in text and in the browser; their rewards and addresses, side by side."""
    text = build("WebShop-v0", split="test", length=10, max_turns=1000)
    text.reset(options={"index": index})
    window.reset(options={"index": index})
    for turn in range(turns):
        action = choose(text.unwrapped, turn)
        if action is None:
            return
        *_, reward, over, _, _ = text.step(action)
        for call in window.unwrapped.calls(action):
            _, seen, ended, *_ = window.step(call)
        assert (seen, ended) == (reward, over), action
        assert window.unwrapped.session.url == text.unwrapped.session.url
        if over:
            return


def at_random(seed):
    rng = np.random.default_rng(seed)

    def choose(shop, turn):
        actions = shop.admissible()
        return actions[rng.integers(len(actions))]

    return choose


@pytest.mark.parametrize("index", [0, 3])
def test_the_oracle_earns_1_in_both(window, index):
    said = []

    def choose(shop, turn):
        if not said:
            said.append(shop.oracle())
        return next(said[0], None)

    both(window, index, choose, 20)
    assert window.unwrapped.verbose["r_type"] == 1.0


@pytest.mark.parametrize(("seed", "turns"), [(0, 6), (1, 6), *sampled([(seed, 12) for seed in range(50)])])
def test_random_walks_earn_the_same_in_both(window, seed, turns):
    both(window, seed, at_random(seed), turns)


def test_addresses_and_histories_lead_nowhere_else(window):
    observation, _ = window.reset(options={"index": 0})
    assert "goto" in observation["text"]
    session = window.unwrapped.session
    for call in ("goto('http://shop.test/done/x/B105943/{}')", "goto('http://shop.test/item/b105943')", "go_back()"):
        *_, terminated, _, _ = window.step(call)
        assert (terminated, session.kind) == (False, "index")
    *_, info = window.step("goto('http://example.com')")
    assert not info["valid"]


def at_the_till(window):
    """Play to the item that the oracle would buy, and return the call that buys it."""
    window.reset(options={"index": 0})
    for action in window.unwrapped.oracle():
        if window.unwrapped.session.kind == "item_page" and action == window.unwrapped._click("buy now", "button"):
            return action
        window.step(action)
    raise AssertionError("nothing was for sale")


def test_neither_an_unknown_key_nor_an_action_that_failed_completes_a_purchase(window):
    buy = at_the_till(window)
    for keys, over in (("Enter+Nope", False), ("Enter", True)):
        _, reward, terminated, _, info = window.step(buy.replace("click(", "press(").replace(")", f", '{keys}')"))
        assert (reward, terminated, info["valid"]) == (float(over), over, over)
    assert info["success"]
    at_the_till(window)
    window.unwrapped.session.click("buy now")  # as by an action that had its effect before it failed
    _, reward, terminated, _, info = window.step("click('999')")
    assert (reward, terminated, info["score"], info["success"], info["valid"]) == (0.0, True, 0.0, False, False)


def test_malformed_calls_never_raise(window):
    window.reset(options={"index": 0})
    for action in [
        *(text[:2000] for text in HOSTILE[:14]),
        "click('999')",
        "click(nan)",
        "mouse_click(1e9, -5)",
        "click()",
    ]:
        observation, reward, _, _, info = window.step(action)
        assert reward == 0.0
        assert info["valid"] != observation["text"].startswith("Error: ")


def test_pictures_show_the_page():
    env = build("WebShopBrowser-v0", split="test", pixels="screenshot")
    observation, _ = env.reset(options={"index": 0})
    assert observation["images"].shape == (1, 768, 1024, 3)
    assert observation in env.observation_space
    start = observation["images"][0]
    for call in env.unwrapped.calls("search[dog bed]"):
        observation, *_ = env.step(call)
    assert (observation["images"][0] != start).any()
    env.close()


def test_every_product_has_a_drawing():
    drawn = {svg(catalogue.product(number)) for number in range(1000)}
    assert len(drawn) > 250
    assert all(picture.startswith("<svg") and "<script" not in picture for picture in drawn)


def test_a_player_tries_again_what_was_refused(window, monkeypatch):
    window.reset(options={"index": 0})
    shop = window.unwrapped
    done, refusals = shop.browser.do, iter(["not ready"])

    def busy(name, *arguments):
        return next(refusals, "") or done(name, *arguments) if name == "click" else done(name, *arguments)

    monkeypatch.setattr(shop.browser, "do", busy)
    over, seen, calls = False, 0.0, []
    for call in shop.oracle():
        calls.append(call)
        *_, reward, over, _, _ = window.step(call)
        seen += reward
    assert over
    assert seen == 1
    assert calls[1] == calls[2]  # the search, which was refused


def test_a_player_waits_for_a_page_that_is_on_its_way(window, monkeypatch):
    window.reset(options={"index": 0})
    shop = window.unwrapped
    found, late = shop._bid, iter([True, True])

    def bid(*arguments):
        if next(late, False):
            raise InstanceError("the page has no such button")
        return found(*arguments)

    monkeypatch.setattr(shop, "_bid", bid)
    calls = shop.oracle()
    assert [next(calls) for _ in range(2)] == ["noop()", "noop()"]
    window.step("noop()")
    assert next(calls).startswith("fill(")
