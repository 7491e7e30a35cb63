"""WebShop: the rules of its pages, what every instance owes, and what small models see."""

import numpy as np
import pytest

from lmgym.env.registry import build, find
from lmgym.errors import InstanceError
from lmgym.tasks.webshop import demonstrator, floors, shop
from lmgym.tasks.webshop.session import ShopSession
from lmgym.tasks.webshop.view import brief, text

INSTRUCTION = "i need a washable cover dog bed with size: jumbo, and price lower than 90.00 dollars"


@pytest.fixture
def session():
    return ShopSession(shop.procedural(1000), name="test_0", instruction=INSTRUCTION)


def played(env, player, index, **how):
    env.reset(seed=0, options={"index": index})
    for action in player(env.unwrapped):
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            return info
    raise AssertionError("the player stopped")


@pytest.mark.parametrize("name", ["WebShop-v0", "WebShopHuman-v0"])
def test_sizes_of_the_splits_are_those_of_the_spec(name):
    for split, size in find(name).splits.items():
        assert build(name, split=split).unwrapped.size() == size


@pytest.mark.parametrize("name", ["WebShop-v0", "WebShopHuman-v0"])
def test_the_oracle_earns_1_on_every_test_instance(name):
    env = build(name, split="test")
    for index in range(500):
        info = played(env, lambda e: e.oracle(), index)
        assert info["success"], index


@pytest.mark.parametrize("name", ["WebShop-v0", "WebShopHuman-v0"])
def test_the_answer_is_the_product_and_what_its_buyer_clicks(name):
    env = build(name, split="test")
    for index in range(20):
        _, info = env.reset(seed=0, options={"index": index})
        actions = [action.lower() for action in env.unwrapped.oracle()]
        assert all(f"click[{part.lower()}]" in actions for part in info["answer"].split(" | ")), info["answer"]


def test_pages_read_as_in_the_original():
    env = build("WebShop-v0", split="test", mode="text", length=10)
    observation, _ = env.reset(options={"index": 0})
    assert observation["text"].startswith("WebShop [SEP] Instruction: [SEP] i am looking for")
    assert observation["text"].endswith(" dollars [SEP] Search")
    observation, *_ = env.step("search[zipper closure shoulder bags]")
    fields = observation["text"].split(" [SEP] ")
    assert [fields[0], *fields[2:5]] == ["Instruction:", "Back to Search", "Page 1 (Total results: 50)", "Next >"]
    assert len(fields) == 5 + 3 * 10
    observation, *_ = env.step(f"click[{fields[5]}]")
    item = observation["text"].split(" [SEP] ")
    assert item[2:4] == ["Back to Search", "< Prev"]
    assert item[-7:] == [
        fields[6],
        f"Price: {fields[7]}",
        "Rating: N.A.",
        "Description",
        "Features",
        "Reviews",
        "Buy Now",
    ]


def test_next_goes_on_past_the_last_page_and_a_search_is_taken_on_every_page(session):
    session.search("dog bed")
    assert len(session.hits) == 50
    for _ in range(5):
        session.click("next >")
    assert (session.page, session.listed) == (6, [])
    assert text(session).endswith("Page 6 (Total results: 50) [SEP] < Prev [SEP] Next >")
    session.search("dog bed")
    session.click(list(session.clickables())[2])
    session.click("features")
    session.search("fish tank")
    assert (session.kind, session.page, session.item, session.options) == ("search_results", 1, None, {})


def opened(session):
    """An item with an option group of at least two values."""
    session.search("dog bed")
    session.click(list(session.clickables())[2])
    name, values = next(iter(session.product.options.items()))
    return name, values


def test_an_option_replaces_the_one_before_stands_in_the_address_and_is_kept_on_tabs(session):
    name, values = opened(session)
    session.click(values[1])
    session.click(values[0])
    assert session.options == {name: values[0]}
    code = session.product.asin
    assert session.url == f'http://127.0.0.1:3000/item_page/test_0/{code}/dog+bed/1/{{"{name}": "{values[0]}"}}'
    session.click("description")
    session.click("< prev")
    assert (session.kind, session.options) == ("item_page", {name: values[0]})
    session.click("< prev")
    assert (session.kind, session.options, session.item) == ("search_results", {}, None)


