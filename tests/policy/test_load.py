import json
import re
import subprocess
import sys
from contextlib import closing

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, Policy, Session
from lmgym.policy.load import load_local, load_policy
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.tiny import tiny_model

from .models import NAMES, model, policy, tokenizer
from .talk import opened

CONVERSATION = Conversation(messages=tuple(opened()), noise=(3,))


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_policy_speaks_as_before(name, tmp_path):
    actor = policy(name, sampling=Sampling(seed=4))
    actor.save(tmp_path)
    again = load_local(f"hf:{tmp_path}", sampling=Sampling(seed=4), device="cpu")
    assert again.act([CONVERSATION]) == actor.act([CONVERSATION])
    assert again.stops == actor.stops
    assert again.name == f"hf:{tmp_path}"


@pytest.mark.parametrize("name", ["tiny", "tiny-vl"])
def test_an_embedded_model_is_made_of_its_seed(name):
    policies = (load_local(f"{name}?seed=3", device="cpu"), *(load_local(name, seed=n, device="cpu") for n in (3, 0)))
    named, same, other = (policy.model.state_dict() for policy in policies)
    assert all(torch.equal(weight, same[key]) for key, weight in named.items())
    changed = {key for key, weight in named.items() if not torch.equal(weight, other[key])}
    assert changed == {key for key, weight in named.items() if weight.ndim > 1}


def test_tiny_has_the_stated_size_the_words_of_a_task_and_no_effect_on_global_chance():
    own = load_local("tiny?words=webshop&seed=3", device="cpu")
    assert own.tokenizer.encode(" dollars") != load_local("tiny", device="cpu").tokenizer.encode(" dollars")
    assert own.model.config.vocab_size == len(own.tokenizer)
    before = torch.get_rng_state()
    load_local("tiny", device="cpu")
    assert torch.equal(before, torch.get_rng_state())
    small, large = (load_local(name, device="cpu").model.num_parameters() for name in ("tiny", "tiny:10m"))
    assert 2e6 < small < 3e6
    assert 9e6 < large < 11e6


@pytest.mark.parametrize("name", ["tiny", "random", "oracle", "demonstrator", "null", "human", "python:os.path:join"])
def test_every_kind_is_a_policy_with_a_session(name):
    made = load_policy(name, device="cpu")
    assert isinstance(made, Policy)
    assert made.name == name
    session: Session = made.session()
    assert len(session) == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt", "unknown policy 'gpt'; choose one of tiny"),
        ("tiny:9z", "unknown model tiny:9z; choose one of tiny, tiny:1m, tiny:10m"),
        ("tiny-vl:9", "unknown model tiny-vl:9; choose one of tiny-vl, tiny-vl:4m"),
        ("tiny?sed=3", "the options after the question mark are seed=N"),
        ("tiny?seed=x", "seed=N"),
        ("tiny?seed=1&colour=2", "seed=N"),
        ("tiny-vl?words=webshop", "seed=N"),
        (
            "tiny?words=../load",
            "unknown tokenizer '../load'; choose one of chess, desktop, python_math, tiny, webshop, wordle",
        ),
        ("http:", "is not an endpoint or program"),
        ("cmd:", "is not an endpoint or program"),
        ("cmd:'", "cannot be split into words"),
        ("http://localhost:8000/v1", "names no model: append it to the address"),
        ("hf:", "a folder or a name"),
        ("hf", "'hf' names no model; write hf:FOLDER or hf:NAME"),
        ("hf?seed=1", "'hf?seed=1' names no model"),
        ("smollm2:", "smollm2 has one size and no options; write smollm2"),
        ("smollm2?seed=3", "smollm2 has one size and no options"),
        ("python:nowhere:f", "cannot be imported"),
        ("python:os:sep", "is not a function but str"),
    ],
)
def test_a_wrong_name_is_refused_with_what_to_do(name, message):
    assert_refused(name, re.escape(message))


