"""Negotiate: values, rules, both seats and the test for leaks."""

import statistics
from functools import partial

import episodes
import pytest

from lmgym.env.golden import given, play
from lmgym.tasks.negotiate.bargain import DEALS, Party, best, offer_text, possible

opened = partial(episodes.opened, "negotiate", split="test")


def test_values_and_the_best_deal_by_hand():
    rising = ((0, 1, 2, 3, 4), (0, 2, 4, 6, 8), (0, 1, 2, 3, 4))
    falling = tuple(tuple(reversed(points)) for points in rising)
    one, other = Party(rising, 5), Party(falling, 9)
    assert one.value((5, 5, 5)) == one.most == 16
    assert other.value((5, 5, 5)) == 0
    # any deal shares 16 points: the best for one leaves the other ten, just above its limit
    assert one.value(best(one, other)) == 6
    assert all(one.value(deal) + other.value(deal) == 16 for deal in DEALS)


def test_every_instance_has_deals_that_suit_both():
    for index in range(50):
        sides = opened(index).unwrapped.sides
        assert len(possible(sides["agent"], sides["partner"])) >= 4


def test_an_agreement_scores_both_seats_by_their_own_values():
    env = opened(others="caller")
    task = env.unwrapped
    deal = best(task.sides["partner"], task.sides["agent"])
    env.step(f"How about this?\n{offer_text(deal)}")
    *_, terminated, _, info = env.step("Fine.\nACCEPT")
    assert terminated
    assert info["seat_scores"]["partner"] == 1.0
    assert 0 < info["score"] < 1
    assert info["figures"]["agreement"] == 1.0


def test_a_limit_in_ones_own_words_costs_half_and_one_in_the_offer_does_not():
    for words, factor in (("", 1.0), ("I need more than {limit}.", 0.5)):
        env = opened(others="caller")
        task = env.unwrapped
        deal = best(task.sides["partner"], task.sides["agent"])
        env.step(f"{words.format(limit=task.sides['partner'].limit)}\n{offer_text(deal)}")
        *_, info = env.step("ACCEPT")
        assert info["seat_scores"]["partner"] == factor
        assert info["figures"]["partner_leaked_limit"] == float(factor < 1)


@pytest.mark.parametrize(
    "action",
    [
        *("", "x" * 1_000_000, "OFFER: price=6, delivery=1, warranty=1", "offer", "ACCEPT it", "OFFER: " * 9),
        "OFFER: price=1, delivery=1, warranty=12",
        "\n".join(offer_text(deal) for deal in DEALS[:2]),
    ],
)
def test_bad_input_is_answered(action):
    env = opened()
    observation, _, terminated, _, info = env.step(action)
    assert "Make one offer" in observation["text"]
    assert (terminated, info["valid"], env.unwrapped.offers["agent"]) == (False, False, None)


def test_leaving_scores_nothing_and_the_demonstrator_two_thirds_within_the_rules():
    trace = play(opened(), given(["LEAVE"]), index=0)
    assert (trace.terminated, trace.infos[-1]["score"], trace.infos[-1]["figures"]["agreement"]) == (True, 0.0, 0.0)
    env = opened()
    traces = [play(env, lambda task: task.demonstrator(), index=index) for index in range(200)]
    assert statistics.mean(trace.infos[-1]["score"] for trace in traces) == pytest.approx(0.68, abs=0.01)
    assert all(info["valid"] for trace in traces for info in trace.infos)
