"""The official shop: files in the official layout with every odd case, and the real instructions where present."""

import itertools
import json
import os
import random
from pathlib import Path

import pytest
import webshop_files

from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.webshop import nouns, official, oracle
from lmgym.tasks.webshop.goals import NO_CEILING

DATA = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "webshop"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return webshop_files.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def found(data, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("WEBSHOP_DATA", str(data))
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def sold():
    return official.shop(0)


def of(sold, end):
    return next(product for product in sold.products if product.asin.endswith(end))


def test_nan_long_and_repeated_asins_are_left_out(sold):
    assert [product.asin[-1] for product in sold.products] == list("12345678x")
    assert of(sold, "1").title == "Rugly Washable Rug"


def test_prices_are_the_first_two_numbers_or_100(sold):
    assert {product.asin[-1]: (product.prices, product.tag) for product in sold.products} == {
        "1": ((29.99,), "$29.99"),
        "2": ((100.0,), "$100.0"),
        "3": ((1299.0, 1499.5), "$1299.0 to $1499.5"),
        "4": ((985.0,), "$985.0"),
        "5": ((29.99,), "$29.99"),
        "6": ((100.0,), "$100.0"),
        "7": ((50.0, 40.0), "$50.0 to $40.0"),
        "8": ((29.99,), "$29.99"),
        "x": ((29.99,), "$29.99"),
    }
    backward = sold.number("B000000007")
    assert 40.0 <= sold.price(backward, 0) <= 50.0


def test_options_are_lowered_and_slashes_spaced(sold):
    assert of(sold, "1").options == {"color": ("sky | blue", "red")}
    assert of(sold, "2").options == {}
    assert of(sold, "3").options == {}  # a group without a list is none


def test_missing_attributes_and_texts_have_their_stand_ins(sold):
    assert of(sold, "7").attributes == ("DUMMY_ATTR",)
    assert of(sold, "7").description == ""
    assert of(sold, "2").bullets == ("one string",)
    assert of(sold, "1").query == "area rugs"


def test_documents_hold_title_description_first_feature_and_options(sold):
    wanted = "rugly washable rug rugly washable rug, described. soft color: sky | blue, red"
    assert of(sold, "1").document == wanted


def test_synthetic_goals_are_all_choices_of_options_but_the_ambiguous(sold):
    made = [(sold.goal("synthetic", place, 0)) for place in range(sold.count("synthetic"))]
    options = sorted((goal.asin[-1], goal.options) for goal in made)
    assert [(end, tuple(value for _, value in pairs)) for end, pairs in options] == [
        ("1", ("red",)),
        ("1", ("sky | blue",)),
        ("4", ("red",)),
        ("4", ("sky | blue",)),
        *(("5", pair) for pair in (("red", "plum"), ("teal", "plum"), ("teal", "red"))),
        ("6", ("café",)),
        ("6", ("dots [large]",)),
        ("8", ("standard",)),
        ("8", ("xl",)),
    ]
    first = next(goal for goal in made if goal.options == (("color", "red"),) and goal.asin.endswith("1"))
    assert first.instruction.startswith("Find me washable area rugs with color: red, and price lower than ")
    assert first.weight == pytest.approx(1 / 2)  # two goals have its one attribute
    assert next(goal for goal in made if goal.asin.endswith("5")).weight == pytest.approx(
        1 / 4
    )  # the fourth is dropped


def test_human_goals_skip_those_without_attributes_and_drop_trailing_dots(sold):
    made = {sold.goal("human", place, 0).asin[-1]: sold.goal("human", place, 0) for place in range(sold.count("human"))}
    assert sold.count("human") == 2
    assert (
        made["1"].instruction == f"i want a washable rug in red, and price lower than {made['1'].ceiling:.2f} dollars"
    )
    assert (made["1"].options, made["1"].weight) == (("red",), 1.0)
    assert (made["4"].instruction, made["4"].ceiling) == ("a bright lamp", NO_CEILING)  # 985 dollars


def test_goals_come_in_the_originals_order_with_its_weights(sold):
    """The original's rule, said again over the files alone; what shares a value is dropped at the very end."""
    rows, having = [], {}
    for row in webshop_files.ROWS:
        known = webshop_files.ATTRIBUTES.get(row["asin"], {})
        asked = known.get("instruction_attributes") if "instruction" in known else None
        if not asked or row["asin"] in [asin for asin, *_ in rows]:
            continue
        groups = {name.lower(): values for name, values in (row["customization_options"] or {}).items() if values}
        written = [[v["value"].strip().replace("/", " | ").lower() for v in groups[name]] for name in sorted(groups)]
        for values in itertools.product(*written):
            rows.append((row["asin"], values, asked))
            for name in asked:
                having[name] = having.get(name, 0) + 1
    state = random.getstate()
    random.seed(233)
    random.shuffle(rows)
    random.setstate(state)
    wanted = [
        (asin, values, sum(1 / having[name] for name in asked) / len(asked))
        for asin, values, asked in rows
        if len(set(values)) == len(values)
    ]
    made = [sold.goal("synthetic", place, 0) for place in range(sold.count("synthetic"))]
    assert [(goal.asin, tuple(value for _, value in goal.options), goal.weight) for goal in made] == wanted
    assert len(rows) == len(wanted) + 1
    heavy = list(itertools.accumulate(weight for *_, weight in wanted))
    assert heavy[-1] == pytest.approx(5 - 1 / 4)  # each of five attributes weighs 1, but for what was dropped


def test_human_goals_come_in_the_originals_order(sold):
    rows = [
        (asin, entry["instruction"].strip("."))
        for asin in [row["asin"] for row in webshop_files.ROWS]
        for entry in webshop_files.HUMANS.get(asin, ())
        if entry["instruction_attributes"]
    ]
    rows = list(dict.fromkeys(rows))  # the file has one product twice
    random.Random(233).shuffle(rows)
    made = [sold.goal("human", place, 0) for place in range(sold.count("human"))]
    assert [(goal.asin, goal.instruction.partition(", and price")[0]) for goal in made] == rows


def test_a_smaller_catalogue_is_the_first_rows_or_a_file_of_its_own(data):
    assert [product.asin[-1] for product in official.shop(3).products] == ["1"]
    assert [product.asin[-1] for product in official.shop(5).products] == ["1", "2"]


def test_the_goals_that_nobody_reaches_are_listed_with_reasons(sold):
    reasons = {}
    for place in range(sold.count("synthetic")):
        goal = sold.goal("synthetic", place, 0)
        price = sold.price(sold.number(goal.asin), 0)
        if reason := oracle.unreachable(sold, goal, price, nouns.own):
            reasons[goal.asin[-1], goal.options[0][1]] = reason
    assert reasons == {
        ("5", "red"): "the product itself earns 0.75",  # the button "red" chooses the trim
        ("6", "dots [large]"): "no action can name the option 'dots [large]'",
        ("8", "standard"): "the product itself earns 0.667",  # "standard" is tan
    }


def test_the_oracle_buys_what_can_be_bought(data):
    env = build("WebShopOfficial-v0", split="test", products=0, goals="synthetic")
    for index in range(env.unwrapped.size()):
        env.reset(options={"index": index})
        goal, unwrapped = env.unwrapped.goal, env.unwrapped
        if oracle.unreachable(unwrapped.shop, goal, 0.0, nouns.own):
            continue
        for action in env.unwrapped.oracle():
            *_, info = env.step(action)
        assert info["success"], goal


def test_an_option_called_like_a_tab_opens_the_tab(sold, opened):
    env = opened("WebShopOfficial-v0", split="test", products=0)
    env.step("search[reviews rug]")
    env.step("click[b00000000x]")
    env.step("click[reviews]")
    session = env.unwrapped.session
    assert (session.kind, session.tab, session.options) == ("item_sub_page", "Reviews", {})


@pytest.mark.parametrize("content", ["", "{not json", None])
def test_broken_and_absent_files_are_said_in_a_line(tmp_path, monkeypatch, content):
    if content is not None:
        (tmp_path / "items_shuffle.json").write_text(content)
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path))
    with pytest.raises(InstanceError, match=r"items_shuffle"):
        build("WebShopOfficial-v0", split="test").reset(options={"index": 0})
    monkeypatch.setenv("WEBSHOP_DATA", "")
    with pytest.raises(InstanceError, match=r"set \$WEBSHOP_DATA to the folder of items_shuffle.json"):
        build("WebShopOfficial-v0", split="test")