def assert_refused(name: str, pattern: str, **settings: object) -> None:
    """Loading a policy fails with a message of one line."""
    with pytest.raises(PolicyError, match=pattern) as caught:
        load_policy(name, **settings)
    assert "\n" not in str(caught.value)


def test_an_endpoint_is_sent_its_sampling_or_refuses_it():
    with closing(load_policy("http://localhost/v1#m", sampling=Sampling(temperature=0.3, max_tokens=7))) as made:
        body = made.provider.dialect.body(CONVERSATION)
    assert (body["temperature"], body["max_tokens"]) == (0.3, 7)
    sampling = Sampling(top_p=0.9, stop=("x",))
    assert_refused("http://localhost/v1#m", r"leave out top_p=0.9, stop=\('x',\)", sampling=sampling)


@pytest.mark.parametrize("name", ["random", "http://localhost/v1#m", "smolm2", "run:folder", ""])
def test_what_has_no_weights_is_not_loaded_for_training(name):
    with pytest.raises(PolicyError, match="has no weights at hand; choose one of tiny, .*, hf:NAME_OR_PATH$"):
        load_local(name)


def test_saving_and_loading_show_no_bars(tmp_path, capfd):
    policy("qwen3").save(tmp_path)
    load_policy(f"hf:{tmp_path}")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("empty", [True, False])
def test_a_folder_without_a_whole_model_is_refused(tmp_path, empty):
    if not empty:
        policy("qwen3").save(tmp_path)
        weights = tmp_path / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
    assert_refused(f"hf:{tmp_path}", "without a causal language model")


@pytest.mark.parametrize("damage", ["", "[]", "{}", "cut", "kind", "merges"])
def test_a_broken_tokenizer_file_is_one_line(tmp_path, damage):
    policy("qwen3").save(tmp_path)
    file = tmp_path / "tokenizer.json"
    whole = file.read_text()
    other = {"cut": whole[: len(whole) // 2], "kind": whole.replace('"BPE"', '"ABC"'), "merges": bad_merges(whole)}
    file.write_text(other.get(damage, damage))
    assert_refused(f"hf:{tmp_path}", "the tokenizer cannot be read")


def bad_merges(content: str) -> str:
    tokenizer = json.loads(content)
    tokenizer["model"]["merges"] = [["no", "such"]]
    return json.dumps(tokenizer)


def test_a_name_that_is_not_here_says_that_it_is_offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = "hf:nobody/nothing is not a folder and is not in the local cache (HF_HUB_OFFLINE is set)"
    assert_refused("hf:nobody/nothing", re.escape(message))


def test_a_model_without_a_chat_template_is_refused(tmp_path):
    model("qwen3").save_pretrained(tmp_path)
    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer("qwen3").backend_tokenizer)
    bare.save_pretrained(tmp_path)
    assert_refused(f"hf:{tmp_path}", "no chat template")


CODE = """
import pathlib
from transformers import PretrainedConfig
pathlib.Path("{flag}").touch()
class Config(PretrainedConfig):
    model_type = "planted"
"""


def test_code_in_a_models_folder_runs_only_by_an_option(tmp_path, monkeypatch):
    folder, flag = tmp_path / "model", tmp_path / "flag"
    policy("qwen3").save(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "planted", "auto_map": {"AutoConfig": "planted.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "planted.py").write_text(CODE.format(flag=flag))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on standard input"))
    assert_refused(f"hf:{folder}", re.escape(f"hf:{folder}?trust_remote_code=1 runs it"))
    assert not flag.exists()
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    # only its configuration is planted
    assert_refused(f"hf:{folder}?trust_remote_code=1", "without a causal language model")
    assert flag.exists()


def test_loading_scripted_policies_loads_no_torch():
    script = (
        "import sys; from lmgym.policy.load import load_policy as f; f('oracle'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_tokenizer_too_large_for_its_model_and_an_unknown_precision_are_refused():
    with pytest.raises(PolicyError, match="do not belong together"):
        LocalPolicy(tiny_model(vocab=300), tokenizer("tiny"), name="x")
    assert_refused("tiny", "unknown dtype 'int4'; choose one of", dtype="int4")
