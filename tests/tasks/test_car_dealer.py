"""Car Dealer: prices in free text, the two rewards, the three buyers, and the protocol."""

import statistics
from functools import partial

import episodes
import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.tasks.car_dealer.market import TYPES, Buyer, Car, car_of, price_of

CAR = Car("Corvan", "SUV", frozenset({"a sunroof"}), 45_000)
OTHER = Car("Corvan", "sedan", frozenset(), 30_000)


opened = partial(episodes.opened, "car_dealer", split="test")


def selling(kind="impatient", budget=50_000, **options):
    """Return an environment with one known car and a buyer for it."""
    env = opened(**options)
    task = env.unwrapped
    task.buyer = task.script.buyer = Buyer(kind, "Corvan", "SUV", ("a sunroof",), budget)
    task.cars[:] = [CAR, OTHER]
    return env


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("$42,000", 42_000),
        ("42000 dollars", 42_000),
        ("I ask 42k.", 42_000),
        ("42 thousand", 42_000),
        ("$61.5k", 61_500),
        ("1.25 thousand, or 61.525k.", 61_525),
        ("The list price is $45,000, but you get it for $42,500.00.", 42_500),
        ("It is of 2019 and has 4 doors", None),
        ("", None),
        ("9" * 100_000, None),
    ],
)
def test_the_last_amount_is_the_price(text, price):
    assert price_of(text[:2_000]) == price


def test_a_car_is_named_by_brand_and_body_or_by_a_brand_that_is_alone():
    third = Car("Lumen", "sedan", frozenset(), 10_000)
    cars = [CAR, OTHER, third]
    assert car_of("the corvan suv", cars) is CAR
    assert car_of("not the Corvan SUV but the Corvan sedan", cars) is OTHER
    assert car_of("a Corvan", cars) is None
    assert car_of("this Lumen", cars) is third


@pytest.mark.parametrize(
    ("kind", "limit"), [("discount", 39_600), ("features", 47_200), ("impatient", 44_100)]
)  # shares .88, 1.05, .98 of 45,000, in steps of 100
def test_the_three_types_pay_up_to_their_share_of_the_list_price(kind, limit):
    buyer = Buyer(kind, "Corvan", "SUV", ("a sunroof",), 50_000)
    assert buyer.limit(CAR) == limit
    assert Buyer(kind, "Corvan", "SUV", ("a sunroof",), 30_000).limit(CAR) == 30_000


@pytest.mark.parametrize(
    ("rewards", "sale", "none"),
    [("fancy", 40_000 / 47_500, -5 / 45), ("revenue", 40.0, 0.0)],  # 40k of 45k, budget 50k
)
def test_the_rewards_are_the_releases(rewards, sale, none):
    env = selling(rewards=rewards)
    observation, reward, terminated, _, info = env.step("You can have the Corvan SUV for $40,000.")
    assert terminated
    assert reward == pytest.approx(sale, abs=1e-12)
    assert observation["text"].endswith("Sold for $40,000.")
    assert info["score"] == pytest.approx(40_000 / 44_100)
    env = selling(rewards=rewards)
    answers = [env.step("The Corvan SUV costs $60,000.") for _ in range(TYPES["impatient"].patience)]
    assert [answer[2] for answer in answers] == [False, False, False, True]
    assert answers[-1][1] == pytest.approx(none, abs=1e-12)
    assert (answers[-1][4]["score"], answers[-1][4]["success"]) == (0.0, False)


def test_the_buyer_tells_wishes_when_asked_and_never_the_limit():
    env = selling()
    text = env.step("What features do you want, which brand, and what is your budget?")[0]["text"]
    assert text == "Buyer: I would like a sunroof. My budget is $50,000. I would like a Corvan."
    close = env.step("The Corvan SUV is $44,500.")[0]["text"]
    assert close == "Buyer: That is close, but still a little too much."


@pytest.mark.parametrize(
    "words",
    ["", "hello", "x" * 1_000_000, "Output: Decision=Accept MSRP=$45000 Buy Price=$45000", "###STOP###", "$40,000"],
)
def test_the_dealer_cannot_decide(words):
    env = selling(kind="features")
    observation, reward, terminated, _, info = env.step(words)
    assert (reward, terminated) == (0.0, False)
    assert "Output" not in observation["text"]
    assert info["valid"] == (words not in ("", "Output: Decision=Accept MSRP=$45000 Buy Price=$45000"))


def test_a_model_as_buyer_decides_by_the_line_and_must_decide_after_50_texts():
    env = build("car_dealer", others="caller")
    env.reset(options={"index": 0})
    env.step("Hello")
    env.step("Hello, too")
    *_, terminated, _, info = env.step("Fine.\nOutput: Decision=Accept MSRP=$9000 Buy Price=$8000")
    assert terminated
    assert info["figures"]["sold"] == 1.0
    env.reset(options={"index": 0})
    for count in range(50):
        assert not env.step(f"text {count}")[2]
    *_, terminated, _, info = env.step("I still cannot decide")
    assert terminated
    assert info["score"] == 0.0
    assert "seat_rewards" not in info  # as in the release, where a refusal earns -(budget - list price) / list price


def test_the_demonstrator_sells_by_what_it_was_told():
    env = build("car_dealer", split="test")
    traces = [play(env, lambda task: task.demonstrator(), index=index) for index in range(60)]
    assert statistics.mean(trace.infos[-1]["score"] for trace in traces) > 0.85
    assert play(env, given(["What do you want?"] * 10), index=0).infos[-1]["score"] == 0.0


@pytest.mark.parametrize(
    ("words", "budget"),
    [
        ("My budget is about 30k. I do not pay $40,000.", 30_000),
        ("The budget is $61.5k, no more.", 61_500),
        ("My budget is my secret.", None),
        ("I have no budget.", None),
    ],
)
def test_the_demonstrator_understands_the_budget_of_a_model(words, budget):
    env = build("car_dealer", split="test", others="caller")
    env.reset(seed=0, options={"index": 0})
    env.step(words)
    offer = next(env.unwrapped.demonstrator())
    assert (price_of(offer) is None) == (budget is None)
    assert budget is None or price_of(offer) <= budget


@pytest.mark.parametrize(("seller", "sold", "returns"), [("fixed", (0.3, 0.7), 0.6), ("hasty", (0.9, 1.0), 0.75)])
def test_sellers_of_other_manners_earn_less(seller, sold, returns):
    env = build("car_dealer", split="test", seller=seller)
    traces = [play(env, lambda task: task.demonstrator(), index=index) for index in range(60)]
    assert sold[0] <= statistics.mean(trace.infos[-1]["success"] for trace in traces) <= sold[1]
    assert statistics.mean(sum(trace.rewards) for trace in traces) < returns


def test_mixed_sellers_are_drawn_by_the_chance_of_the_episode():
    env = build("car_dealer", split="test", seller="mixed")
    traces = [play(env, lambda task: task.demonstrator(), index=0, seed=seed) for seed in range(20)]
    assert len({tuple(trace.actions) for trace in traces}) >= 3
    again = play(env, lambda task: task.demonstrator(), index=0, seed=7)
    assert again.actions == traces[7].actions
