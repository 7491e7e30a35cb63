"""Answer formats: where an action stands in an answer, and what a model is told about it."""

import pytest

import lmgym
from lmgym.errors import RecipeError
from lmgym.policy.base import SimpleSession
from lmgym.rollout.answers import REQUEST, action_of, system_prompt
from lmgym.types import Completion


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("I start in the middle.\nAction: 50", "50"),
        ("Action: 10\nNo, half of it.\nAction: 50", "50"),
        ("**Action:** `go to desk 1`", "go to desk 1"),
        ("> ACTION: search[red shoes]\n", "search[red shoes]"),
        ("Thought: it is dark.\nAction:\nuse desklamp 1\nObservation: it is light.", "use desklamp 1"),
        ("Action:\n```text\nOFFER: price=3\nI am waiting.\n```\nDone.", "OFFER: price=3\nI am waiting."),
        ("I would go north.\n\n'go north'\n", "go north"),
        ('Action: take "the" box', 'take "the" box'),
        ("My action: jump", "My action: jump"),
        ("Action:", ""),
        ("", ""),
    ],
)
def test_the_action_is_read_out_of_an_answer(text, action):
    assert action_of(text, "action") == action
    assert action_of(text, "plain") == text


def test_the_system_prompt_has_the_instructions_where_the_format_asks_for_them():
    assert system_prompt("Be brief.", "Say a number.", "action") == f"Be brief.\n\nSay a number.\n\n{REQUEST}"
    assert system_prompt("Be brief.", "Say a number.", "plain") == "Be brief."
    assert system_prompt(None, "", "plain") is None


class Talker:
    """A policy that halves the interval of guess_number, and talks about it."""

    name, version, wants = "talker", 0, frozenset()

    def act(self, conversations):
        return [self.answer(conversation.messages) for conversation in conversations]

    def answer(self, messages):
        assert messages[0].role == "system"
        assert messages[0].text.endswith(REQUEST)
        low, high, guess = 1, 100, 50
        for message in messages[2:]:
            if message.role == "assistant":
                guess = int(message.text.rpartition("Action: ")[2])
            elif "higher" in message.text:
                low = guess + 1
            elif "lower" in message.text:
                high = guess - 1
        return Completion(text=f"It is between {low} and {high}.\nAction: {(low + high) // 2}")

    def count(self, messages):
        return 0

    def session(self):
        return SimpleSession(self)


def test_a_model_that_talks_plays_by_the_end_of_its_answers():
    report = lmgym.evaluate("guess_number", Talker(), episodes=5, answers="action")
    assert report.success.mean == 1.0
    assert report.settings["answers"] == "action"


def test_a_format_that_does_not_fit_is_refused():
    with pytest.raises(RecipeError, match="unknown --answers 'json'; choose from plain, action"):
        lmgym.evaluate("guess_number", "oracle", answers="json")
    with pytest.raises(RecipeError, match="oracle answers with the action alone"):
        lmgym.evaluate("guess_number", "oracle", answers="action")
    with pytest.raises(RecipeError, match="are tool calls, see --tools"):
        lmgym.evaluate("swe_repair", "tiny", answers="action")


class Thinker(Talker):
    """A policy that thinks, apart from its words, as a local policy and a reasoning model do."""

    def answer(self, messages):
        return Completion(text="<answer>A</answer>", thinking="The letter is A.")


def test_thinking_is_part_of_an_action_where_the_task_says_so():
    report = lmgym.evaluate("lmgym/VisualSearchViGoRL-v0", Thinker(), episodes=8)
    assert {(outcome.invalid, outcome.turns) for outcome in report.outcomes} == {(0, 1)}