def test_back_to_search_forgets_everything(session):
    opened(session)
    session.click("back to search")
    assert (session.kind, session.seen, session.keywords, session.url) == (
        "index",
        set(),
        [],
        "http://127.0.0.1:3000/test_0",
    )


@pytest.mark.parametrize(
    "action", ["", "buy", "click[nothing]", "search[]", "click[search]", "Search[x]", "click[buy now]"]
)
def test_what_the_page_does_not_have_changes_nothing(action):
    env = build("WebShop-v0", split="test")
    before, _ = env.reset(options={"index": 0})
    after, reward, terminated, _, info = env.step(action)
    assert (after, reward, terminated, info["valid"]) == (before, 0.0, False, False)


def test_labels_are_read_in_any_case_and_authored_goals_are_taken_and_checked():
    env = build("WebShop-v0", split="test")
    env.reset(options={"index": 0})
    *_, info = env.step("I look for it first.\nAction: search[dog bed]")
    assert info["valid"]
    *_, info = env.step("click[NEXT >]")
    assert info["valid"]
    product = shop.procedural(1000).product(8)
    goal = {
        "instruction": "buy it",
        "asin": product.asin.lower(),
        "attributes": list(product.attributes),
        "options": [],
    }
    observation, info = env.reset(options={"instance": goal})
    assert (observation["text"], info["instance"]) == ("buy it\nsearch", "authored")
    assert played_from(env)["success"]
    for broken in ({}, {**goal, "asin": "B000000"}, {**goal, "attributes": []}, {**goal, "price_upper": "much"}):
        with pytest.raises(InstanceError, match="an authored goal has"):
            env.reset(options={"instance": broken})


def test_buying_without_options_ends_the_episode_and_tells_no_score():
    env = build("WebShop-v0", split="test", mode="text")
    env.reset(options={"index": 0})
    observation, *_ = env.step("search[bag]")
    code = observation["text"].split(" [SEP] ")[5]
    env.step(f"click[{code}]")
    observation, reward, terminated, truncated, info = env.step("click[buy now]")
    assert (terminated, truncated, info["score"]) == (True, False, reward)
    assert observation["text"] == (
        f"Thank you for shopping with us! [SEP] Purchased [SEP] asin [SEP] {code} [SEP] options [SEP] {{}}"
    )
    assert {"r_type", "r_att", "w_att", "r_option", "w_option", "r_price", "w_price", "title_score"} < info[
        "verbose"
    ].keys()
    assert {"query_match", "category_match"} < info["verbose"].keys()


def test_the_last_observations_and_actions_are_repeated_where_asked_for():
    env = build("WebShop-v0", split="test", mode="url", previous_observations=2, previous_actions=1)
    env.reset(options={"index": 0})
    start = "http://127.0.0.1:3000/test_0"
    observation, *_ = env.step("search[a b]")
    found = "http://127.0.0.1:3000/search_results/test_0/a+b/1"
    assert observation["text"] == f"{start} [SEP] search[a b] [SEP] {found}"
    observation, *_ = env.step("nonsense")
    assert observation["text"] == f"{start} [SEP] {found} [SEP] nonsense [SEP] {found}"


def test_prefixes_are_words_unless_they_are_asked_for():
    env = build("WebShop-v0", split="test", prefixes=True, mode="text", length=50)
    env.reset(seed=3, options={"index": 0})
    sold = [shop.procedural(1000).product(place) for place in range(1000)]
    wanted = {
        "<q> dog beds": sum(product.query == "dog beds" for product in sold),
        "<a> chew proof": sum("chew proof" in product.attributes for product in sold),
        "<c> pets and more": sum(product.category == "pets" for product in sold),
        "<r>": 50,
        "<q> nothing": 0,
        "<c>": 0,
    }
    for words, total in wanted.items():
        observation, *_ = env.step(f"search[{words}]")
        assert f"Page 1 (Total results: {total})" in observation["text"]
    plain = ShopSession(shop.procedural(1000), name="x", instruction="y")
    plain.search("<q> dog beds")
    assert len(plain.hits) == 50


