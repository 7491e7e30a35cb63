"""The embedded model with eyes: `tiny` behind a small convolutional encoder, made in code. No download.

A picture of any size is shrunk to a fixed square, so it always costs the same tokens, and where something stands is
told as a share of the sides. The encoder sees coordinates beside colours: convolutions alone cannot tell where they
are, and pointing at things is what such a model is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from lmgym.policy.models.tiny import Size, fields_of, initialise, known_size, tiny_tokenizer
from lmgym.policy.models.vision import Sight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL.Image import Image
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

PICTURE = "<|picture|>"
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|picture|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    "{% if message.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SHRINK = 16  # pixels of a side that become one token
WAVES = 4  # octaves of the coordinates that the encoder is given


@dataclass(frozen=True, kw_only=True)
class Sighted(Size):
    """Dimensions of an embedded model with eyes."""

    side: int  # pixels of the square that every picture is shrunk to


SIZES = {
    "": Sighted(layers=2, hidden=128, heads=2, kv_heads=2, inner=352, side=64),  # 0.9 M parameters, 16 tokens a picture
    "4m": Sighted(layers=3, hidden=256, heads=4, kv_heads=2, inner=704, side=128),  # 3.8 M, 64 tokens
    "15m": Sighted(layers=4, hidden=512, heads=8, kv_heads=2, inner=1152, side=128),  # 14.8 M, 64 tokens
}


class TinyVlConfig(Qwen3Config):  # type: ignore[no-untyped-call]  # of the library's hook for subclasses
    """That of the language model, and what its eyes see."""

    model_type = "tiny_vl"
    side: int = 128  # pixels of the square that every picture is shrunk to
    picture_token_id: int = 0


class Residual(nn.Module):
    """A convolution over a normalised map, added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, width)
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, C, h, w) to the same shape."""
        out: Tensor = x + self.conv(F.gelu(self.norm(x)))
        return out


class Eyes(nn.Module):
    """Pixels (N, 3, S, S) in [0, 1] to tokens (N, (S / 16)^2, H), row by row."""

    def __init__(self, side: int, hidden: int) -> None:
        super().__init__()
        widths = (hidden // 4, hidden // 2, hidden)
        self.stem = nn.Conv2d(3, widths[0], 4, stride=4)
        self.where = nn.Conv2d(4 * WAVES, widths[0], 4, stride=4, bias=False)
        self.layers = nn.Sequential(
            Residual(widths[0]),
            nn.Conv2d(widths[0], widths[1], 2, stride=2),
            Residual(widths[1]),
            nn.Conv2d(widths[1], widths[2], 2, stride=2),
            Residual(widths[2]),
        )
        self.norm = nn.GroupNorm(1, widths[2])
        self.out = nn.Conv2d(widths[2], hidden, 1)
        self.places = nn.Embedding((side // SHRINK) ** 2, hidden)

    def forward(self, pixels: Tensor) -> Tensor:
        """Tokens of pictures."""
        where = coordinates(pixels.shape[-1], pixels.device).to(pixels.dtype)[None]  # the same for all: computed once
        x = self.stem(2 * pixels - 1) + self.where(where)
        x = self.out(self.norm(self.layers(x)))
        tokens: Tensor = x.flatten(2).transpose(1, 2) + self.places.weight
        return tokens


def coordinates(side: int, device: torch.device) -> Tensor:
    """Sines and cosines of both coordinates of each pixel, from a half wave a side up by octaves; (4 WAVES, S, S)."""
    at = (torch.arange(side, device=device) + 0.5) / side
    angle = at * torch.pi * 2.0 ** torch.arange(WAVES, device=device)[:, None]
    waves = torch.cat((angle.sin(), angle.cos()))  # (2 WAVES, S)
    down, across = waves[:, :, None].expand(-1, -1, side), waves[:, None].expand(-1, side, -1)
    return torch.cat((down, across))


class TinyVl(Qwen3ForCausalLM):  # type: ignore[no-untyped-call]
    """A Qwen3 whose placeholders are what its eyes see."""

    config_class = TinyVlConfig

    def __init__(self, config: TinyVlConfig) -> None:
        super().__init__(config)
        self.eyes = Eyes(config.side, config.hidden_size)

    def see(self, sights: Sequence[Sight]) -> Tensor:
        """Embeddings (n, H) of all places of pictures, in order; each picture is encoded once."""
        order = {digest: number for number, digest in enumerate(dict.fromkeys(sight.digest for sight in sights))}
        pixels = {sight.digest: sight.inputs["pixels"] for sight in sights}
        with torch.autocast(self.device.type, enabled=False):
            tokens = self.eyes(torch.stack([pixels[digest] for digest in order]).to(self.device).to(self.dtype) / 255)
        return tokens[[order[sight.digest] for sight in sights]].flatten(0, 1)  # type: ignore[no-any-return]

    def forward(self, input_ids: Any = None, *, pixels: Tensor | None = None, **more: Any) -> Any:
        """The language model's pass; `pixels` (n, 3, S, S) in 0 to 255 are the pictures of all rows, in order."""
        if pixels is not None:
            inputs = self.get_input_embeddings()(input_ids)
            tokens = self.eyes(pixels.to(self.dtype) / 255).flatten(0, 1).to(inputs.dtype)
            shown = (input_ids == self.config.picture_token_id)[..., None].expand_as(inputs)
            return super().forward(inputs_embeds=inputs.masked_scatter(shown, tokens), **more)
        return super().forward(input_ids=input_ids, **more)


@dataclass(frozen=True)
class TinyVision:
    """How it takes pictures."""

    token: int
    side: int
    written: str = PICTURE
    turned: bool = False

    @property
    def settings(self) -> str:
        """Pixels of the square."""
        return str(self.side)

    def look(self, digest: str, picture: Image) -> Sight:
        """The picture shrunk to the square."""
        small = np.asarray(picture.resize((self.side, self.side), resample=2))  # bilinear, over all that it covers
        places = (self.side // SHRINK) ** 2
        pixels = torch.from_numpy(small.copy()).permute(2, 0, 1).contiguous()
        return Sight(digest, PICTURE * places, places, {"pixels": pixels})

    def inputs(self, sights: Sequence[Sight]) -> dict[str, Tensor]:
        """All pictures in one tensor."""
        return {"pixels": torch.stack([sight.inputs["pixels"] for sight in sights])}

    def save(self, folder: Path) -> None:
        """Everything is in the model's configuration."""


def tiny_vl_model(size: str = "", *, tokenizer: PreTrainedTokenizerBase, seed: int = 0) -> TinyVl:
    """A model of `SIZES`, weights from `seed`, in fp32."""
    dims = known_size(SIZES, size, "tiny-vl")
    token: Any = tokenizer.convert_tokens_to_ids(PICTURE)
    config = TinyVlConfig(**fields_of(dims, vocab=len(tokenizer)), side=dims.side, picture_token_id=token)
    with torch.random.fork_rng(devices=[]):
        model = TinyVl(config)
    initialise(model, seed)
    return model


def tiny_vision(config: Any) -> TinyVision:
    """How a model with this TinyVlConfig takes pictures."""
    return TinyVision(token=config.picture_token_id, side=config.side)


def tiny_vl_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of `tiny` with a placeholder for pictures."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": [PICTURE]}, replace_extra_special_tokens=False)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def register() -> None:
    """Let the transformers library load such models by their configuration."""
    AutoConfig.register(TinyVlConfig.model_type, TinyVlConfig, exist_ok=True)
    AutoModelForCausalLM.register(TinyVlConfig, TinyVl, exist_ok=True)
