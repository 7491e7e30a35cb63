"""Learning from pictures: the same bits after an interruption, data sets with pictures, critics that see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lmgym.baselines import archer, bc, grpo, ilql, mc, ppo
from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.policy.load import load_local
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.tiny import config_fields
from lmgym.policy.models.tiny_vl import (
    PICTURE,
    TinyVision,
    TinyVl,
    TinyVlConfig,
    VisionModelSize,
    tiny_vision,
    tiny_vl_tokenizer,
)
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.rollout.picture_folder import PictureFolder, picture_digests
from lmgym.train import loop, source
from lmgym.train.batch import masked, with_observations
from lmgym.train.collate import collate
from lmgym.train.preflight import check
from lmgym.train.ranks import ALONE
from lmgym.train.token_critic import with_known_ends
from lmgym.types import Job
from tests.baselines.test_learning import small
from tests.threads import one_thread
from tests.train.interrupted import Interrupted
from tests.train.test_resume import figures, weights

TASK = "test/Corners-v0"
ARGS = grpo.Args(
    warmup=2, warmup_episodes=4, steps=2, instances=2, group=3, minibatches=2, kl=0.1, evaluate=4, drop_flat=False
)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


def seeing(name: str = "toy") -> LocalPolicy:
    tokenizer = tiny_vl_tokenizer()
    size = VisionModelSize(layers=1, hidden=32, heads=1, kv_heads=1, inner=64, side=32)
    token = tokenizer.convert_tokens_to_ids(PICTURE)
    config = TinyVlConfig(**config_fields(size, vocab=len(tokenizer)), side=size.side, picture_token_id=token)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = TinyVl(config)
    return LocalPolicy(model, tokenizer, name=name, sampling=Sampling(max_tokens=3), vision=tiny_vision(config))


def train(folder: Path, recipe=None, *, policy: LocalPolicy | None = None, **more) -> loop.RunResult:
    recipe = recipe or grpo.recipe(ARGS)
    return loop.run(recipe, policy or seeing(), task=TASK, folder=folder, save_seconds=0.0, quiet=True, **more)


def demonstrated(count: int):
    """A policy with vision, and the oracle's episodes with ids of this policy."""
    policy, pictures = seeing(), {}
    policy.use_pictures(pictures)
    jobs = [Job(task=TASK, index=index, id=str(index)) for index in range(count)]
    return policy, source.demonstrated(Engine(pictures=pictures), policy, jobs)