def test_brief_pages_say_everything_once(session):
    assert brief(session) == f"{INSTRUCTION}\nsearch"
    session.length = 2
    session.search("dog bed")
    first, second = (session.shop.product(place) for place in session.listed)
    listed = [f"{product.asin} {product.title} {product.tag}".lower() for product in (first, second)]
    assert brief(session).split("\n") == ["page 1 of 50 results", *listed, "next >, back to search"]
    session.click(first.asin.lower())
    name, values = next(iter(first.options.items()))
    assert brief(session).split("\n")[0] == f"{name}: {', '.join(values)}"
    session.click(values[0])
    assert brief(session) == f"{values[0]} chosen"


def test_the_demonstrator_knows_the_pages_alone():
    env = build("WebShopHuman-v0", split="train")
    for index in range(40):
        env.reset(options={"index": index})
        said = []
        for action in env.unwrapped.demonstrator():
            said.append(action)
            env.step(action)
        env.reset(options={"index": index})
        env.unwrapped.goal = None  # what is hidden is not there to be looked at
        again = []
        for action in demonstrator.play(env.unwrapped.session):
            again.append(action)
            env.unwrapped._follow(action)
        assert again == said


def test_the_demonstrator_is_good_and_not_perfect():
    env = build("WebShop-v0", split="train")
    scores = [played(env, lambda e: e.demonstrator(), index)["score"] for index in range(200)]
    assert 0.85 < np.mean(scores) < 1.0


def test_the_first_hit_is_often_wrong():
    env = build("WebShop-v0", split="test")
    scores = []
    for index in range(200):
        observation, _ = env.reset(options={"index": index})
        said = []
        for _ in range(3):
            said.append({"role": "user", "content": observation["text"]})
            observation, _, terminated, _, info = env.step(floors.first_hit(said))
        assert terminated
        scores.append(info["score"])
    assert 0.2 < np.mean(scores) < 0.7
    assert np.mean(np.equal(scores, 1.0)) < 0.1


def test_progress_is_a_term_that_adds_up_to_agentboards_score():
    env = build("WebShop-v0", split="test", progress=0.5)
    env.reset(options={"index": 1})
    terms = []
    for action in env.unwrapped.oracle():
        *_, info = env.step(action)
        terms.append(info["reward_terms"])
    assert sum(term["progress"] for term in terms) == pytest.approx(0.5)  # all three parts reach 1
    assert terms[0]["progress"] == pytest.approx(0.5 / 3)  # the first results page has the product
    assert terms[1]["progress"] == pytest.approx(0.5 / 3)  # so has the item page
    assert [term["purchase"] for term in terms[:-1]] == [0.0] * (len(terms) - 1)


def played_from(env):
    for action in env.unwrapped.oracle():
        *_, info = env.step(action)
    return info


@pytest.mark.slow
def test_10000_episodes_leave_memory_flat():
    def resident():
        with open("/proc/self/statm") as numbers:
            return int(numbers.read().split()[1]) * 4096

    env = build("WebShop-v0", split="train", mode="text", length=10)
    sizes = []
    for episode in range(10_000):
        played(env, lambda e: e.demonstrator(), episode % env.unwrapped.size())
        if episode % 1000 == 999:
            sizes.append(resident())
    assert max(sizes[1:]) < 1.1 * sizes[0], sizes  # what is remembered of goals grows until each of 5,059 was seen
    assert max(sizes[5:]) < 1.05 * sizes[4], sizes
    assert max(sizes[6:]) < 1.01 * sizes[5], sizes
