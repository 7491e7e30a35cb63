"""Pictures from an environment: contexts that drop them, folders that keep them, replays that show them again."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
import torch
from PIL import Image

from lmgym.env.pictures import encode
from lmgym.env.registry import specs
from lmgym.errors import InstanceError, PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.load import load_local, load_policy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.vision import decode_picture
from lmgym.policy.select import Select, Verified
from lmgym.rollout import dataset, episodes
from lmgym.rollout.context import Full, MarkovState, Stub, Window
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.rollout.picture_folder import PictureFolder, RunPictures, folders_beside, picture_digests
from lmgym.rollout.replay import replay
from lmgym.train.collate import collate
from lmgym.types import Job, Message
from tests.threads import one_thread
from tests.vision.models import FAMILIES
from tests.vision.models import policy as of_family

JOBS = [Job(task="test/Corners-v0", index=index, id=f"j{index}") for index in range(3)]


@pytest.fixture(scope="module")
def policy():
    with one_thread():
        yield load_local("tiny-vl", sampling=Sampling(max_tokens=6), device="cpu")


def assert_rescored(policy, trajectories):
    """Float32: log-probs within 1e-4 of those sampled."""
    batch = collate(trajectories, gallery=policy.gallery)
    with torch.no_grad():
        logprobs, _ = policy.score(batch.ids, batch.attention, mask=batch.mask, media=batch.media)
    assert (logprobs - batch.logprobs)[batch.mask].abs().max() < 1e-4
    assert not bool((batch.media.placeholders(batch.ids) & batch.mask).any())
    return batch


def assert_replayed(trajectories, kept):
    """A replay draws the same pictures as those kept."""
    for trajectory in trajectories:
        again = {}
        replay(trajectory, pictures=again)
        assert sorted(again) == sorted(picture_digests([trajectory]))
        assert all(kept[digest] == png for digest, png in again.items())


@pytest.mark.parametrize(
    ("context", "segments", "seen"),
    [
        (Full(), 1, [1, 1, 1]),  # each prompt brings its own picture
        (Stub(keep=1), 2, [1, 1, 2]),  # the third call drops the second picture, and shows the first and third
        (Window(1), 2, [1, 1, 3]),  # the third call: task, a turn before, this one
        (MarkovState(), 3, [1, 2, 2]),
        (MarkovState(task=False), 3, [1, 1, 1]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Full | Stub | Window | MarkovState) else None,
)
def test_a_context_that_drops_pictures_makes_the_turn_fresh(policy, context, segments, seen):
    played = list(Engine(context=context).run(policy, JOBS))
    batch = assert_rescored(policy, played)
    assert len(batch) == segments * len(JOBS)
    assert [len(turn.completion.pictures) for turn in played[0].turns] == seen


def test_an_engine_gives_the_policy_its_pictures(policy):
    pictures = {}
    list(Engine(pictures=pictures).run(policy, JOBS[:1]))
    assert len(pictures) == 3
    assert policy.gallery.pictures is pictures


def test_an_answers_probability_depends_on_the_pictures_before_it(policy):
    verifying = Select(policy, 2, Verified(policy), "x")
    turns = next(Engine().run(verifying, JOBS[:1])).turns
    assert {turn.completion.usage["tries"] for turn in turns} == {2}
    kept: dict[str, bytes] = {}
    list(Engine(pictures=kept).run(policy, JOBS))
    asked = [Conversation(messages=(Message(role="user", text="Yes?", images=(name,)),)) for name in list(kept)[:2]]
    one, other = policy.answer_logprobs(asked, ["Yes", "Yes"])
    assert one != other
    assert policy.answer_logprobs(asked[:1], ["Yes"]) == pytest.approx([one], abs=1e-4)


def test_a_fork_goes_on_with_the_pictures_of_its_parent(policy):
    engine = Engine()
    (parent,) = engine.run(policy, JOBS[:1])
    (child,) = engine.run(policy, [fork(parent, 2)])
    batch = assert_rescored(policy, [parent, child])
    assert [len(row) for row in batch.media.rows] == [3, 3]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_run_loads_replays_and_goes_on_with_the_same_pixels(family, tmp_path):
    policy = of_family(family, tmp_path / "models")
    kept = PictureFolder(tmp_path / "pictures")
    played = list(Engine(pictures=kept).run(policy, JOBS))
    episodes.write(tmp_path / "episodes.jsonl", played)
    loaded = list(episodes.read(tmp_path / "episodes.jsonl"))
    assert loaded[0].turns[0].completion.pictures == played[0].turns[0].completion.pictures
    assert [t.turns for t in loaded] == [t.turns for t in played]
    assert_replayed(loaded, kept)
    policy.use_pictures(PictureFolder(tmp_path / "pictures"))
    assert_rescored(policy, loaded)
    again = {}
    resumed = list(Engine(pictures=again).run(policy, [fork(trajectory, 1) for trajectory in loaded]))
    assert [picture_digests([t]) for t in resumed] == [picture_digests([t]) for t in loaded]
    assert all(kept[digest] == png for digest, png in again.items())
    assert_rescored(policy, resumed)


DRAWN = [task for task, spec in specs().items() if spec.name in ("visual_search", "click_target")]


@pytest.mark.parametrize("task", [task for task in DRAWN if "ScreenSpot" not in task])
def test_a_drawn_picture_is_the_same_when_its_episode_is_replayed(task, tmp_path):
    kept = PictureFolder(tmp_path / "pictures")
    jobs = [Job(task=task, split="test", index=index, id=f"j{index}") for index in range(2)]
    played = list(Engine(pictures=kept).run(load_policy("oracle"), jobs))
    assert len(picture_digests(played)) >= 2
    episodes.write(tmp_path / "episodes.jsonl", played)
    assert_replayed(episodes.read(tmp_path / "episodes.jsonl"), kept)


@pytest.mark.parametrize("name", ["data.jsonl", "data.parquet"])
def test_a_data_set_keeps_which_picture_stands_where(policy, tmp_path, name):
    played = list(Engine(pictures=PictureFolder(tmp_path / "pictures")).run(policy, JOBS[:1]))
    dataset.write(tmp_path / name, played)
    (read,) = dataset.read(tmp_path / name)
    assert [turn.completion.pictures for turn in read.turns] == [turn.completion.pictures for turn in played[0].turns]
    (beside,) = (folder for folder in folders_beside(tmp_path / name) if len(folder))
    policy.use_pictures(beside)
    assert_rescored(policy, [read])


def test_a_file_shows_what_its_name_says(policy, tmp_path):
    kept = PictureFolder(tmp_path)
    (trajectory,) = Engine(pictures=kept).run(policy, JOBS[:1])
    for digest in picture_digests([trajectory]):
        pixels = np.asarray(decode_picture(digest, kept))
        named = hashlib.blake2b(struct.pack(">II", *pixels.shape[:2]) + pixels.tobytes(), digest_size=16)
        assert named.hexdigest() == digest


@pytest.mark.parametrize("digest", ["../secret", "/etc/passwd", "a/b", "A0", "..", "", "00.png", "0" * 129, "00\n"])
def test_no_name_leads_out_of_the_folder(tmp_path, digest):
    (tmp_path / "secret.png").write_bytes(b"secret")
    folder = PictureFolder(tmp_path / "pictures")
    assert digest not in folder
    for touch in (lambda: folder[digest], lambda: folder.update({digest: b""}), lambda: folder.pop(digest)):
        with pytest.raises(InstanceError, match="not the digest of a picture"):
            touch()
    assert [path.name for path in tmp_path.iterdir()] == ["secret.png"]


def test_a_training_run_keeps_on_disk_what_it_is_told_to(tmp_path):
    run = RunPictures(tmp_path)
    run.update({"aa": b"1", "bb": b"2"})
    run.keep(["aa"])
    run.forget()
    assert "aa" in run
    assert run["aa"] == b"1"
    assert "bb" not in run
    assert [path.name for path in tmp_path.iterdir()] == ["aa.png"]


def test_a_changed_file_is_refused_in_a_line_and_written_anew_when_its_picture_is_shown(tmp_path):
    (black, png), (_, other) = (encode(np.full((4, 6, 3), shade, np.uint8)) for shade in (0, 9))
    for changed in (other, encode(np.zeros((6, 4, 3), np.uint8))[1]):  # also one of the same bytes turned
        (tmp_path / f"{black}.png").write_bytes(changed)
        with pytest.raises(PolicyError, match=f"file of picture {black} contains a different picture") as caught:
            decode_picture(black, PictureFolder(tmp_path))
        assert "\n" not in str(caught.value)
    folder = PictureFolder(tmp_path)
    (tmp_path / f"{black}.png").write_bytes(other)
    assert folder[black] == other
    folder[black] = png
    assert dict(folder) == {black: png}
    assert not np.asarray(decode_picture(black, PictureFolder(tmp_path))).any()


def test_a_picture_folder_is_a_mapping(tmp_path):
    folder = PictureFolder(tmp_path)
    folder.update({"aa": b"1", "bb": b"2"})
    del folder["aa"]
    assert dict(folder) == {"bb": b"2"}
    with pytest.raises(KeyError):
        folder["aa"]


def test_the_same_pixels_in_another_file_are_the_same_picture(tmp_path):
    pixels = np.arange(72, dtype=np.uint8).reshape(4, 6, 3)
    digest, png = encode(pixels)
    Image.fromarray(pixels).save(tmp_path / f"{digest}.png", compress_level=1)
    folder = PictureFolder(tmp_path)
    assert folder[digest] != png
    assert np.array_equal(np.asarray(decode_picture(digest, folder)), pixels)


def test_what_is_no_picture_is_refused_in_a_line():
    for content in (b"", b"no picture", encode(np.zeros((4, 4, 3), np.uint8))[1][:40]):
        with pytest.raises(PolicyError, match="picture 00 cannot be read") as caught:
            decode_picture("00", {"00": content})
        assert "\n" not in str(caught.value)


def test_a_text_policy_refuses_pictures_before_it_computes(policy):
    blind = load_local("tiny", device="cpu")
    with pytest.raises(PolicyError, match="reads text only"):
        list(Engine().run(blind, JOBS[:1]))
    with pytest.raises(PolicyError, match="reads text only"):
        blind.count([Message(role="user", text="", images=("00",))])


def test_a_saved_policy_sees_the_same(policy, tmp_path):
    (trajectory,) = Engine(pictures=(pictures := {})).run(policy, JOBS[:1])
    policy.save(tmp_path)
    again = load_local(f"hf:{tmp_path}", device="cpu")
    again.use_pictures(pictures)
    assert again.tokens == policy.tokens
    first, second = (collate([trajectory], gallery=each.gallery) for each in (policy, again))
    logprobs = [each.score(b.ids, b.attention, media=b.media)[0] for each, b in ((policy, first), (again, second))]
    assert torch.equal(*logprobs)


def test_a_models_own_pass_agrees_with_ours(policy):
    """The library's forward pass over the same weights: float32, 1e-4 of log-probs."""
    (trajectory,) = Engine().run(policy, JOBS[:1])
    batch = collate([trajectory], gallery=policy.gallery)
    with torch.no_grad():
        logprobs, _ = policy.score(batch.ids, batch.attention, media=batch.media)
        pictures = policy.gallery.vision.inputs(batch.media.prepared())
        logits = policy.model(batch.ids, attention_mask=batch.attention.long(), **pictures).logits
    expected = logits.log_softmax(-1)[:, :-1].gather(-1, batch.ids[:, 1:, None])[..., 0]
    assert (logprobs[:, 1:] - expected).abs().max() < 1e-4
