"""Small random models of several architectures with the chat templates of their kin, made in code."""

import json
from dataclasses import dataclass
from functools import cache

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer

TEXT = [
    "You are in the middle of a room. You see a cabinet 4, a drawer 1, and a mug 12.",
    "go to cabinet 4\ntake the mug from drawer 1",
    "Nothing happens. On the countertop 2, you see nothing.",
    "user model assistant system think",
]

CHATML = """{%- if messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}{%- for message in messages %}{%- if message.role == 'user' %}<|im_start|>user
{{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}
{%- set words = message.content.split('</think>')[-1].lstrip('\\n') %}<|im_start|>assistant
{{ words }}<|im_end|>
{% endif %}{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

LLAMA = """{{ bos_token }}{%- for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>

{{ message.content | trim }}<|eot_id|>{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

GEMMA = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{%- endif %}
{%- for message in messages %}{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{%- endif %}
{%- set role = 'model' if message.role == 'assistant' else message.role %}{{ '<start_of_turn>' + role + '\n' }}
{{- message.content | trim }}{{ '<end_of_turn>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{%- endif %}"""

SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "max_position_embeddings": 4096,
    "initializer_range": 0.15,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}


@dataclass(frozen=True)
class Kind:
    """One architecture with one template."""

    template: str
    specials: tuple[str, ...]  # the first is padding, the second ends a turn
    ordinary: tuple[str, ...] = ()  # added tokens that are not special
    spiece: bool = False  # a vocabulary in the manner of sentencepiece


QWEN = Kind(CHATML, ("<|endoftext|>", "<|im_end|>", "<|im_start|>"), ("<think>", "</think>", "<tool_call>"))
KINDS = {
    "qwen2": QWEN,
    "qwen3": QWEN,
    "llama": Kind(
        LLAMA,
        ("<|pad|>", "<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>"),
    ),
    "gemma2": Kind(GEMMA, ("<pad>", "<end_of_turn>", "<bos>", "<start_of_turn>", "<eos>"), ("\n\n", "<table>"), True),
    "gemma3": Kind(GEMMA, ("<pad>", "<end_of_turn>", "<bos>", "<start_of_turn>", "<eos>"), ("\n\n", "<table>"), True),
}
NAMES = ("tiny", *KINDS)


@cache
def tokenizer(name: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a named kind."""
    return tiny_tokenizer() if name == "tiny" else tokenizer_of(KINDS[name])


def tokenizer_of(kind: Kind) -> PreTrainedTokenizerFast:
    """A new tokenizer of a kind, trained on TEXT."""
    backend = _spiece(kind) if kind.spiece else _byte_level(kind)
    backend.add_special_tokens(list(kind.specials))
    backend.add_tokens([AddedToken(text, normalized=False, special=False) for text in kind.ordinary])
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=kind.specials[0],
        eos_token=kind.specials[1],
        bos_token=kind.specials[2],
        additional_special_tokens=list(kind.specials[3:]),
    )
    made.chat_template = kind.template
    return made


def _byte_level(kind: Kind) -> Tokenizer:
    backend = Tokenizer(BPE(ignore_merges=True))
    backend.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend.train_from_iterator(
        TEXT,
        BpeTrainer(vocab_size=360, special_tokens=list(kind.specials), initial_alphabet=alphabet, show_progress=False),
    )
    return backend


def _spiece(kind: Kind) -> Tokenizer:
    """Control tokens stand in the model's own vocabulary, as in the originals."""
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    backend = Tokenizer(BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    specials = [*kind.specials, "<unk>", *kind.ordinary, *bytes_]
    backend.train_from_iterator(TEXT, BpeTrainer(vocab_size=520, special_tokens=specials, show_progress=False))
    merges = [tuple(pair) for pair in json.loads(backend.to_str())["model"]["merges"]]
    plain = Tokenizer(BPE(backend.get_vocab(), merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    plain.normalizer, plain.pre_tokenizer, plain.decoder = backend.normalizer, backend.pre_tokenizer, backend.decoder
    return plain


def model(name: str, *, seed: int = 0) -> PreTrainedModel:
    """A random model of the kind, in fp32."""
    vocab = len(tokenizer(name))
    if name == "tiny":
        return tiny_model(vocab=vocab, seed=seed)
    sliding = {"sliding_window": 24}
    makers = {
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL, vocab_size=vocab)),
        "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SMALL, vocab_size=vocab, tie_word_embeddings=True)),
        "llama": lambda: LlamaForCausalLM(
            LlamaConfig(**SMALL, vocab_size=vocab, attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3)
        ),
        "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SMALL, vocab_size=vocab, **sliding)),
        "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**SMALL, vocab_size=vocab, **sliding)),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = makers[name]()
        for parameter in made.parameters():  # biases and norms that matter
            if parameter.ndim == 1:
                parameter.data += 0.1 * torch.randn_like(parameter)
    return made


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def policy(name: str, **settings: object) -> LocalPolicy:
    """A LocalPolicy of the kind."""
    return LocalPolicy(model(name), tokenizer(name), name=f"test:{name}", **settings)
