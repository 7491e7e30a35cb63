"""TRL's GRPO plays our tasks; what it holds as a conversation and a reward is what our engine would."""

import math

import pytest

from lmgym.env.registry import build
from lmgym.errors import BackendError, InstanceError
from lmgym.interop import trl
from lmgym.policy.base import Conversation
from lmgym.policy.local.template import ChatTemplate
from lmgym.policy.models.tiny import tiny_tokenizer
from lmgym.tasks.wordle.env import Wordle
from lmgym.types import Message

from .venvs import play


def test_environment_plays_the_instance_of_its_row():
    environment = trl.factory("wordle")()
    (row,) = trl.rows("wordle", 1)
    env = build("wordle", split="train")
    assert environment.reset(**row) == env.reset(options={"index": row["index"]})[0]["text"]
    assert environment.act(env.unwrapped.answer()) == "g g g g g\n"
    assert environment.get_reward() == 1.0


def test_giving_up_pays_nothing_by_the_score_and_spares_costs_by_the_return():
    rewards = {}
    for kind in ("score", "return"):
        environment = trl.factory("wordle", reward=kind)()
        environment.reset(index=0)
        environment.act("no word")
        rewards[kind] = environment.get_reward()
    assert rewards == {"score": 0.0, "return": -1.0}  # six tries would have cost 6


def test_other_kinds_of_reward_are_refused():
    with pytest.raises(InstanceError, match="'score' or 'return'"):
        trl.factory("wordle", reward="sum")


def test_broken_backend_reaches_the_trainer_through_the_reward(monkeypatch):
    environment = trl.factory("wordle")()
    environment.reset(index=0)

    def breaks(self, action):
        raise BackendError("gone")

    monkeypatch.setattr(Wordle, "act", breaks)
    with pytest.raises(BackendError):
        environment.act("crane")  # TRL shows a tool's errors to the model and goes on
    with pytest.raises(BackendError, match="gone"):
        environment.get_reward()


def test_rows_name_every_instance_once_before_any_again():
    indices = [row["index"] for row in trl.rows("wordle", 2 * 372)]
    assert sorted(indices[:372]) == list(range(372))
    assert indices[:372] == indices[372:]
    assert trl.rows("wordle", 5, seed=1) == trl.rows("wordle", 5, seed=1) != trl.rows("wordle", 5, seed=2)


def test_plain_template_renders_the_conversation_that_the_engine_holds():
    said = [
        Message(role="user", text="Wordle:"),
        Message(role="assistant", text=" crane"),
        Message(role="user", text="b\n"),
    ]
    ours, _ = ChatTemplate(tiny_tokenizer()).extend(Conversation(messages=tuple(said)))
    call = {"type": "function", "function": {"name": "act", "arguments": {"action": " crane"}}}
    theirs = [
        {"role": "user", "content": "Wordle:"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "act", "content": "b\n"},
    ]
    tokenizer = trl.plain(tiny_tokenizer(), begin="<|assistant|>", end="<|end|>")
    assert tokenizer.apply_chat_template(theirs, add_generation_prompt=True)["input_ids"] == ours


@pytest.mark.parametrize("end", ["<|end|>", ""])
def test_every_answer_is_an_action_word_for_word(end):
    tokenizer = trl.plain(tiny_tokenizer(), begin="<|assistant|>", end="<|end|>")
    said = tokenizer.parse_response(f" <b>crane\n{end}", prefix="<|user|>Wordle:<|assistant|>")
    (call,) = said["tool_calls"]
    assert call["function"] == {"name": "act", "arguments": {"action": " <b>crane\n"}}


INDICES = [7, 30]


@pytest.fixture(scope="module")
def words():
    """Return the episodes of two steps of the embedded model, whose answers are all actions."""
    return play("trl", "trl_play.py", {"how": "words", "words": [], "indices": INDICES})


def replayed(episode):
    """An episode of TRL's played again: messages and score."""
    env = build("wordle", split="train")
    observation, info = env.reset(options={"index": episode["index"]})
    answers, over = [], False
    for message in episode["said"]:
        for call in message.get("tool_calls", ()) if not over else ():
            text, _, terminated, truncated, info = env.step(call["function"]["arguments"]["action"])
            answers.append(text["text"])
            over = terminated or truncated
    if not over:
        info = env.unwrapped.cut()
    return observation["text"], answers, info["score"]


def heard(episode):
    return episode["prompt"][0]["content"], [m["content"] for m in episode["said"] if m["role"] == "tool"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_trl_trains_two_steps_on_wordle(words):
    steps = [line for line in words["log"] if "loss" in line]
    assert len(steps) == 2
    assert all(math.isfinite(step["loss"]) and step["grad_norm"] > 0 for step in steps)
    assert words["moved"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_groups_of_trl_are_tries_of_one_instance(words):
    assert len(words["episodes"]) == 16
    groups = [{episode["index"] for episode in words["episodes"][i : i + 4]} for i in range(0, 16, 4)]
    assert all(len(group) == 1 for group in groups)
    assert set.union(*groups) == set(INDICES)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_episodes_of_trl_are_those_of_the_environment(words):
    for episode in words["episodes"]:
        first, answers, score = replayed(episode)
        assert (first, answers, score) == (*heard(episode), episode["reward"])
        assert len(answers) == 6


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_trl_calls_the_tool_and_wins_or_gives_up():
    env = build("wordle", split="train")
    secrets = [env.reset(options={"index": index})[1]["answer"] for index in INDICES]
    script = ["crane", secrets[0]]
    found = play("trl", "trl_play.py", {"how": "calls", "words": script, "indices": INDICES})
    assert {(episode["index"], episode["reward"]) for episode in found["episodes"]} == {(7, 1.0), (30, 0.0)}
    for episode in found["episodes"]:
        first, answers, score = replayed(episode)
        assert (first, answers, score) == (*heard(episode), episode["reward"])
        assert len(answers) == 2
        assert episode["said"][-1]["content"] == "I stop here."
