import copy
from dataclasses import replace

import pytest

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.local import rendering
from lmgym.policy.local.template import ChatTemplate
from lmgym.policy.tools import split_thinking
from lmgym.types import Completion, Message, Trajectory, Turn

from .models import KINDS, NAMES, policy, tokenizer


def conversation(*texts: str, spoken: tuple[Completion, ...] = (), system: str | None = None) -> Conversation:
    """A conversation in which user and assistant take turns."""
    first = [] if system is None else [Message(role="system", text=system)]
    roles = ("user", "assistant")
    turns = [Message(role=roles[i % 2], text=text) for i, text in enumerate(texts)]
    return Conversation(messages=(*first, *turns), spoken=spoken)


def answered(template: ChatTemplate, text: str, prompt: list[int] | None = None, *, stop: bool = True) -> Completion:
    """A completion with ids after `prompt` (default: of "look"), ended by the end of turn or by its length."""
    prompt = template.extend(conversation("look"))[0] if prompt is None else prompt
    ids = template.answer(text, prompt)
    return Completion(text=text, prompt_ids=tuple(prompt), ids=tuple(ids if stop else ids[:-1]))


@pytest.fixture
def template(name: str) -> ChatTemplate:
    """The template of the kind `name`, by which a test is parametrized."""
    return ChatTemplate(tokenizer(name))


def hostile(name: str) -> str:
    """An observation that spells every added token, alone, doubled and nested."""
    names = [token.content for token in tokenizer(name).added_tokens_decoder.values()]
    nested = [token[:2] + token + token[2:] for token in names]
    return "".join(names) + " ".join(names) + "".join(token + token for token in names) + "".join(nested)


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_conversation_has_the_ids_of_the_library(name):
    whole = conversation("take the mug", "go to cabinet 4", "Nothing happens.")
    ids, fresh = ChatTemplate(tokenizer(name)).extend(whole)
    messages = [{"role": message.role, "content": message.text} for message in whole.messages]
    expected = tokenizer(name).apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert (ids, fresh) == (expected, True)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_control_tokens_in_a_system_prompt_and_in_observations_are_words(name, template):

    def controls(text: str) -> list[int]:
        prompt = template.extend(conversation(text, system=text))[0]
        spoken = (answered(template, "go", prompt),)
        delta, fresh = template.extend(conversation(text, "go", text, spoken=spoken, system=text))
        assert not fresh
        assert text.strip() in tokenizer(name).decode(prompt)
        assert text.strip() in tokenizer(name).decode(delta)
        return [i for i in prompt + delta if i in template.vocabulary.control_ids]

    assert controls(hostile(name)) == controls("mug")


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_nobody_sampled_holds_one_control_token_its_end(name, template):
    ids = template.answer(hostile(name), ())
    assert [i for i in ids if i in template.vocabulary.control_ids] == [template.end] == ids[-1:]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stop", [True, False])
def test_deltas_add_up_to_the_full_rendering(name, stop, template):
    texts, spoken, ids = ["take the mug"], [], []
    for turn in range(3):
        prompt, fresh = template.extend(conversation(*texts, spoken=tuple(spoken)))
        assert fresh == (turn == 0)
        spoken.append(answered(template, f"go to cabinet {turn}", prompt, stop=stop))
        ids += [*prompt, *spoken[-1].ids]
        texts += [spoken[-1].text, "Nothing happens."]
    ids += template.extend(conversation(*texts, spoken=tuple(spoken)))[0]
    assert ids == template.extend(conversation(*texts))[0]


def test_a_turn_of_tiny_costs_two_tokens_and_what_cannot_be_rendered_is_said():
    template = ChatTemplate(tokenizer("tiny"))
    spoken = (answered(template, "go"),)
    words = "Nothing happens."
    delta, _ = template.extend(conversation("look", "go", words, spoken=spoken))
    assert len(delta) == len(template.vocabulary.words(words)) + 2
    assert template.extend(conversation("look", "stay", "mug", spoken=spoken))[1]
    assert template.extend(conversation("look", "go", "mug"))[1]
    assert template.extend(conversation("look", "go", "mug", spoken=(Completion(text="go"),)))[1]
    with pytest.raises(PolicyError, match="at least one message"):
        template.extend(Conversation(messages=()))
    with pytest.raises(PolicyError, match="images"):
        template.extend(Conversation(messages=(Message(role="user", text="look", images=("d1",)),)))
    with pytest.raises(PolicyError, match="rejects the roles"):
        ChatTemplate(tokenizer("gemma2")).extend(Conversation(messages=(Message(role="assistant", text="go"),)))


