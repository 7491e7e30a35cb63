import copy

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from lmgym.policy.base import Conversation
from lmgym.policy.load import load_local
from lmgym.policy.local.audit import Auditor
from lmgym.policy.local.decoder import Chunk
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.local.session import PATIENCE, LocalSession
from lmgym.types import Message

from .models import NAMES, SMALL, model, policy, tokenizer
from .talk import OBSERVATIONS, finish, ids_of, opened, plain_words, rows_of, talk


@pytest.mark.parametrize("name", NAMES)
def test_sampled_logprobs_are_the_rescored_ones(name):
    actor = policy(name, sampling=Sampling(temperature=0.7, seed=3))
    spoken = talk(actor, actor.session(), rows=5, turns=4)
    batch = rows_of(spoken)
    with torch.no_grad():
        logprobs, entropy = actor.score(batch["ids"], batch["attention"], mask=batch["mask"])
    assert batch["mask"].sum() == sum(len(answer.ids) for segment in spoken for answer in segment) > 60
    assert (logprobs - batch["logprobs"]).abs().max() < 1e-4  # float32
    assert (entropy - batch["entropy"]).abs().max() < 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_ids_decode_to_the_rendered_conversation(name):
    actor = policy(name, sampling=Sampling(seed=1))
    plain_words(actor)
    session = actor.session()
    messages = opened(system=None if name.startswith("gemma") else "Play.")
    spoken = []
    for turn in range(4):
        session.put("a", Conversation(messages=tuple(messages), spoken=tuple(spoken), noise=(turn,)))
        spoken.append(finish(session)["a"])
        assert spoken[-1].fresh == (turn == 0)
        messages += [Message(role="assistant", text=spoken[-1].text), Message(role="user", text=OBSERVATIONS[1])]
    ids = [i for answer in spoken for i in (*answer.prompt_ids, *answer.ids)]
    chat = [{"role": message.role, "content": message.text} for message in messages[:-2]]
    rendered = tokenizer(name).apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    stop = spoken[-1].ids[-1] in actor.stops
    assert tokenizer(name).decode(ids[:-1] if stop else ids) == rendered + spoken[-1].text


def test_a_cut_answer_gets_its_end_of_turn_in_the_next_prompt():
    actor = policy("qwen3", sampling=Sampling(max_tokens=3))
    plain_words(actor)
    actor.stops = frozenset()  # nothing stops it
    first, second = talk(actor, actor.session(), rows=1, turns=2, max_tokens=3)[0]
    assert (first.finish, len(first.ids)) == ("length", 3)
    assert second.prompt_ids[0] == actor.template.end
    assert second.prompt_ids[0] not in first.ids


def test_a_sampled_stop_is_trained_and_what_follows_it_is_prompt():
    actor = policy("qwen3")
    end = actor.template.end
    actor.adjust = lambda _, logits: logits.index_fill(1, torch.tensor([end]), 50.0)
    first, second = talk(actor, actor.session(), rows=1, turns=2)[0]
    assert (first.ids, first.finish, first.text) == ((end,), "stop", "")
    newline = actor.template.vocabulary.words("\n")
    assert list(second.prompt_ids[: len(newline)]) == newline
    assert end not in second.prompt_ids[: len(newline)]


def test_a_stop_string_ends_the_answer_and_its_words():
    actor = policy("tiny", sampling=Sampling(max_tokens=64, stop=("to cab",)))
    script = actor.template.vocabulary.words("go to cabinet 4 now")
    limits = iter(script)
    actor.adjust = lambda _, logits: logits.index_fill(1, torch.tensor([next(limits)]), 80.0)
    answer = actor.act([Conversation(messages=tuple(opened()))])[0]
    assert (answer.finish, answer.text) == ("stop", "go to cab")
    assert list(answer.ids) == script[: len(answer.ids)]
    assert actor.tokenizer.decode(answer.ids) == "go to cabinet"


