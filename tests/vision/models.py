"""Small random vision-language models of several families with their image processors and templates, made in code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    SmolVLMImageProcessorPil,
)

from lmgym.policy.load import load_local
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from tests.policy.models import SMALL, Kind, tokenizer_of

FAMILIES = ("tiny-vl", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "idefics3", "smolvlm")
TEXT = {name: value for name, value in SMALL.items() if name != "head_dim" and not name.endswith("token_id")}
CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LISTS = (
    "<|im_start|>{% for message in messages %}{{ message.role | capitalize }}"
    "{% if message.content[0].type == 'image' %}{{ ':' }}{% else %}{{ ': ' }}{% endif %}"
    "{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% else %}<image>{% endif %}"
    "{% endfor %}{{ '<end_of_utterance>\n' }}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
GRID = Kind(
    CHAT,
    ("<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"),
)
TILE = Kind(
    LISTS,
    (
        *("<|endoftext|>", "<end_of_utterance>", "<|im_start|>"),
        *("<image>", "<fake_token_around_image>", "<global-img>"),
        *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)),
    ),
)


def grid(family: str, words: PreTrainedTokenizerFast) -> tuple[PreTrainedModel, object]:
    """A Qwen-VL model: patches of any picture, three axes of rotary positions."""
    ids = {name: words.convert_tokens_to_ids(f"<|{name}|>") for name in ("image_pad", "vision_start", "vision_end")}
    tokens = {
        "image_token_id": ids["image_pad"],
        "video_token_id": len(words) + 1,
        "vision_start_token_id": ids["vision_start"],
        "vision_end_token_id": ids["vision_end"],
    }
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    text = {**TEXT, "vocab_size": len(words) + 8, "tie_word_embeddings": False, "rope_parameters": rope}
    seen = {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64,
            "patch_size": 8}  # fmt: skip
    block = 16**2  # pixels of a token
    processor = Qwen2VLImageProcessorPil(patch_size=8, size={"shortest_edge": block, "longest_edge": 24 * block})
    if family == "qwen3_vl":
        rope["mrope_interleaved"] = True
        text["head_dim"] = 16
        seen |= {"depth": 3, "deepstack_visual_indexes": [0, 1], "num_position_embeddings": 16}
        config = Qwen3VLConfig(text_config=text, vision_config=seen, **tokens)
        return Qwen3VLForConditionalGeneration(config), processor
    if family == "qwen2_5_vl":
        seen |= {"window_size": 32, "fullatt_block_indexes": [1]}
        config = Qwen2_5_VLConfig(text_config=text, vision_config=seen, **tokens)
        return Qwen2_5_VLForConditionalGeneration(config), processor
    seen = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 8}
    config = Qwen2VLConfig(text_config=text, vision_config=seen, **tokens)
    return Qwen2VLForConditionalGeneration(config), processor


def tiles(family: str, words: PreTrainedTokenizerFast) -> tuple[PreTrainedModel, object]:
    """An Idefics3 or a SmolVLM: tiles of one size."""
    size = {"size": {"longest_edge": 64}, "max_image_size": {"longest_edge": 32}}
    text = {**TEXT, "vocab_size": len(words) + 8, "model_type": "llama", "pad_token_id": 0}
    seen = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
            "image_size": 32, "patch_size": 8}  # fmt: skip
    common = {"text_config": text, "vision_config": seen, "scale_factor": 2, "pad_token_id": 0,
              "image_token_id": words.convert_tokens_to_ids("<image>")}  # fmt: skip
    if family == "idefics3":
        return Idefics3ForConditionalGeneration(Idefics3Config(**common)), Idefics3ImageProcessorPil(**size)
    return SmolVLMForConditionalGeneration(SmolVLMConfig(**common)), SmolVLMImageProcessorPil(**size)


def saved(family: str, folder: Path) -> Path:
    """A model of the family in `folder`, as one is downloaded."""
    words = tokenizer_of(TILE if family in ("idefics3", "smolvlm") else GRID)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model, processor = (tiles if family in ("idefics3", "smolvlm") else grid)(family, words)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@cache
def _name(family: str, folder: Path) -> str:
    return family if family == "tiny-vl" else f"hf:{saved(family, folder / family)}"


def policy(family: str, folder: Path, **more: object) -> LocalPolicy:
    """The policy of a family; models are made once under `folder`."""
    return load_local(_name(family, folder), device="cpu", sampling=Sampling(max_tokens=6), **more)