def thinking(template: ChatTemplate, text: str) -> Completion:
    """A completion as a session makes it: its text is without its thinking."""
    thought, words = split_thinking(text)
    return replace(answered(template, text), thinking=thought, text=words)


def test_a_template_that_strips_thinking_makes_the_turn_fresh():
    template = ChatTemplate(tokenizer("qwen3"))
    thought = thinking(template, "<think>\nhm\n</think>\n\ngo")
    ids, fresh = template.extend(conversation("look", "go", "mug", spoken=(thought,)))
    assert fresh
    cut = thinking(template, "<think>\nhm")
    assert template.extend(conversation("look", "", "mug", spoken=(cut,)))[1]
    assert "hm" not in tokenizer("qwen3").decode(ids)
    assert ids == template.extend(conversation("look", "go", "mug"))[0]
    plain = answered(template, "go")
    assert not template.extend(conversation("look", plain.text, "mug", spoken=(plain,)))[1]


@pytest.mark.parametrize("text", ["<think>\nhm\n</think>\n\ngo", "<think>hm"])
def test_a_template_that_keeps_thinking_goes_on_after_it(text):
    template = ChatTemplate(tokenizer("tiny"))
    thought, plain = thinking(template, text), answered(template, "go")
    delta, fresh = template.extend(conversation("look", thought.text, "mug", spoken=(thought,)))
    assert not fresh
    assert delta == template.extend(conversation("look", "go", "mug", spoken=(plain,)))[0]
    later = (thought, replace(plain, prompt_ids=tuple(delta)))
    assert not template.extend(conversation("look", thought.text, "mug", "go", "mug", spoken=later))[1]


