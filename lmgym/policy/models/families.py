"""Vision of model families in the transformers library, by their own image processors.

The Pillow versions of the processors are used whether torchvision is installed or not, so that the same picture makes
the same pixels everywhere. Complete processors need torchvision for their videos.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lmgym.errors import PolicyError
from lmgym.policy.models.vision import PreparedPicture, Vision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL.Image import Image

GRIDS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
TILES = ("idefics3", "smolvlm")
AROUND, WHOLE = "<fake_token_around_image>", "<global-img>"  # tokens around a tile, and of the whole picture


@dataclass(frozen=True)
class GridVision:
    """Pictures of any size as grids of patches, whose rows and columns are positions: the Qwen-VL models."""

    token: int
    template_text: str
    processor: Any
    grid_positions: bool = True

    @property
    def settings(self) -> str:
        """Settings of the image processor."""
        return str(self.processor.to_json_string())

    def prepare(self, digest: str, picture: Image) -> PreparedPicture:
        """Prepare a picture as patches."""
        output = _processed(self.processor, digest, images=[picture])
        _, height, width = output["image_grid_thw"][0].tolist()
        grid = (height // self.processor.merge_size, width // self.processor.merge_size)
        tokens = grid[0] * grid[1]
        inputs = {name: output[name] for name in ("pixel_values", "image_grid_thw")}
        return PreparedPicture(digest, self.template_text * tokens, tokens, inputs, grid)

    def inputs(self, pictures: Sequence[PreparedPicture]) -> dict[str, Tensor]:
        """Return the patches of all pictures one after another, and the grids."""
        names = ("pixel_values", "image_grid_thw")
        return {name: torch.cat([picture.inputs[name] for picture in pictures]) for name in names}

    def save(self, folder: Path) -> None:
        """Write the settings of the image processor."""
        self.processor.save_pretrained(folder)


@dataclass(frozen=True)
class TileVision:
    """Pictures as tiles of one size, each with the same number of tokens: Idefics3 and SmolVLM."""

    token: int
    template_text: str
    processor: Any
    tile_tokens: int
    grid_positions: bool = False

    @property
    def settings(self) -> str:
        """Settings of the image processor, and the tokens of a tile."""
        return f"{self.tile_tokens}\n{self.processor.to_json_string()}"

    def prepare(self, digest: str, picture: Image) -> PreparedPicture:
        """Prepare a picture as tiles, the last of which shows all of it."""
        output = _processed(self.processor, digest, images=[[picture]], return_row_col_info=True)
        rows, columns = output["rows"][0][0], output["cols"][0][0]
        tile = self.template_text * self.tile_tokens
        lines = [
            "".join(f"{AROUND}<row_{row}_col_{column}>{tile}" for column in range(1, columns + 1)) + "\n"
            for row in range(1, rows + 1)
        ]
        text = "".join([*lines, "\n" if lines else "", f"{AROUND}{WHOLE}{tile}{AROUND}"])
        inputs = {name: output[name] for name in ("pixel_values", "pixel_attention_mask")}
        return PreparedPicture(digest, text, self.tile_tokens * output["pixel_values"].shape[1], inputs)

    def inputs(self, pictures: Sequence[PreparedPicture]) -> dict[str, Tensor]:
        """Return the tiles (1, n, 3, S, S) of all pictures, and the masks of their real pixels."""
        names = ("pixel_values", "pixel_attention_mask")
        return {name: torch.cat([picture.inputs[name] for picture in pictures], dim=1) for name in names}

    def save(self, folder: Path) -> None:
        """Write the settings of the image processor."""
        self.processor.save_pretrained(folder)


def supports(config: Any) -> bool:
    """Return True if the pictures of this model family are supported."""
    return config.model_type in (*GRIDS, *TILES)


def vision_of(config: Any, tokenizer: Any, path: str) -> Vision:
    """Return the vision of the supported model in `path`."""
    from transformers import AutoImageProcessor

    load: Any = AutoImageProcessor.from_pretrained
    processor = load(path, backend="pil", trust_remote_code=False)
    token = int(config.image_token_id)
    text = str(tokenizer.convert_ids_to_tokens(token))
    if config.model_type in GRIDS:
        return GridVision(token, text, processor)
    vision = config.vision_config
    return TileVision(token, text, processor, (vision.image_size // vision.patch_size // config.scale_factor) ** 2)


def _processed(processor: Any, digest: str, **more: Any) -> Any:
    try:
        return processor(return_tensors="pt", **more)
    except ValueError as error:  # too narrow, too small
        raise PolicyError(f"the model's processor rejects picture {digest}: {error}") from error
