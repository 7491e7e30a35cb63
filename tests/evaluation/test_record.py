"""Prices, budgets, the log of calls and the folder of a run, each by itself."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from lmgym.errors import RecipeError
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.estimate import estimate
from lmgym.evaluation.prices import TABLE, Price, costs_by, find_price
from lmgym.evaluation.record import EPISODES, FACTS, Record
from lmgym.evaluation.runner import Outcome
from lmgym.policy.endpoints.calls import Halted, ParsedReply, StoredReply
from lmgym.rollout import episodes
from lmgym.types import Trajectory

GPT = "https://api.openai.com/v1#gpt-4o"


def parsed(tokens_in: int, tokens_out: int, cost: float | None = None) -> ParsedReply:
    usage = {"in": tokens_in, "out": tokens_out}
    return ParsedReply(text="", usage=usage if cost is None else {**usage, "cost": cost})


def test_a_call_costs_what_its_tokens_do_or_the_provider_says():
    price = Price(prompt=2.0, answer=8.0, cached=0.5)
    assert price.cost({"in": 1000, "out": 100}) == pytest.approx(0.002 + 0.0008)
    assert price.cost({"in": 1000, "out": 100, "cached": 600}) == pytest.approx(0.0008 + 0.0003 + 0.0008)
    assert price.cost({"in": 1000, "out": 0, "cached": 5000}) == pytest.approx(0.0005)  # no more than there are
    assert Price(prompt=2.0, answer=8.0).cost({"in": 1000, "out": 0, "cached": 600}) == pytest.approx(0.002)
    assert price.cost({"in": 1000}) is None
    assert costs_by(None)({"in": 1, "out": 1}) is None
    assert costs_by(None)({"in": 1, "out": 1, "cost": 0}) == 0.0
    assert costs_by(Price(prompt=1.0, answer=1.0))({"in": 1, "out": 1, "cost": 0.5}) == 0.5
    assert costs_by(None)({"cost": "free"}) is costs_by(None)({"cost": -1}) is costs_by(None)({"cost": True}) is None


def test_prices_belong_to_one_address_and_cover_dated_models(tmp_path):
    known = find_price(GPT)
    assert known is not None
    assert known == find_price(f"{GPT}-2024-08-06")
    assert find_price("http://127.0.0.1:8000/v1#gpt-4o") is None
    assert find_price(f"{GPT}-nano-2024-08-06") is None
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"models": {GPT: {"prompt": 1, "answer": 2}}}))
    assert find_price(GPT, [own]) == Price(prompt=1.0, answer=2.0)
    assert find_price("https://api.openai.com/v1#gpt-4o-mini", [own]) is not None
    models = json.loads(TABLE.read_text())["models"]
    assert all(find_price(model) for model in models)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"models": []}',
        '{"models": {"a": 1}}',
        '{"models": {"a": {"prompt": -1, "answer": 1}}}',
        '{"models": {"a": {"prompt": NaN, "answer": 1}}}',
        '{"models": {"a": {"prompt": 1}}}',
        '{"models": {"a": {"prompt": 1, "answer": 1, "image": 1}}}',
    ],
)
def test_an_invalid_price_table_is_refused(tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(RecipeError, match="is not a price table"):
        find_price("a", [tmp_path / "p.json"])


def test_calls_in_flight_count_as_the_most_expensive():
    budget = Budget(tokens=100)
    assert budget.reached() == ""  # nothing is known yet
    budget.add(30, None)
    budget.flying = 1
    assert budget.reached() == ""  # 30 + (1 in flight + 1) * 30 = 90
    budget.flying = 2
    assert "budget of 100 tokens" in budget.reached()
    budget.add(5, None)
    budget.flying = 1
    assert budget.reached() == ""  # 35 + 60 = 95
    budget.add(10, None)
    assert "45 so far" in budget.reached()


def test_money_and_time_are_limits_of_their_own():
    now = 0.0
    budget = Budget(cost=1.0, seconds=60.0, episodes=3, clock=lambda: now)
    budget.add(10_000, 0.5)
    assert budget.reached() == ""
    budget.add(10_000, 0.25)
    assert "$1 is used up: $0.7500" in budget.reached()
    assert "3 episodes" in budget.full(3)
    now = 60.0
    assert "60 seconds" in budget.reached()
    for wrong in ({"cost": 0.0}, {"tokens": -1}, {"seconds": float("nan")}):
        with pytest.raises(RecipeError, match="must be more than 0"):
            Budget(**wrong)


def test_a_run_is_estimated_from_its_first_episodes():
    first = Outcome(
        index=0, attempt=0, score=1.0, success=True, reward=1.0, turns=4, invalid=0, truncated=False, tokens_in=100,
        tokens_out=10, cost=0.5,
    )  # fmt: skip
    limits = {"max_turns": 10, "max_tokens": 32}
    whole = estimate([first, replace(first, turns=2, tokens_in=50, cost=0.1)], 20, **limits)
    assert (whole.calls, whole.tokens_in, whole.tokens_out, whole.cost) == (60, 1500, 200, pytest.approx(6.0))
    assert (whole.max_calls, whole.max_tokens_out) == (200, 6400)
    assert estimate([first, replace(first, cost=None)], 20, **limits).cost is None


def test_replies_and_exchanges_in_flight_survive(tmp_path):
    path = tmp_path / "calls.sqlite"
    calls = Calls(path, Budget())
    kept = StoredReply(raw={"text": "\ud800 and \U0001f600"}, seconds=1.5)
    calls.store(calls.begin("a", (1, 2)), "a", kept, parsed(10, 5, 0.25))
    calls.fail(calls.begin("b", (1, 3)), "rate", "HTTP 429")
    calls.begin("b", (1, 3))
    calls.begin("c", (1, 4))
    calls.close()

    budget = Budget()
    calls = Calls(path, budget)
    assert calls.find("a") == kept
    assert calls.find("b") is None
    assert (budget.spent_tokens, budget.spent_cost) == (15, 0.25)
    calls.store(calls.begin("b", (1, 3)), "b", kept, parsed(1, 1, 0.5))
    account = calls.account()
    calls.close()
    assert account == {
        "exchanges": 5,
        "by_outcome": {"lost": 2, "rate": 1, "reply": 2},
        "replies": 2,
        "tokens_in": 11,
        "tokens_out": 6,
        "cost": 0.75,
        "possibly_paid_twice": [
            {"exchange": 3, "session": 1, "draw": [1, 3], "asked_again": True},
            {"exchange": 4, "session": 1, "draw": [1, 4], "asked_again": False},
        ],
    }


def test_the_log_halts_at_the_budget_and_a_file_that_is_none_is_refused(tmp_path):
    calls = Calls(tmp_path / "calls.sqlite", Budget(tokens=10))
    calls.store(calls.begin("a", ()), "a", StoredReply(raw={}, seconds=0), parsed(6, 0))
    with pytest.raises(Halted, match="10 tokens is used up: 6"):
        calls.begin("b", ())
    assert calls.account()["exchanges"] == 1
    calls.close()
    (tmp_path / "calls.sqlite").write_text("no data base, but long enough to be looked at " * 30)
    with pytest.raises(RecipeError, match="is not a log of calls"):
        Calls(tmp_path / "calls.sqlite", Budget())


@pytest.mark.parametrize(
    ("limit", "usage"), [("tokens", {}), ("tokens", {"in": 5}), ("cost", {"in": 5, "out": 1}), ("cost", {})]
)
def test_an_unreported_figure_ends_a_run_with_a_limit_on_it(tmp_path, limit, usage):
    path = tmp_path / "calls.sqlite"
    for number, budget in enumerate((Budget(**{limit: 1000}), Budget(**{limit: 10_000}))):
        calls = Calls(path, budget)
        if not number:
            calls.store(calls.begin("a", ()), "a", StoredReply(raw={}, seconds=0), ParsedReply(text="", usage=usage))
        with pytest.raises(Halted, match=f"does not report its {limit}, which --budget-{limit} needs"):
            calls.begin("b", ())
        calls.close()
    calls = Calls(path, Budget())  # without the limit, the run goes on
    calls.begin("b", ())
    calls.close()


def test_many_threads_write_the_log(tmp_path):
    calls = Calls(tmp_path / "calls.sqlite", Budget())

    def work(name: int) -> None:
        for number in range(20):
            key = f"{name}-{number}"
            calls.store(calls.begin(key, (name, number)), key, StoredReply(raw={"n": number}, seconds=0), parsed(1, 1))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    account = calls.account()
    calls.close()
    assert (account["exchanges"], account["replies"], account["tokens_in"]) == (160, 160, 160)


def episode(name: str, seat: str = "agent") -> Trajectory:
    return Trajectory(id=name if seat == "agent" else f"{name}/{seat}", root=name, task="t", split="test", seat=seat)


def test_an_episode_counts_when_all_its_seats_are_recorded(tmp_path):
    record = Record(tmp_path, {"a": 1}, resume=False)
    record.keep([episode("e1"), episode("e1", "user")])
    record.keep([episode("e0"), episode("e0", "user")])
    episodes.append(tmp_path / EPISODES, [episode("e2", "user")])  # killed before the agent's was there
    with (tmp_path / EPISODES).open("a") as file:
        file.write('{"id": "e2", "ro')  # and in the middle of it
    record.close()
    record = Record(tmp_path, {"a": 1}, resume=True)
    with pytest.raises(RecipeError, match="is in use by another process"):
        Record(tmp_path, {"a": 1}, resume=True)
    assert [trajectory.id for trajectory in record.played()] == ["e1", "e0"]
    record.keep([episode("e2"), episode("e2", "user")])
    ids = [each.id for each in episodes.read(tmp_path / EPISODES)]
    assert ids == ["e1/user", "e1", "e0/user", "e0", "e2/user", "e2"]
    record.close()


def test_discard_removes_only_runs_without_episodes(tmp_path):
    record = Record(tmp_path / "x", {"a": 1}, resume=False)
    record.discard()
    record.close()
    assert list(tmp_path.iterdir()) == []
    record = Record(tmp_path / "x", {"a": 1}, resume=False)
    record.keep([episode("e0")])
    record.discard()
    record.close()
    assert (tmp_path / "x" / FACTS).exists()


def test_damaged_facts_are_refused(tmp_path):
    Record(tmp_path, {"a": 1}, resume=False).close()
    (tmp_path / FACTS).write_text("{")
    with pytest.raises(RecipeError, match="is damaged"):
        Record(tmp_path, {"a": 1}, resume=True)