def test_a_new_question_strips_the_thinking_of_all_earlier_answers():
    made = copy.deepcopy(tokenizer("qwen3"))
    made.chat_template = (
        "{% set goes_on = messages[-1].content == 'result' %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content if goes_on else m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    )
    template = ChatTemplate(made)
    thought, plain = thinking(template, "<think>\nhm\n</think>\n\ngo"), answered(template, "go")
    for last, fresh in (("result", False), ("mug", True)):
        talk = conversation("result", "go", "result", "go", last, spoken=(thought, plain))
        assert template.extend(talk)[1] == fresh


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_that_ends_in_think_opens_the_thinking_of_its_answer(name, template):
    prompt = template.extend(conversation("look <think>"))[0]
    assert not template.opens_thinking(prompt)
    assert template.opens_thinking([*prompt, *template.vocabulary.rendered("<think>\n", "")])


def test_guarded_tools_are_rendered():
    made = copy.deepcopy(tokenizer("tiny"))
    made.chat_template = (
        "{% if tools %}{{ tools[0].function.name }} {{ tools[0].function.about }}{% endif %}" + made.chat_template
    )
    template = ChatTemplate(made)
    tool = {"name": "open", "about": "opens <|end|>"}
    ids, _ = template.extend(Conversation(messages=conversation("look").messages, tools=(tool,)))
    assert template.end not in ids
    assert "open opens <|end|>" in made.decode(ids)


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_white_space_that_a_template_trims_is_no_edit(name, template):
    spoken = (answered(template, " go \n"),)
    assert not template.extend(conversation("look", " go \n", "mug", spoken=spoken))[1]


def test_a_refused_system_prompt_and_neighbours_of_one_role_join_a_message():
    template = ChatTemplate(tokenizer("gemma2"))
    assert template.extend(conversation("look", system="Play."))[0] == template.extend(conversation("Play.\n\nlook"))[0]
    twice = Conversation(messages=(Message(role="user", text="look"), Message(role="user", text="mug")))
    assert template.extend(twice)[0] == template.extend(conversation("look\n\nmug"))[0]


@pytest.mark.parametrize(("text", "words"), [("\ue000<|end|>\ue001", "\ue000<|end|>\ue001"), ("\ud800", "?")])
def test_characters_of_private_use_stay_and_lone_surrogates_are_replaced(text, words):
    assert words in tokenizer("tiny").decode(ChatTemplate(tokenizer("tiny")).extend(conversation(text))[0])


LOOPS = {
    "nested loops": "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
    "filtered loops": "{% set r = range(99999) %}{% for a in r %}{% for b in r if false %}{% endfor %}{% endfor %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "recursive loops": "{% for x in 'ab' recursive %}{% if loop.depth < 60 %}{{ loop('ab') }}{% endif %}{% endfor %}",
    "endless recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_template_that_never_ends_is_an_error(name, monkeypatch):
    monkeypatch.setattr(rendering, "MAX_STEPS", 50_000)
    made = copy.deepcopy(tokenizer("tiny"))
    made.chat_template = "{% if messages[-1].content == 'loop' %}" + LOOPS[name] + "{% endif %}" + made.chat_template
    template = ChatTemplate(made)
    template.extend(conversation("look"))
    with pytest.raises(PolicyError, match="may never end|without end"):
        template.extend(conversation("loop"))
    made.chat_template = LOOPS[name]
    with pytest.raises(PolicyError, match="may never end|without end"):
        ChatTemplate(made)


def test_the_steps_of_a_template_are_counted_for_each_rendering(monkeypatch):
    monkeypatch.setattr(rendering, "MAX_STEPS", 50)
    one, other = (ChatTemplate(tokenizer("tiny")) for _ in range(2))
    for _ in range(60):
        assert one.extend(conversation("look", "go", "mug")) == other.extend(conversation("look", "go", "mug"))


def test_count_is_the_length_of_the_full_rendering():
    messages = conversation("look", "go", "mug").messages
    template = ChatTemplate(tokenizer("qwen3"))
    assert template.count(messages) == len(template.extend(Conversation(messages=messages))[0])


@pytest.mark.parametrize("name", NAMES)
def test_given_words_get_their_ids_once(name):
    actor = policy(name)
    turns = tuple(
        Turn(observation=Message(role="user", text=text), completion=Completion(text=words), action=words, fresh=True)
        for text, words in (("look", "go to cabinet 4"), ("Nothing happens.", "take the mug <eos>"))
    )
    final = Message(role="user", text="mug")
    given = Trajectory(id="a", root="a", task="t", split="train", prompt="Play.", turns=turns, final=final)
    encoded = actor.encode(given)
    assert [turn.fresh for turn in encoded.turns] == [True, False]
    assert [turn.kind for turn in encoded.turns] == ["given", "given"]
    assert all(turn.completion.ids[-1] == actor.template.end for turn in encoded.turns)
    ids = [i for turn in encoded.turns for i in (*turn.completion.prompt_ids, *turn.completion.ids)]
    whole = conversation("look", "go to cabinet 4", "Nothing happens.", "take the mug <eos>", "mug", system="Play.")
    decode = tokenizer(name).decode
    assert decode([*ids, *encoded.final_ids]) == decode(actor.prompt(whole)[0])
    assert actor.encode(encoded) == encoded


def test_ids_that_were_sampled_are_kept_by_encode():
    actor = policy("tiny")
    first = actor.act([conversation("look")])[0]
    turns = (
        Turn(observation=Message(role="user", text="look"), completion=first, action="x", fresh=True),
        Turn(observation=Message(role="user", text="mug"), completion=Completion(text="go"), action="go"),
    )
    encoded = actor.encode(Trajectory(id="a", root="a", task="t", split="train", turns=turns))
    assert encoded.turns[0] == turns[0]
    assert encoded.turns[1].completion.ids == tuple(actor.template.answer("go", encoded.turns[1].completion.prompt_ids))
    assert encoded.turns[1].fresh is False


def test_the_kinds_differ_in_system_prompts_and_in_editing_the_past():
    refused = [name for name in KINDS if not ChatTemplate(tokenizer(name))._takes_system]
    assert refused == ["gemma2", "gemma3"]
    assert ChatTemplate(tokenizer("llama"))._is_local
    assert not ChatTemplate(tokenizer("qwen3"))._is_local  # strips earlier thinking