def thinker(*, special: bool) -> LocalPolicy:
    """A policy whose template begins the thinking of an answer; `special` marks the tags as special tokens."""
    made, weights = copy.deepcopy(tokenizer("qwen3")), copy.deepcopy(model("qwen3"))
    if special:
        made.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
        weights.resize_token_embeddings(max(len(made), weights.config.vocab_size))
    made.chat_template = made.chat_template.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
    return LocalPolicy(weights, made, name="thinker")


@pytest.mark.parametrize("special", [False, True])
def test_an_answer_that_is_imitated_is_the_same_action_when_it_is_sampled(special):
    actor = thinker(special=special)
    messages = tuple(opened())
    prompt, _ = actor.prompt(Conversation(messages=messages))
    script = actor.template.answer("50", prompt)
    tokens = iter(script)
    actor.adjust = lambda _, logits: logits.index_fill(1, torch.tensor([next(tokens)]), 80.0)
    answer = actor.act([Conversation(messages=messages, max_tokens=len(script))])[0]
    assert (list(answer.ids), answer.thinking, answer.text, answer.finish) == (script, "", "50", "stop")


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("said", "thinking", "words"), [("hm", "hm", ""), ("hm</think>\n\ngo", "hm", "go")])
def test_thinking_that_the_template_opened_is_no_action_cut_off_or_not(said, thinking, words, special):
    actor = thinker(special=special)
    script = actor.template.vocabulary.rendered(said, "")
    tokens = iter(script)
    actor.adjust = lambda _, logits: logits.index_fill(1, torch.tensor([next(tokens)]), 80.0)
    answer = actor.act([Conversation(messages=tuple(opened()), max_tokens=len(script))])[0]
    assert (answer.thinking, answer.text, answer.finish) == (thinking, words, "length")
    auditor = Auditor(actor, temperature=1.0, top_p=1.0, top_k=0)
    assert auditor.text(answer.prompt_ids, answer.ids) == (thinking, words)


def test_a_stop_string_of_many_bytes_is_found():
    actor = policy("tiny", sampling=Sampling(stop=("\u4f60\u597d\u4e16\u754c\u4f60\u597d",)))
    assert actor.stopped(actor.template.vocabulary.words("go \u4f60\u597d\u4e16\u754c\u4f60\u597d"))


