"""The embedded vision-language model: `tiny` with a small convolutional encoder, made in code without a download.

A picture of any size is shrunk to a fixed square and always costs the same tokens. The encoder sees coordinates beside
colours, because convolutions alone do not know positions, and pointing at things is what such a model is for.
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

from lmgym.policy.models.tiny import ModelSize, config_fields, initialise, size_named, tiny_tokenizer
from lmgym.policy.models.vision import PreparedPicture

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
WAVES = 4  # octaves of the encoder's coordinates


@dataclass(frozen=True, kw_only=True)
class VisionModelSize(ModelSize):
    """Dimensions of an embedded vision-language model."""

    side: int  # pixels of the square that every picture is shrunk to


SIZES = {
    # 0.9 M parameters, 16 tokens a picture
    "": VisionModelSize(layers=2, hidden=128, heads=2, kv_heads=2, inner=352, side=64),
    "4m": VisionModelSize(layers=3, hidden=256, heads=4, kv_heads=2, inner=704, side=128),  # 3.8 M, 64 tokens
    "15m": VisionModelSize(layers=4, hidden=512, heads=8, kv_heads=2, inner=1152, side=128),  # 14.8 M, 64 tokens
}


class TinyVlConfig(Qwen3Config):  # type: ignore[no-untyped-call]  # of the library's hook for subclasses
    """The configuration of the language model and its encoder."""

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
        """Return a map (N, C, h, w) of the same shape."""
        out: Tensor = x + self.conv(F.gelu(self.norm(x)))
        return out


class Encoder(nn.Module):
    """An encoder of pixels (N, 3, S, S) in [0, 1] to tokens (N, (S / 16)^2, H), row by row."""

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
        """Return the tokens of pictures."""
        where = coordinates(pixels.shape[-1], pixels.device).to(pixels.dtype)[None]
        x = self.stem(2 * pixels - 1) + self.where(where)
        x = self.out(self.norm(self.layers(x)))
        tokens: Tensor = x.flatten(2).transpose(1, 2) + self.places.weight
        return tokens


def coordinates(side: int, device: torch.device) -> Tensor:
    """Return sines and cosines (4 WAVES, S, S) of both coordinates of each pixel, by octaves from half a wave."""
    at = (torch.arange(side, device=device) + 0.5) / side
    angle = at * torch.pi * 2.0 ** torch.arange(WAVES, device=device)[:, None]
    waves = torch.cat((angle.sin(), angle.cos()))  # (2 WAVES, S)
    down, across = waves[:, :, None].expand(-1, -1, side), waves[:, None].expand(-1, side, -1)
    return torch.cat((down, across))


class TinyVl(Qwen3ForCausalLM):  # type: ignore[no-untyped-call]
    """A Qwen3 with the encoder's tokens in place of placeholders."""

    config_class = TinyVlConfig

    def __init__(self, config: TinyVlConfig) -> None:
        super().__init__(config)
        self.eyes = Encoder(config.side, config.hidden_size)

    def embed_pictures(self, pictures: Sequence[PreparedPicture]) -> Tensor:
        """Return the embeddings (n, H) of all tokens of pictures, in order; each picture is encoded once."""
        order = {digest: number for number, digest in enumerate(dict.fromkeys(p.digest for p in pictures))}
        pixels = {picture.digest: picture.inputs["pixels"] for picture in pictures}
        with torch.autocast(self.device.type, enabled=False):
            tokens = self.eyes(torch.stack([pixels[digest] for digest in order]).to(self.device).to(self.dtype) / 255)
        return tokens[[order[picture.digest] for picture in pictures]].flatten(0, 1)  # type: ignore[no-any-return]

    def forward(self, input_ids: Any = None, *, pixels: Tensor | None = None, **more: Any) -> Any:
        """Run the language model; `pixels` (n, 3, S, S) in 0 to 255 are the pictures of all rows, in order."""
        if pixels is not None:
            inputs = self.get_input_embeddings()(input_ids)
            tokens = self.eyes(pixels.to(self.dtype) / 255).flatten(0, 1).to(inputs.dtype)
            placeholders = (input_ids == self.config.picture_token_id)[..., None].expand_as(inputs)
            return super().forward(inputs_embeds=inputs.masked_scatter(placeholders, tokens), **more)
        return super().forward(input_ids=input_ids, **more)


@dataclass(frozen=True)
class TinyVision:
    """The vision of a TinyVl."""

    token: int
    side: int
    template_text: str = PICTURE
    grid_positions: bool = False

    @property
    def settings(self) -> str:
        """Side of the square in pixels."""
        return str(self.side)

    def prepare(self, digest: str, picture: Image) -> PreparedPicture:
        """Shrink a picture to the square."""
        small = np.asarray(picture.resize((self.side, self.side), resample=2))  # bilinear
        tokens = (self.side // SHRINK) ** 2
        pixels = torch.from_numpy(small.copy()).permute(2, 0, 1).contiguous()
        return PreparedPicture(digest, PICTURE * tokens, tokens, {"pixels": pixels})

    def inputs(self, pictures: Sequence[PreparedPicture]) -> dict[str, Tensor]:
        """Return all pictures in one tensor."""
        return {"pixels": torch.stack([picture.inputs["pixels"] for picture in pictures])}

    def save(self, folder: Path) -> None:
        """Write nothing: the model's configuration has all settings."""


def tiny_vl_model(size: str = "", *, tokenizer: PreTrainedTokenizerBase, seed: int = 0) -> TinyVl:
    """Make a model of `SIZES` in fp32 with weights from `seed`."""
    dims = size_named(SIZES, size, "tiny-vl")
    token: Any = tokenizer.convert_tokens_to_ids(PICTURE)
    config = TinyVlConfig(**config_fields(dims, vocab=len(tokenizer)), side=dims.side, picture_token_id=token)
    with torch.random.fork_rng(devices=[]):
        model = TinyVl(config)
    initialise(model, seed)
    return model


def tiny_vision(config: Any) -> TinyVision:
    """Return the vision of a model with this TinyVlConfig."""
    return TinyVision(token=config.picture_token_id, side=config.side)


def tiny_vl_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of `tiny` with a placeholder for pictures."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": [PICTURE]}, replace_extra_special_tokens=False)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def register() -> None:
    """Register the model with the transformers library, which then loads it by its configuration."""
    AutoConfig.register(TinyVlConfig.model_type, TinyVlConfig, exist_ok=True)
    AutoModelForCausalLM.register(TinyVlConfig, TinyVl, exist_ok=True)
