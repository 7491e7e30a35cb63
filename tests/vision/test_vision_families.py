"""Sampler and learner see the same, for each family: three turns with pictures of different sizes."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
import torch
from transformers import Idefics3Processor, Qwen2VLProcessor

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.load import load_local
from lmgym.policy.models.vision import Media, decode_picture, rotary_positions
from lmgym.rollout import dataset, episodes
from lmgym.train import source
from lmgym.train.collate import collate
from lmgym.types import Message, Turn, pictures_in
from tests.policy.talk import finish
from tests.vision.models import FAMILIES, policy
from tests.vision.talk import dialogue, drawn, play

GRIDS = [family for family in FAMILIES if family.startswith("qwen")]
TILES = ["idefics3", "smolvlm"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def played(folder):
    """The policy of each family, what it was shown and what it played; made when first asked for."""
    made = {}

    def of(family):
        if family not in made:
            actor, pictures = policy(family, folder), drawn()
            made[family] = actor, pictures, play(actor, pictures)
        actor, pictures, trajectory = made[family]
        actor.use_pictures(pictures)
        return actor, pictures, trajectory

    return of


def scored(actor, batch, **more):
    with torch.no_grad():
        return actor.score(batch.ids, batch.attention, mask=batch.mask, media=batch.media, **more)[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_learner_has_the_samplers_log_probs_and_another_picture_changes_them(family, played):
    actor, _, trajectory = played(family)
    batch = collate([trajectory], gallery=actor.gallery)
    assert len(batch) == 1  # one segment: a new picture appends only new ids
    gap = (scored(actor, batch) - batch.logprobs)[batch.mask].abs()
    assert len(gap) == sum(len(turn.completion.ids) for turn in trajectory.turns)
    assert gap.max() < 1e-4
    before = scored(actor, batch)
    other = drawn(seed=1)
    actor.use_pictures(other)
    rows = tuple(p._replace(digest=digest) for p, digest in zip(batch.media.rows[0], other, strict=True))
    after = scored(actor, replace(batch, media=Media((rows,), actor.gallery)))
    assert (after - before)[batch.mask].abs().max() > 1e-2


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pictures_tokens_are_never_trained(family, played):
    actor, pictures, trajectory = played(family)
    batch = collate([trajectory], gallery=actor.gallery)
    mask = batch.media.placeholders(batch.ids)
    assert not bool((mask & batch.mask).any())
    assert int(mask.sum()) == sum(actor.gallery[digest].tokens for digest in pictures)
    turns = tuple(replace(turn, kind="given") for turn in trajectory.turns)
    given = collate([replace(trajectory, turns=turns)], trained="given", gallery=actor.gallery)
    assert not bool((given.media.placeholders(given.ids) & given.mask).any())


@pytest.mark.parametrize("family", FAMILIES)
def test_words_nobody_sampled_get_the_same_prompts_and_pictures(family, played):
    actor, _, trajectory = played(family)
    unsaid = tuple(
        replace(turn, completion=replace(turn.completion, prompt_ids=(), ids=(), pictures=()))
        for turn in trajectory.turns
    )
    encoded = actor.encode(replace(trajectory, turns=unsaid, prompt="Play."))
    for turn, again in zip(trajectory.turns, encoded.turns, strict=True):
        assert [picture.digest for picture in again.completion.pictures] == list(turn.observation.images)
    first, again = trajectory.turns[0].completion, encoded.turns[0].completion
    assert (again.prompt_ids, again.pictures) == (first.prompt_ids, first.pictures)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_dropped_picture_renders_the_turn_anew(family, played):
    actor, pictures, trajectory = played(family)
    digests, first = list(pictures), trajectory.turns[0].completion
    messages = dialogue(digests[:2], [first.text], stubs=1)
    (answer,) = actor.act([Conversation(messages=messages, noise=(1,))])  # as the engine puts what does not extend
    assert answer.fresh
    assert [picture.digest for picture in answer.pictures] == [digests[1]]
    turns = (trajectory.turns[0], replace(trajectory.turns[1], completion=answer, fresh=True))
    batch = collate([replace(trajectory, turns=turns)], gallery=actor.gallery)
    assert len(batch) == 2
    assert (scored(actor, batch) - batch.logprobs)[batch.mask].abs().max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_words_with_another_picture_share_nothing_and_words_that_spell_a_placeholder_are_words(family, played):
    actor, pictures, _ = played(family)
    written = actor.gallery.vision.template_text
    message = Message(role="user", text=f"See {written}.", images=(next(iter(pictures)),))
    ids, fresh = actor.prompt(Conversation(messages=(message,)))
    (picture,) = actor.pictures(Conversation(messages=(message,)), ids, fresh=fresh)
    assert ids.count(actor.gallery.vision.token) == actor.gallery[picture.digest].tokens
    (one, *_), (other, *_) = pictures, drawn(seed=1)
    actor.use_pictures(pictures | drawn(seed=1))
    (expected,) = actor.act([Conversation(messages=dialogue([other]))])
    session = actor.session()
    session.put("a", Conversation(messages=dialogue([one])))
    session.put("b", Conversation(messages=dialogue([other])))
    done = finish(session)
    assert done["a"].prompt_ids == done["b"].prompt_ids
    assert done["b"].ids == expected.ids
    assert done["b"].logprobs == pytest.approx(expected.logprobs, abs=1e-5)
    session.put("a", Conversation(messages=dialogue([other])))  # the slot of `a` holds the other picture's
    assert finish(session)["a"].logprobs == pytest.approx(expected.logprobs, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sampled_placeholder_shows_nothing(family, played):
    actor, pictures, trajectory = played(family)
    token = actor.gallery.vision.token
    first = trajectory.turns[0].completion
    ids, zeros = (*first.ids[:2], token, token), (0.0,) * 4
    strange = replace(first, ids=ids, text=actor.text(ids), logprobs=zeros, entropy=zeros, finish="length")
    messages = dialogue(list(pictures)[:2], [strange.text])
    (answer,) = actor.act([Conversation(messages=messages, spoken=(strange,), noise=(5,))])
    turns = (replace(trajectory.turns[0], completion=strange), replace(trajectory.turns[1], completion=answer))
    assert not answer.fresh
    batch = collate([replace(trajectory, turns=turns)], gallery=actor.gallery)
    own = batch.mask & (batch.turn == 1)
    assert (scored(actor, batch) - batch.logprobs)[own].abs().max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_a_placeholder_sampled_where_no_picture_is_shows_nothing_either(family, played):
    """Scored by itself, among rows without pictures, and beside one that has some."""
    actor, _, trajectory = played(family)
    token = actor.gallery.vision.token
    asks = [Message(role="user", text=text) for text in ("What now?", "And then?")]
    (first,) = actor.act([Conversation(messages=(asks[0],))])
    ids, zeros = (first.ids[0], token, token), (0.0,) * 3
    strange = replace(first, ids=ids, text=actor.text(ids), logprobs=zeros, entropy=zeros, finish="length")
    messages = (asks[0], Message(role="assistant", text=strange.text), asks[1])
    (answer,) = actor.act([Conversation(messages=messages, spoken=(strange,), noise=(1,))])
    assert not answer.fresh
    turns = tuple(
        Turn(observation=ask, completion=each, action=each.text, fresh=each.fresh)
        for ask, each in zip(asks, (strange, answer), strict=True)
    )
    plain = replace(trajectory, id="plain", turns=turns)
    both = collate([trajectory, plain], gallery=actor.gallery)
    for batch in (collate([plain], gallery=actor.gallery), both.rows(torch.tensor([1])), both):
        own = batch.mask & (batch.turn == 1)
        own[:-1] = False
        assert (scored(actor, batch) - batch.logprobs)[own].abs().max() < 1e-4


@pytest.mark.parametrize("family", GRIDS)
def test_positions_are_those_of_the_library(family, played):
    actor, _, trajectory = played(family)
    batch = collate([trajectory], gallery=actor.gallery)
    mask = batch.media.placeholders(batch.ids)
    grids = torch.cat([picture.inputs["image_grid_thw"] for picture in batch.media.prepared()])
    expected, delta = actor.model.model.get_rope_index(batch.ids, mask.int(), image_grid_thw=grids)
    assert torch.equal(batch.media.positions(mask), expected)
    assert rotary_positions(mask[0], batch.media.prepared())[1] == int(delta)


@pytest.mark.parametrize("family", GRIDS)
def test_a_grid_is_written_as_the_library_writes_it(family, played):
    actor, pictures, _ = played(family)
    vision = actor.gallery.vision
    like = type("Like", (), {"image_processor": vision.processor, "image_token": vision.template_text})()
    for digest in pictures:
        made = vision.processor(images=[decode_picture(digest, pictures)], return_tensors="pt")
        assert actor.gallery[digest].text == Qwen2VLProcessor.replace_image_token(like, made, 0)


def test_tiles_are_written_as_the_library_writes_them(played):
    actor, pictures, _ = played("idefics3")
    words = actor.tokenizer
    processor, chat = actor.gallery.vision.processor, words.chat_template
    whole = Idefics3Processor(image_processor=processor, tokenizer=words, image_seq_len=4, chat_template=chat)
    parts = [{"type": "text", "text": "Look."}, *({"type": "image"} for _ in pictures)]
    text = words.apply_chat_template([{"role": "user", "content": parts}], tokenize=False, add_generation_prompt=True)
    images = [decode_picture(digest, pictures) for digest in pictures]
    expected = whole(text=text, images=[images], add_special_tokens=False)["input_ids"][0]
    message = Message(role="user", text="Look.", images=tuple(pictures))
    assert actor.prompt(Conversation(messages=(message,)))[0] == list(expected)


def test_pictures_of_all_sizes_have_their_own_numbers_of_tokens(played):
    actor, pictures, _ = played("qwen2_vl")  # a token is 16 pixels wide: 40 / 16 = 2.5, 90 / 16 = 5.6, 70 / 16 = 4.4
    assert [actor.gallery[digest].grid for digest in pictures] == [(2, 2), (2, 6), (4, 2)]


def test_ids_of_another_model_are_refused(played, folder):
    actor, _, trajectory = played("qwen2_vl")
    other, _, _ = played("qwen2_5_vl")
    batch = collate([trajectory], gallery=actor.gallery)
    cut = trajectory.turns[0].completion
    rows = ((cut.pictures[0]._replace(length=cut.pictures[0].length - 1),),)
    with pytest.raises(PolicyError, match="tokens for pictures that take"):
        other.score(batch.ids, batch.attention, media=Media(rows, other.gallery))


@pytest.mark.parametrize("family", ["tiny-vl", "qwen2_vl", "smolvlm"])
def test_the_digest_of_ids_is_of_the_pictures_settings_too(family, played, folder, tmp_path):
    actor, _, _ = played(family)
    actor.save(tmp_path)
    again = load_local(f"hf:{tmp_path}", device="cpu")
    assert again.tokens == actor.tokens
    other = load_local("tiny-vl:4m", device="cpu") if family == "tiny-vl" else again
    if family != "tiny-vl":
        processor = other.gallery.vision.processor
        processor.size = {name: 4 * size for name, size in dict(processor.size).items() if size}
        del other.tokens
    assert other.tokens != actor.tokens


def test_the_digest_of_a_text_policys_ids_is_of_tokenizer_and_template():
    policy = load_local("tiny", device="cpu")
    content = f"{policy.tokenizer.backend_tokenizer.to_str()}\n{policy.tokenizer.chat_template}"
    assert policy.tokens == hashlib.sha256(content.encode()).hexdigest()[:16]


def test_records_of_a_model_with_smaller_pictures_are_rendered_anew(played, tmp_path):
    """A picture is 4 by 4 tokens of the one and 8 by 8 of the other, whose words are spelt alike."""
    actor, pictures, trajectory = played("tiny-vl")
    other = load_local("tiny-vl:4m", device="cpu")
    other.use_pictures(pictures)
    episodes.write(tmp_path / "a.jsonl", [dataset.labelled(trajectory, actor)])
    (rendered,) = source.recorded(tmp_path / "a.jsonl", other, step=0, count=1, seed=0)
    assert [turn.completion.pictures[0].length for turn in trajectory.turns] == [16] * 3
    assert [turn.completion.pictures[0].length for turn in rendered.turns] == [64] * 3
    batch = collate([rendered], trained="given", gallery=other.gallery)
    assert scored(other, batch).isfinite().all()


def test_pictures_are_placed_counted_and_named_where_nobody_showed_them(played):
    actor, _, _ = played("tiny-vl")
    actor.use_pictures({})
    with pytest.raises(PolicyError, match="picture 00ff is missing"):
        actor.prompt(Conversation(messages=(Message(role="user", text="", images=("00ff",)),)))
    actor, pictures, _ = played("tiny-vl")
    digest = next(iter(pictures))
    bare, full = (Message(role="user", text="Look.", images=images) for images in ((), (digest,)))
    assert actor.count([full]) - actor.count([bare]) == 16
    _, _, trajectory = played("tiny-vl")
    answers = [turn.completion for turn in trajectory.turns]
    begin = len(answers[0].prompt_ids) + len(answers[0].ids)
    assert pictures_in(answers)[1].start == begin + answers[1].pictures[0].start