@pytest.mark.parametrize(("name", "sharing"), [("tiny", 1), ("tiny", 2), ("gemma2", 2)])
def test_rows_draw_the_same_tokens_alone_and_in_any_batch(name, sharing):
    """`sharing` rows have the same prompt."""
    actor = policy(name, sampling=Sampling(max_tokens=20, seed=9))
    conversations = [Conversation(messages=tuple(opened(row=row // sharing)), noise=(row, 7)) for row in range(6)]
    together = actor.act(conversations)
    assert [actor.act([one])[0].ids for one in conversations] == [answer.ids for answer in together]
    assert [answer.ids for answer in actor.act(conversations[::-1])][::-1] == [answer.ids for answer in together]
    assert len({answer.ids for answer in together}) == 6


def test_the_run_seed_changes_the_draws():
    conversations = [Conversation(messages=tuple(opened()), noise=(1,))]
    one, other = (policy("tiny", sampling=Sampling(seed=seed)).act(conversations)[0] for seed in (0, 1))
    assert one.ids != other.ids


def test_the_cache_is_kept_across_turns_and_a_shared_prompt_computed_once():
    actor = policy("tiny")
    session = actor.session()
    (segment,) = talk(actor, session, rows=1, turns=4)
    length = sum(len(answer.prompt_ids) + len(answer.ids) for answer in segment)
    assert session.computed == length - 1  # each token once, the last one never
    actor = policy("tiny", sampling=Sampling(max_tokens=1))
    size = actor.count(opened())
    session = actor.session()
    for row in range(8):
        session.put(row, Conversation(messages=tuple(opened()), noise=(row,)))
    session.step()
    assert session.computed == size + 7  # the others compute their last token only
    session.put("late", Conversation(messages=tuple(opened()), noise=(9,)))
    session.step()
    assert session.computed == size + 8


def test_new_weights_between_steps_are_what_speaks_next():
    actor, other = policy("tiny", sampling=Sampling(max_tokens=6)), model("tiny", seed=1)
    actor.stops = frozenset()
    session = actor.session()
    session.put(0, Conversation(messages=tuple(opened())))
    for _ in range(3):
        session.step()
    actor.model.load_state_dict(other.state_dict())
    actor.update()
    answer = finish(session)[0]
    assert (answer.version, actor.version) == (0, 1)
    ids = torch.tensor([[*answer.prompt_ids, *answer.ids]])
    logprobs, _ = actor.score(ids, torch.ones_like(ids))
    sampled = torch.tensor(answer.logprobs)
    assert (logprobs[0, -3:] - sampled[-3:]).abs().max() < 1e-4
    assert (logprobs[0, -6:-3] - sampled[:3]).abs().max() > 1e-2
    assert actor.act([Conversation(messages=tuple(opened()))])[0].version == 1


def test_a_dropped_row_is_gone_in_flight_and_gives_its_slot_to_the_next():
    actor = policy("tiny", sampling=Sampling(max_tokens=2))
    session = actor.session()
    for key in range(40):
        session.put(key, Conversation(messages=tuple(opened(row=key))))
        finish(session)
        session.drop(key)
        session.drop("never heard of")
    assert session._decoder.cache.slots == 8
    actor = policy("tiny", sampling=Sampling(max_tokens=9))
    session = actor.session()
    session.put("a", Conversation(messages=tuple(opened())))
    session.step()
    session.drop("a")
    assert len(session) == 0
    assert session.step() == []


def test_more_conversations_than_slots_wait_for_their_turn():
    actor = policy("tiny", sampling=Sampling(max_tokens=5))
    conversations = [Conversation(messages=tuple(opened(row=row)), noise=(row,)) for row in range(7)]
    session = LocalSession(actor, slots=2)
    for key, conversation in enumerate(conversations):
        session.put(key, conversation)
    done = finish(session)
    assert [done[key].ids for key in range(7)] == [answer.ids for answer in actor.act(conversations)]


def test_conversations_that_come_back_keep_their_slots_and_the_others_wait():
    actor = policy("tiny", sampling=Sampling(seed=1))
    roomy, narrow = LocalSession(actor), LocalSession(actor, slots=2)
    expected = talk(actor, roomy, rows=5, turns=4)
    answers = talk(actor, narrow, rows=5, turns=4)
    assert [ids_of(spoken) for spoken in answers] == [ids_of(spoken) for spoken in expected]
    assert narrow.computed < 1.05 * roomy.computed


def test_an_idle_conversation_gives_way_to_one_that_waits_for_long():
    actor = policy("tiny", sampling=Sampling(max_tokens=200))
    actor.stops = frozenset()
    session = LocalSession(actor, slots=2)
    for key, limit in (("long", 200), ("idle", 1), ("waits", 1)):
        session.put(key, Conversation(messages=tuple(opened()), max_tokens=limit))
    done = [[key for key, _ in session.step()] for _ in range(PATIENCE + 2)]
    assert done == [["idle"], *[[]] * PATIENCE, ["waits"]]


@pytest.mark.parametrize("name", ["qwen2", "gemma2", "paired"])
def test_the_caches_stay_within_the_memory_and_the_answers_as_they_were(name):
    actor = policy("tiny" if name == "paired" else name, sampling=Sampling(seed=2))
    if name == "paired":
        actor.adjust_by(lambda _, logits: logits, second=model("tiny", seed=1))
    expected = talk(actor, actor.session(), rows=7, turns=9, max_tokens=40)
    memory = 3 * 1024 * actor.decoder().token_bytes
    session = LocalSession(actor, memory=memory)
    answers = talk(actor, session, rows=7, turns=9, max_tokens=40)
    assert [ids_of(spoken) for spoken in answers] == [ids_of(spoken) for spoken in expected]
    decoder = session._decoder
    decoders = (decoder.first, decoder.second) if name == "paired" else (decoder,)
    layers = [layer for each in decoders for layer in (*each.cache.keys, *each.cache.values)]
    assert decoder.cache.positions > 256
    size = decoder.cache.slots * decoder.cache.positions * decoder.token_bytes
    assert sum(layer.nbytes for layer in layers) == size <= memory


def test_a_full_context_ends_an_answer_and_refuses_a_prompt_of_any_length():
    size = policy("tiny").count(opened())
    cut = policy("tiny", context=size + 3).act([Conversation(messages=tuple(opened()))])[0]
    assert (cut.finish, len(cut.ids)) == ("context", 3)
    refused = policy("tiny", context=size).act([Conversation(messages=tuple(opened()))])[0]
    assert (refused.finish, refused.ids, refused.text) == ("context", (), "")
    long, empty = (Conversation(messages=(Message(role="user", text=text),)) for text in ("mug " * 250_000, ""))
    refused, answered = policy("tiny").act([long, empty])
    assert (refused.finish, refused.ids) == ("context", ())
    assert answered.ids


def test_a_queued_answer_has_the_version_of_the_weights_that_begin_it():
    actor = policy("tiny", sampling=Sampling(max_tokens=2))
    session = actor.session()
    session.put(0, Conversation(messages=tuple(opened())))
    actor.update()
    assert finish(session)[0].version == 1


def test_far_positions_are_as_exact_in_half_precision():
    config = MistralConfig(**SMALL, vocab_size=len(tokenizer("tiny")), sliding_window=None)
    torch.manual_seed(0)
    net = MistralForCausalLM(config).eval()
    actor = LocalPolicy(net, tokenizer("tiny"), name="mistral", dtype=torch.bfloat16)
    half = copy.deepcopy(net)
    for weight in half.parameters():  # as the library loads a model in 16 bits
        weight.data = weight.data.to(torch.bfloat16)
    ids = torch.randint(5, 300, (1, 1500), generator=torch.Generator().manual_seed(0))
    _, logits = actor.decoder().feed([Chunk(0, 0, ids[0].tolist())])
    with torch.no_grad():
        expected = half(ids, logits_to_keep=1).logits[0].float()
    assert (logits - expected).abs().max() < 0.02 * expected.abs().max()
    assert actor.model.model.rotary_emb.inv_freq.dtype == torch.float32


def test_half_precision_samples_what_its_own_weights_say():
    actor = load_local("tiny", sampling=Sampling(max_tokens=16), dtype="bfloat16", device="cpu")
    answer = actor.act([Conversation(messages=tuple(opened()))])[0]
    ids = torch.tensor([[*answer.prompt_ids, *answer.ids]])
    logprobs = actor.score(ids, torch.ones_like(ids))[0][0, -len(answer.ids) :]
    assert (logprobs - torch.tensor(answer.logprobs)).abs().mean() < 0.02  # bfloat16
    assert (actor.dtype, actor.model.dtype) == (torch.bfloat16, torch.float32)


def test_prefixes_are_written_on_without_an_environment():
    actor = policy("tiny", sampling=Sampling(max_tokens=4))
    prefix = actor.prompt(Conversation(messages=tuple(opened())))[0]
    answers = actor.sample([prefix, prefix, prefix[:-5]])
    assert len({answer.ids for answer in answers}) == len(answers) == 3


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_prompts_wait_for_each_other_on_a_gpu_and_the_answers_stay(monkeypatch, kind):
    actor = policy("qwen3", sampling=Sampling(seed=3))
    end = torch.tensor([actor.template.end])
    actor.adjust = lambda _, logits: logits.index_copy(1, end, logits.logsumexp(-1, keepdim=True) - 1.5)  # often ends
    expected = [[answer.ids for answer in row] for row in talk(actor, actor.session(), rows=8, turns=6)]
    monkeypatch.setattr(LocalPolicy, "device", property(lambda _: torch.device(kind)))  # the tensors stay on the CPU
    session = LocalSession(actor, memory=1 << 30)
    feed = session._decoder.feed
    passes = []
    monkeypatch.setattr(session._decoder, "feed", lambda chunks: passes.append(chunks) or feed(chunks))
    assert [[answer.ids for answer in row] for row in talk(actor, session, rows=8, turns=6)] == expected
    with_prompts = sum(any(len(chunk.ids) > 1 for chunk in chunks) for chunks in passes)
    assert (with_prompts < len(passes) / 2) == (kind == "cuda")
