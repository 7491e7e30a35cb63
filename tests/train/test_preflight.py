"""Missing requirements of a recipe are reported before any work, with a remedy that the recipe supports."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from lmgym.baselines import filtered_bc
from lmgym.cli.options import read_args
from lmgym.errors import LmgymError, PolicyError, RecipeError
from lmgym.rollout import dataset
from lmgym.rollout.engine import Engine
from lmgym.train import loop, source
from lmgym.train.parts.filters import drop_flat_groups
from lmgym.train.parts.tasks import Uniform
from lmgym.train.preflight import check
from lmgym.train.stage import Evaluate, Repeat
from lmgym.train.stages import Sft
from lmgym.train.state import InstancePool
from tests.command import command
from tests.train import tt
from tests.train.chain import SPEC, chain_policy
from tests.train.victim import train

ALONE = "use --warmup 0"
STEP = b'[{"state": "1 to 8", "action": "1", "reward": 1.0, "done": true}]\n'
WITH_RECORDS = "use --warmup 0 --demonstrated 0, or --recorded FILE"


@pytest.fixture
def recorded(tmp_path):
    """A data set of what the chain's oracle does."""
    jobs = Uniform(4).draw(0, InstancePool(task=SPEC.id, size=8))
    dataset.write(tmp_path / "good.jsonl", source.demonstrated(Engine(), chain_policy(), jobs))
    return str(tmp_path / "good.jsonl")


def checked(name, words, folder):
    module = importlib.import_module(f"lmgym.baselines.{name}")
    recipe = module.recipe(read_args(module.Args, words))
    stages = [replace(stage, split="train") if isinstance(stage, Evaluate) else stage for stage in recipe.stages]
    check(replace(recipe, stages=stages), tt.SPEC.id, {}, folder)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("bc", "give episodes to imitate by --recorded FILE"),
        ("grpo", ALONE),
        ("filtered_bc", ALONE),
        ("filtered_bc --recorded FILE", ALONE),
        ("mc", WITH_RECORDS),
        ("mc --warmup 0", WITH_RECORDS),
        ("ilql", WITH_RECORDS),
        ("ilql --demonstrated 0", "use --warmup 0, or --recorded FILE"),
    ],
)
def test_a_task_that_shows_nothing_is_refused_with_a_way_that_leads_on(said, advice, recorded, tmp_path):
    name, *words = said.replace("FILE", recorded).split()
    with pytest.raises(RecipeError, match="neither demonstrator nor oracle") as caught:
        checked(name, words, tmp_path)
    assert str(caught.value).endswith(f": {advice}")
    for way in advice.replace("FILE", recorded).split(", or "):
        options = way[way.index("--") :].split()
        checked(name, [*words, *options], tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.jsonl", b"", "holds no episodes"),
        ("bad.jsonl", b'{"id": 1\n', "not a recorded episode"),
        ("other.jsonl", b"{}\n", "line 1 is not an episode"),
        ("bytes.jsonl", b"\xff\xfe", "cannot read the episodes"),
        ("packed.jsonl.gz", b"nonsense", "cannot read the episodes"),
        ("bad.parquet", b"nonsense", "cannot read the episodes"),
        ("table.csv", b"1,2\n", "is not a data set"),
        ("late.jsonl", STEP + b"{}\n", "line 2 is not an episode"),
        ("none.jsonl", b"[]\n", "line 1 is not an episode"),
    ],
)
def test_a_data_set_that_cannot_be_read_is_refused_before_the_warm_up(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    args = filtered_bc.Args(warmup=1, warmup_episodes=2, steps=1, evaluate=2, recorded=str(tmp_path / name))
    with pytest.raises(LmgymError, match=words) as caught:
        train(tmp_path / "run", args=args, recipe=filtered_bc.recipe(args))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_data_set_of_which_the_filter_keeps_nothing_is_refused_before_the_warm_up(tmp_path):
    (tmp_path / "data.jsonl").write_bytes(STEP * 2)
    args = filtered_bc.Args(warmup=1, warmup_episodes=2, steps=1, evaluate=2, recorded=str(tmp_path / "data.jsonl"))
    recipe = filtered_bc.recipe(args)
    stages = [replace(s, select=drop_flat_groups) if isinstance(s, Sft) and s.recorded else s for s in recipe.stages]
    with pytest.raises(RecipeError, match="no episodes that the recipe's filter keeps"):
        train(tmp_path / "run", args=args, recipe=replace(recipe, stages=stages))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("bc --instances 3", "instances=3 limits what the demonstrator plays"),
        ("mc --warmup-instances 3", "warmup_instances=3 limits what the demonstrator plays"),
        ("ilql --warmup-instances 3", "warmup_instances=3 limits what the demonstrator plays"),
    ],
)
def test_a_limit_of_demonstrated_instances_is_refused_where_a_data_set_is_imitated(said, words, recorded, tmp_path):
    name, *options = said.split()
    with pytest.raises(RecipeError, match=words):
        checked(name, [*options, "--recorded", recorded], tmp_path)


def test_a_limit_of_training_instances_is_refused_where_a_data_set_is_read(recorded, tmp_path):
    args = filtered_bc.Args(warmup=0, steps=1, evaluate=2, recorded=recorded)
    with pytest.raises(RecipeError, match="train_instances=3 limits the instances that are played"):
        train(tmp_path / "run", args=args, recipe=filtered_bc.recipe(args), train_instances=3)
    assert not (tmp_path / "run").exists()


def test_rounds_within_rounds_are_refused():
    rounds = Repeat(stages=[Evaluate(name="after")], times=2)
    with pytest.raises(RecipeError, match="a Repeat cannot hold another Repeat; write out the inner rounds"):
        Repeat(stages=[rounds], times=2)


def test_quantised_weights_are_refused_before_a_folder_is_made(tmp_path):
    policy = chain_policy()
    policy.model.config.quantization_config = {"quant_method": "fp8"}
    recipe = filtered_bc.recipe(filtered_bc.Args(warmup=0, steps=1))
    with pytest.raises(PolicyError, match="train adapters with --lora"):
        loop.run(recipe, policy, task=SPEC.id, folder=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("truncation", [{"top_p": 0.9}, {"top_k": 5}])
def test_a_policy_that_leaves_out_unlikely_tokens_is_refused(truncation, tmp_path):
    policy = chain_policy()
    policy.sampling = replace(policy.sampling, **truncation)
    with pytest.raises(RecipeError, match="set top_p to 1 and top_k to 0"):
        loop.run(
            filtered_bc.recipe(filtered_bc.Args(warmup=0, steps=1)),
            policy,
            task=SPEC.id,
            folder=tmp_path / "run",
            quiet=True,
        )
    assert not (tmp_path / "run").exists()


def test_a_recording_that_could_not_be_written_is_not_played(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Engine, "run", lambda *_: pytest.fail("played"))
    assert command("record", "guess_number", "--out", str(tmp_path / "new" / "x.csv")) == 2
    assert "choose a name that ends in .jsonl or .parquet" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            ["supo", "--limit", "99999"],
            "tokens, so no summary is ever asked for at a limit of 99999: choose a lower limit",
        ),
        (["supo", "--context", "window:4"], "leave out --context window:4"),
        (["webagent_r1", "--context", "markov"], "leave out --context markov"),
    ],
)
def test_what_a_policy_sees_is_chosen_once_and_within_what_it_reads(words, advice, tmp_path, capsys):
    out = tmp_path / "run"
    assert command("train", words[0], "wordle", *words[1:], "--model", "tiny:1m", "--out", str(out)) == 2
    assert advice in " ".join(capsys.readouterr().err.split())
    assert not out.exists()