def other(tmp_path, monkeypatch, name, content):
    """An environment of the official files of which one has another content."""
    folder = webshop_files.write(tmp_path)
    (folder / f"{name}.json").write_text(content)
    monkeypatch.setenv("WEBSHOP_DATA", str(folder))
    return lambda: build("WebShopOfficial-v0", split="test", products=0).reset(options={"index": 0})


@pytest.mark.parametrize("name", ["items_shuffle", "items_ins_v2", "items_human_ins"])
@pytest.mark.parametrize("content", ["", "null", "[]", "[1]", '"x"', '{"B000000001": 1}', '{"B000000001": [1]}'])
def test_a_file_that_is_empty_or_of_another_layout_is_named_in_a_line(tmp_path, monkeypatch, name, content):
    said = rf"{name}\.json (cannot be read: .*|is not in the official layout, .*|has no product)\Z"
    with pytest.raises(InstanceError, match=said):
        other(tmp_path, monkeypatch, name, content)()


def test_products_without_instructions_have_no_human_goals(tmp_path, monkeypatch):
    with pytest.raises(InstanceError, match="has no instances for split 'test'"):
        other(tmp_path, monkeypatch, "items_human_ins", "{}")()


def test_products_of_which_nothing_is_known_are_sold(tmp_path, monkeypatch):
    observation, _ = other(tmp_path, monkeypatch, "items_ins_v2", "{}")()
    assert observation["text"]


@pytest.mark.skipif(not DATA.is_dir(), reason="no official instructions in $LMGYM_TEST_DATA or ../shared/data")
def test_our_human_style_goals_are_as_long_as_the_real_ones():
    real = json.loads((DATA / "human_goals.json").read_text())
    env = build("WebShopHuman-v0", split="test").unwrapped
    ours = [env.shop.goal("human", place, 0).instruction.rpartition(", and price lower")[0] for place in range(2000)]
    words = [sum(len(text.split()) for text in texts) / len(texts) for texts in (real, ours)]
    assert words[1] == pytest.approx(words[0], rel=0.15)