def test_a_run_that_was_interrupted_ends_with_the_same_bits(tmp_path, monkeypatch):
    train(tmp_path / "whole")
    step, calls = torch.optim.AdamW.step, []

    def dying(*args, **kwargs):
        calls.append(1)
        if len(calls) in (2, 4):
            raise Interrupted
        return step(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", dying)
        for resume in (False, True):
            with pytest.raises(Interrupted):
                train(tmp_path / "cut", resume=resume)
    train(tmp_path / "cut", resume=True)
    assert figures(tmp_path / "cut") == figures(tmp_path / "whole")
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_the_eyes_learn_too(tmp_path):
    policy = seeing()
    before = policy.model.eyes.stem.weight.detach().clone()
    train(tmp_path / "run", bc.recipe(bc.Args(steps=1, episodes=2, evaluate=2)), policy=policy)
    assert not torch.equal(policy.model.eyes.stem.weight, before)


def test_kept_episodes_have_their_pictures_beside_them_and_others_leave_none(tmp_path):
    train(tmp_path / "run", keep_episodes=(2,))
    (kept,) = (tmp_path / "run" / "episodes").glob("*.jsonl")
    digests = picture_digests(episodes.read(kept))
    folder = PictureFolder(tmp_path / "run" / "pictures")
    assert len(digests) == 6  # two instances of three pictures
    assert sorted(folder) == sorted(digests)


def test_words_of_observations_are_foreseen_and_pictures_are_not():
    policy, episodes = demonstrated(4)
    batch = collate(episodes, trained="given", gallery=policy.gallery)
    weighed = with_observations(batch, 0.3)
    placeholder = batch.ids == policy.gallery.vision.token
    assert int(placeholder.sum()) == 4 * 3 * 4  # episodes of three pictures, each of two by two tokens
    assert not weighed.weight[placeholder].any()
    words = batch.attention & (batch.turn < 0) & ~placeholder
    words[:, 0] = False
    # every third of them, as many as its neighbours
    assert weighed.weight[words].unique().tolist() == pytest.approx([0.0, 0.9])
    assert torch.equal(weighed.weight[batch.mask], batch.weight[batch.mask])


def test_recorded_episodes_with_pictures_are_imitated(tmp_path):
    train(tmp_path / "run", keep_episodes=(0,))
    recipe = bc.recipe(bc.Args(steps=1, episodes=2, evaluate=2, recorded=str(tmp_path / "run" / "episodes")))
    train(tmp_path / "again", recipe)
    assert any(row.get("trained_tokens", 0) > 0 for row in figures(tmp_path / "again"))


@pytest.mark.parametrize("place", ["head", "joint"])
def test_critics_that_read_the_policy_see(tmp_path, place):
    args = ppo.Args(warmup=1, warmup_episodes=2, steps=1, instances=4, critic_steps=1, evaluate=2, critic=place)
    train(tmp_path / "run", ppo.recipe(args))
    assert any("value_mean" in row for row in figures(tmp_path / "run"))


def test_a_text_policy_is_refused_before_any_episode(tmp_path):
    blind = load_local("tiny", device="cpu")
    with pytest.raises(RecipeError, match=r"shows pictures, and this policy reads text only") as caught:
        train(tmp_path / "run", policy=blind)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


BLIND = {
    "archer": archer.recipe(archer.Args()),
    "ppo": ppo.recipe(ppo.Args(critic="small")),
    "mc": mc.recipe(mc.Args(base="small")),
    "ilql": ilql.recipe(ilql.Args(base="small")),
}


@pytest.mark.parametrize("name", BLIND)
def test_a_critic_that_sees_no_pictures_is_refused_before_any_episode(tmp_path, name):
    with pytest.raises(RecipeError, match=r"^test/Corners-v0 shows pictures, and .* sees no pictures: use ") as caught:
        train(tmp_path / "run", BLIND[name])
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
    check(BLIND[name], "guess_number", {}, tmp_path)  # words it reads


def test_critics_that_see_and_imitation_alone_are_not_refused(tmp_path):
    seen = (ppo.Args(critic="network"), ppo.Args(critic="small", critic_steps=0, steps=0))
    for recipe in (*map(ppo.recipe, seen), mc.recipe(mc.Args(base="own")), ilql.recipe(ilql.Args(base="policy"))):
        check(recipe, TASK, {}, tmp_path, sees=True)


def test_archers_critic_judges_no_batch_with_pictures():
    policy, episodes = demonstrated(1)
    batch = collate(episodes, trained="given", gallery=policy.gallery)
    services = SimpleNamespace(policy=policy, pool=SimpleNamespace(seed=0), ranks=ALONE)
    critic = archer.TwinCritic(services, archer.Args(encoder="policy", autocast=False))
    with pytest.raises(RecipeError, match="sees no pictures"):
        critic.value(batch)


def test_what_a_critic_does_not_see_of_a_cut_episode_is_without_its_pictures_too():
    """Cut after the third turn, which a filter takes from the loss: the row ends within the second turn."""
    policy, (whole, cut) = demonstrated(2)
    cut = replace(cut, terminated=False, truncated=True, final=None, final_ids=(), final_pictures=())
    batch = collate([whole, cut], trained="given", gallery=policy.gallery)
    batch = masked(batch, (batch.episode == 1)[:, None] & (batch.turn == 2))
    visible = with_known_ends(batch)
    assert [len(row) for row in batch.media.rows] == [3, 3]
    assert [len(row) for row in visible.media.rows] == [3, 2]
    assert policy.states(visible.ids, visible.attention, media=visible.media).isfinite().all()


@pytest.mark.slow
def test_a_policy_learns_to_see_and_is_at_chance_blindfolded(tmp_path, monkeypatch):
    """One of four corners a picture: a guesser scores 0.25, and 60 episodes of 3 pictures have an error of 0.03."""
    policy = load_local("tiny-vl", device="cpu", sampling=Sampling(max_tokens=6))
    result = train(tmp_path / "run", bc.recipe(small(bc, steps=40, episodes=32, evaluate=60)), policy=policy)
    (*_, report) = result.reports.values()
    assert mean_score(report) > 0.8
    prepare = TinyVision.prepare
    black = lambda self, digest, picture: prepare(self, digest, picture.point(lambda _: 0))  # noqa: E731
    monkeypatch.setattr(TinyVision, "prepare", black)
    blind = load_local(f"hf:{result.policy}", device="cpu", sampling=Sampling(max_tokens=6))
    jobs = runner.episodes(TASK, split="test", size=100, count=60, options={})
    assert mean_score(runner.evaluate(blind, jobs, engine=Engine())) < 0.4


def mean_score(report) -> float:
    return sum(outcome.score for outcome in report.outcomes) / len(report.outcomes)
