import json
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.env.actions import (
    Call,
    parse_command,
    parse_function_call,
    parse_json_call,
    parse_json_calls,
    parse_number,
    parse_tag,
)
from lmgym.env.hostile import HOSTILE

PIECES = [
    *("<a>", "</a>", "<tool_call>", "</tool_call>", "```", "\n", "json", " ", "f(", ")", "(", "[", "]", "{", "}", ","),
    *('"', "'", "\\", '"name"', ":", '"arguments"', "=", "1", "-", ".", "1e999", "None", "x", "é", "\ud800", "\x00"),
    *("**", "*", "lambda:", "await ", "not ", "f'", "action:", "> "),
]
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=())), st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
)
DEEP = (  # what has crashed or stalled a parser somewhere
    *(f"f({piece * 20_000}1)" for piece in ("-", "(", "[", "{1:", "not ", "1+", "lambda:", "x:=", "1 if 1 else ")),
    f"f({'9' * 5_000})",
    f"f(0x{'f' * 5_000})",
    "f(1e999)",
    "f('\\ud800', \"\\N{nothing}\", '\\x')",
    *(f'{{"name": "f", "arguments": {piece * 100_000}' for piece in ("[", '{"a":', "9")),
    "\n{" * 300_000,
    "1." * 300_000,
    "+1" * 300_000,
    "```" * 300_000,
    "</a>" * 200_000,
    "action:" * 150_000,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


in_tag, number_in_tag = partial(parse_tag, tag="a"), partial(parse_number, tag="a")


def read(text):
    """Whatever the parsers make of `text`; none may raise."""
    return (
        parse_tag(text, "a"),
        parse_number(text),
        parse_number(text, tag="a"),
        parse_command(text),
        parse_json_calls(text),
        parse_json_call(text),
        parse_function_call(text),
    )


@settings(max_examples=500, deadline=None)
@given(TEXT)
def test_no_text_breaks_a_parser_and_calls_are_such_as_json_has(text):
    *_, by_json, by_function = read(text)
    for call in (by_json, by_function):
        if call is not None:
            json.dumps([call.name, call.arguments, call.positional], allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("text", [*HOSTILE, *DEEP], ids=lambda text: f"{text[:12]!r}x{len(text)}")
def test_hostile_text_is_no_call(text):
    *_, by_json, by_function = read(text)
    assert by_json is None or by_json.name == "x"
    assert by_function is None or by_function.name in ("f", "__import__")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"name": "a"}\n{"name": "b"}', ["a", "b"]),
        ('Both.\n```json\n{"name": "a"}\n\n{"name": "b"}\n```', ["a", "b"]),
        ('<tool_call>{"name": "a"}</tool_call> and <tool_call>\n{"name": "b"}\n</tool_call>', ["a", "b"]),
        ('{\n "name": "a"\n}', ["a"]),
        ('{"name": "a"}\nthen I wait', ["a"]),
        ('{"name": "a"}\n{"name": ', ["a"]),
        ("no call", []),
        ("<tool_call>" * 100_000, []),
    ],
    ids=["lines", "fence", "tags", "over lines", "prose after", "cut off", "none", "hostile"],
)
def test_several_json_calls_are_read_in_order(text, names):
    assert [call.name for call in parse_json_calls(text)] == names


@given(st.text(), JSON)
def test_a_json_call_comes_back_as_it_was_sent(name, value):
    call = {"name": name, "arguments": {"value": value}}
    for text in (
        json.dumps(call),
        f"I call it.\n```json\n{json.dumps(call, indent=1)}\n```",
        json.dumps(call) + "\nok",
    ):
        assert parse_json_call(text) == Call(name, {"value": value})
    tagged = f"<tool_call>{json.dumps({**call, 'arguments': json.dumps(call['arguments'])})}</tool_call>"
    assert parse_json_call(f"{{x}} {tagged}") == Call(name, {"value": value})


@given(JSON, JSON)
def test_a_function_call_comes_back_as_it_was_sent(first, second):
    text = f"click({first!r}, value={second!r})"
    expected = Call("click", {"value": second}, (first,))
    assert parse_function_call(text) == parse_function_call(f"So:\n```\n{text}\n```") == expected


def test_text_like_bad_code_prints_no_warning():
    code = "from lmgym.env.actions import parse_function_call; print(parse_function_call('click(1or 2)'))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("None\n", "")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('click("12", button="left")', Call("click", {"button": "left"}, ("12",))),
        ("First I look.\nscroll(0, -3.5)", Call("scroll", {}, (0, -3.5))),
        ("```python\nnoop()\n```", Call("noop", {})),
        ("<action>fill('a', \"it's\")</action> done", Call("fill", {}, ("a", "it's"))),
        (r"search('\d+ C:\docs\8 \\n')", Call("search", {}, (r"\d+ C:\docs\8 \n",))),
        ("pick((1, [True, None]))", Call("pick", {}, ([1, [True, None]],))),
    ],
)
def test_function_calls(text, call):
    assert parse_function_call(text) == call


@pytest.mark.parametrize(
    "text",
    [
        *("click(x)", "click(*[1])", "click(**{'a': 1})", "click(f'{1}')", "click(b'1')", "click({1, 2})"),
        *("click({1: 2})", "click(1j)", "a.click(1)", "click(1)(2)", "click", "click(1", "(click)(1)", ""),
        '{"name": 1}',
        '{"arguments": {}}',
        '{"name": "x", "arguments": []}',
        '{"name": "x", "arguments": "[1]"}',
        '{"name": "x", "arguments": {"a": NaN}}',
        '{"name": "x", "arguments": {"a": 1e999}}',
        '["name"]',
        '{"name": "x"',
    ],
)
def test_what_is_no_call_of_literals(text):
    assert parse_function_call(text) is parse_json_call(text) is None


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        (in_tag, "<a> 1 </a>", "1"),
        (in_tag, "<a>1</a> or <a>2</a>", "2"),
        (in_tag, "<a>1</a> and <a>", "1"),
        (in_tag, "<a>1</a> x </a>", "1"),
        (in_tag, "<a><a>1</a>", "1"),
        (in_tag, "<a></a>", ""),
        (in_tag, "</a><a>", None),
        (in_tag, "<a>1", None),
        (in_tag, "<b>1</b>", None),
        (in_tag, "", None),
        (parse_number, "42", 42),
        (parse_number, "It is -3.5.", -3.5),
        (parse_number, "I say 7!", 7),
        (parse_number, "1 2", None),
        (parse_number, "1,000", None),
        (parse_number, "2x", None),
        (parse_number, "v2", None),
        (parse_number, "1.2.3", None),
        (parse_number, "1e5", None),
        (parse_number, "9" * 19, None),
        (parse_number, "", None),
        (number_in_tag, "7 or 8? <a>8</a>", 8),
        (number_in_tag, "7", None),
        (parse_command, "go north", "go north"),
        (parse_command, "  go \t  north \n\n", "go north"),
        (parse_command, "I should leave.\nAction: go north", "go north"),
        (parse_command, "ACTION : go", "go"),
        (parse_command, "> go", "go"),
        (parse_command, ">go", "go"),
        (parse_command, "reaction: go", "reaction: go"),
        (parse_command, "action:", ""),
        (parse_command, " \n ", ""),
        (parse_command, "", ""),
    ],
)
def test_the_last_closed_tag_a_single_number_and_the_last_line_count(parse, text, found):
    assert parse(text) == found
