"""Vision of model families in the transformers library, by their own image processors.

The Pillow versions of the processors are used whether torchvision is installed or not, so that the same picture makes
the same pixels everywhere. Complete processors need torchvision for their videos.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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
class ProcessorVision:
    """Vision by an image processor of the library, whose outputs `names` are concatenated over dimension `dim`."""

    token: int
    template_text: str
    processor: Any
    names: ClassVar[tuple[str, str]]
    dim: ClassVar[int]

    def inputs(self, pictures: Sequence[PreparedPicture]) -> dict[str, Tensor]:
        """Return the arguments of the model's own forward pass for these pictures."""
        return {name: torch.cat([picture.inputs[name] for picture in pictures], dim=self.dim) for name in self.names}

    def save(self, folder: Path) -> None:
        """Write the settings of the image processor."""
        self.processor.save_pretrained(folder)

    def _outputs(self, digest: str, **more: Any) -> Any:
        try:
            return self.processor(return_tensors="pt", **more)
        except ValueError as error:  # too narrow, too small
            raise PolicyError(f"the model's processor rejects picture {digest}: {error}") from error


@dataclass(frozen=True)
class GridVision(ProcessorVision):
    """Pictures of any size as grids of patches, whose rows and columns are positions: the Qwen-VL models."""

    grid_positions: bool = True
    names = ("pixel_values", "image_grid_thw")
    dim = 0

    @property
    def settings(self) -> str:
        """Settings of the image processor."""
        return str(self.processor.to_json_string())

    def prepare(self, digest: str, picture: Image) -> PreparedPicture:
        """Prepare a picture as patches."""
        outputs = self._outputs(digest, images=[picture])
        _, height, width = outputs["image_grid_thw"][0].tolist()
        grid = (height // self.processor.merge_size, width // self.processor.merge_size)
        tokens = grid[0] * grid[1]
        inputs = {name: outputs[name] for name in self.names}
        return PreparedPicture(digest, self.template_text * tokens, tokens, inputs, grid)


@dataclass(frozen=True)
class TileVision(ProcessorVision):
    """Pictures as tiles of one size, each with the same number of tokens: Idefics3 and SmolVLM."""

    tile_tokens: int
    grid_positions: bool = False
    names = ("pixel_values", "pixel_attention_mask")  # tiles (1, n, 3, S, S), and the masks of their real pixels
    dim = 1

    @property
    def settings(self) -> str:
        """Settings of the image processor, and the tokens of a tile."""
        return f"{self.tile_tokens}\n{self.processor.to_json_string()}"

    def prepare(self, digest: str, picture: Image) -> PreparedPicture:
        """Prepare a picture as tiles, the last of which shows all of it."""
        outputs = self._outputs(digest, images=[[picture]], return_row_col_info=True)
        rows, columns = outputs["rows"][0][0], outputs["cols"][0][0]
        tile = self.template_text * self.tile_tokens
        lines = [
            "".join(f"{AROUND}<row_{row}_col_{column}>{tile}" for column in range(1, columns + 1)) + "\n"
            for row in range(1, rows + 1)
        ]
        text = "".join([*lines, "\n" if lines else "", f"{AROUND}{WHOLE}{tile}{AROUND}"])
        inputs = {name: outputs[name] for name in self.names}
        return PreparedPicture(digest, text, self.tile_tokens * outputs["pixel_values"].shape[1], inputs)


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
