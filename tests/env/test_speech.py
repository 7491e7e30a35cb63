"""Actions in a dialogue: words beside tool calls, and actions that break."""

import json

import pytest

from lmgym.env.speech import MOST_CALLS, parse_speech


def calls(number):
    return "\n".join(json.dumps({"name": "look", "arguments": {"n": n}}) for n in range(number))


def test_calls_are_read_in_order_beside_words():
    speech = parse_speech(f"One moment.\n{calls(MOST_CALLS)}")
    assert (speech.words, speech.broken) == ("One moment.", False)
    assert [call.arguments["n"] for call in speech.calls] == list(range(MOST_CALLS))


@pytest.mark.parametrize("number", [MOST_CALLS + 1, MOST_CALLS + 5])
def test_more_calls_than_allowed_break_the_action(number):
    speech = parse_speech(calls(number))
    assert (speech.calls, speech.broken) == ((), True)
