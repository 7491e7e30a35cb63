"""The embedded model: a small Qwen3 made in code without a download, with a tokenizer trained on the tasks' text.

It is shallow and wide, because on a CPU the number of operations costs as much as their size. The weights depend on
the seed alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from lmgym.errors import PolicyError
from lmgym.policy.models.tokenizer_train import ASSISTANT, END, FOLDER, PAD, SYSTEM, USER

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
    "{% if message.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Dimensions of an embedded model."""

    layers: int
    hidden: int
    heads: int  # of queries, 64 wide
    kv_heads: int
    inner: int  # of the gated MLP
    context: int = 8192  # positions


SIZES = {
    "": ModelSize(layers=3, hidden=256, heads=4, kv_heads=2, inner=704),  # 2.7 M parameters
    "1m": ModelSize(layers=2, hidden=192, heads=3, kv_heads=1, inner=512),  # 1.2 M parameters
    "10m": ModelSize(layers=4, hidden=512, heads=8, kv_heads=2, inner=1152),  # 10.8 M
}


def tiny_model(size: str = "", *, vocab: int, seed: int = 0, changes: dict[str, Any] | None = None) -> PreTrainedModel:
    """Make a model of `SIZES` in fp32 with weights from `seed`; `changes` override configuration fields."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    fields = config_fields(size_named(SIZES, size, "tiny"), vocab=vocab) | (changes or {})
    with torch.random.fork_rng(devices=[]):  # construction draws from the global generator
        model = Qwen3ForCausalLM(Qwen3Config(**fields))
    initialise(model, seed)
    return model


Dimensions = TypeVar("Dimensions", bound=ModelSize)


def size_named(sizes: Mapping[str, Dimensions], size: str, kind: str) -> Dimensions:
    """Return the dimensions of `kind:size`; raise PolicyError for an unknown size."""
    if size not in sizes:
        names = ", ".join(f"{kind}:{name}" if name else kind for name in sizes)
        raise PolicyError(f"unknown model {kind}:{size}; choose one of {names}")
    return sizes[size]


def config_fields(dims: ModelSize, *, vocab: int) -> dict[str, Any]:
    """Return the fields of the Qwen3 configuration."""
    return {
        "vocab_size": vocab,
        "hidden_size": dims.hidden,
        "num_hidden_layers": dims.layers,
        "num_attention_heads": dims.heads,
        "num_key_value_heads": dims.kv_heads,
        "head_dim": 64,
        "intermediate_size": dims.inner,
        "max_position_embeddings": dims.context,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": 1,
    }


def initialise(model: PreTrainedModel, seed: int) -> None:
    """Draw normal weights of standard deviation 1/sqrt(fan in), with output projections scaled down by depth."""
    generator = torch.Generator().manual_seed(seed)
    depth = (2 * model.config.num_hidden_layers) ** -0.5
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim == 1:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
            elif "embed_tokens" in name or "places" in name:
                weight.normal_(0.0, 0.05, generator=generator)
            else:
                scale = depth if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                weight.normal_(0.0, scale * weight[0].numel() ** -0.5, generator=generator)


def tiny_tokenizer(words: str = "tiny") -> PreTrainedTokenizerFast:
    """Load a tokenizer of this package with its chat template; a turn costs two tokens beyond its words.

    `words` is "tiny", a vocabulary of many tasks, or the name of a task that has its own.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    if words not in names:
        raise PolicyError(f"unknown tokenizer {words!r}; choose one of {', '.join(names)}")
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=Tokenizer.from_file(str(FOLDER / f"{words}.json")),
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer
