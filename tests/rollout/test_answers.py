"""Answer formats: where an action stands in an answer, and what a model is told about it."""

import pytest

import lmgym
from lmgym.errors import RecipeError
from lmgym.evaluation.config import EvalConfig
from lmgym.evaluation.plan import EvalPlan
from lmgym.evaluation.policies import talks
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
        ("My action: jump", "jump"),
        ("**Next move:** e2e4\nIt attacks.", "e2e4"),
        ("Guess 3: crane", "crane"),
        ("Action:", ""),
        ("I will go to shelf 1.", "go to shelf 1"),
        ("I'd like to examine the mug because it is red.", "examine the mug"),
        ("I\u2019ll guess 50, since it halves the range.", "50"),
        ('My next guess is "crane".', "crane"),
        ("Okay! Let me try the word **crane**.", "crane"),
        ("It is dark. I will use desklamp 1. It should help.", "use desklamp 1"),
        ("I think that we should take the lamp.", "take the lamp"),
        ("1) I will look around.\n2) I will take the book.", "take the book"),
        ("I have a lamp and cannot see it.", "I have a lamp and cannot see it."),
        ("Is it something that I will eat?", "Is it something that I will eat?"),
        ("search[red shoes, size 9. cheap]", "search[red shoes, size 9. cheap]"),
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


@pytest.mark.parametrize(
    ("model", "talking"),
    [
        *[(model, True) for model in ("smollm2", "http://localhost/v1#m", "anthropic:m", "litellm:a/m", "hf:a/b")],
        *[(model, False) for model in ("tiny", "tiny-vl:10m", "cmd:player", "oracle", "python:a:b")],
        *[("majority:3:smollm2", True), ("verified:3:tiny", False)],
    ],
)
def test_a_model_that_was_trained_to_converse_talks(model, talking):
    assert talks(model) is talking


def test_the_policy_of_a_run_does_not_talk(tmp_path):
    assert talks(f"hf:{tmp_path}/policy")
    (tmp_path / "run.json").write_text("{}")
    assert not talks(f"hf:{tmp_path}/policy")


@pytest.mark.parametrize(
    ("model", "task", "answers", "max_tokens"),
    [
        ("smollm2", "guess_number", "action", 256),
        ("smollm2", "negotiate", "plain", 256),  # its messages have several lines
        ("smollm2", "swe_repair", "plain", 1024),  # its actions are tool calls
        ("tiny", "guess_number", "plain", 32),
        ("http://localhost/v1#m", "guess_number", "action", 2048),
    ],
)
def test_the_form_and_the_length_of_answers_fit_the_model_and_the_task(model, task, answers, max_tokens):
    settings = EvalPlan.of(EvalConfig(tasks=[task], model=model), task).settings
    assert (settings.answers, settings.max_tokens) == (answers, max_tokens)
    assert (REQUEST in (settings.prompt or "")) == (answers == "action")


def test_a_model_that_talks_plays_by_the_end_of_its_answers():
    report = lmgym.evaluate("guess_number", Talker(), episodes=5, answers="action")
    assert report.success.mean == 1.0
    assert report.settings["answers"] == "action"


def test_a_format_that_does_not_fit_is_refused():
    with pytest.raises(RecipeError, match="unknown --answers 'json'; choose from auto, plain, action"):
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
