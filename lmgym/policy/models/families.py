"""How families of vision-language models of the transformers library take pictures: by their own image processors.

Those that work on Pillow are taken whether torchvision is installed or not, so that the same picture makes the same
pixels everywhere. Processors as a whole would not load without torchvision, which only their videos need.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lmgym.errors import PolicyError
from lmgym.policy.models.vision import Sight, Vision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL.Image import Image

GRIDS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
TILES = ("idefics3", "smolvlm")
AROUND, WHOLE = "<fake_token_around_image>", "<global-img>"  # how both families of tiles write them


@dataclass(frozen=True)
class GridVision:
    """Pictures of any size as grids of patches, whose rows and columns are positions: the Qwen-VL models."""

    token: int
    written: str
    processor: Any
    turned: bool = True

    @property
    def settings(self) -> str:
        """Those of the image processor."""
        return str(self.processor.to_json_string())

    def look(self, digest: str, picture: Image) -> Sight:
        """The picture as patches."""
        made = _processed(self.processor, digest, images=[picture])
        _, height, width = made["image_grid_thw"][0].tolist()
        grid = (height // self.processor.merge_size, width // self.processor.merge_size)
        places = grid[0] * grid[1]
        inputs = {name: made[name] for name in ("pixel_values", "image_grid_thw")}
        return Sight(digest, self.written * places, places, inputs, grid)

    def inputs(self, sights: Sequence[Sight]) -> dict[str, Tensor]:
        """Patches of all pictures one after another, and the grids."""
        names = ("pixel_values", "image_grid_thw")
        return {name: torch.cat([sight.inputs[name] for sight in sights]) for name in names}

    def save(self, folder: Path) -> None:
        """Write the settings of the image processor."""
        self.processor.save_pretrained(folder)


@dataclass(frozen=True)
class TileVision:
    """Pictures as one or more tiles of one size, each with the same number of tokens: Idefics3 and SmolVLM."""

    token: int
    written: str
    processor: Any
    each: int  # tokens of a tile
    turned: bool = False

    @property
    def settings(self) -> str:
        """Those of the image processor, and the tokens of a tile."""
        return f"{self.each}\n{self.processor.to_json_string()}"

    def look(self, digest: str, picture: Image) -> Sight:
        """The picture as tiles, the last of them all of it."""
        made = _processed(self.processor, digest, images=[[picture]], return_row_col_info=True)
        rows, columns = made["rows"][0][0], made["cols"][0][0]
        words = self._words(rows, columns)
        inputs = {name: made[name] for name in ("pixel_values", "pixel_attention_mask")}
        return Sight(digest, words, self.each * made["pixel_values"].shape[1], inputs)

    def _words(self, rows: int, columns: int) -> str:
        """Tiles row by row, each after its name, and the whole; the whole alone where nothing was cut."""
        tile = self.written * self.each
        lines = [
            "".join(f"{AROUND}<row_{row}_col_{column}>{tile}" for column in range(1, columns + 1)) + "\n"
            for row in range(1, rows + 1)
        ]
        return "".join([*lines, "\n" if lines else "", f"{AROUND}{WHOLE}{tile}{AROUND}"])

    def inputs(self, sights: Sequence[Sight]) -> dict[str, Tensor]:
        """Tiles (1, n, 3, S, S) of all pictures, and which of their pixels are real."""
        names = ("pixel_values", "pixel_attention_mask")
        return {name: torch.cat([sight.inputs[name] for sight in sights], dim=1) for name in names}

    def save(self, folder: Path) -> None:
        """Write the settings of the image processor."""
        self.processor.save_pretrained(folder)


def sees(config: Any) -> bool:
    """Whether a model with this configuration is of a family whose pictures are known here."""
    return config.model_type in (*GRIDS, *TILES)


def vision_of(config: Any, tokenizer: Any, path: str) -> Vision:
    """How the model of such a family in `path` takes pictures."""
    from transformers import AutoImageProcessor

    load: Any = AutoImageProcessor.from_pretrained
    processor = load(path, backend="pil")
    token = int(config.image_token_id)
    written = str(tokenizer.convert_ids_to_tokens(token))
    if config.model_type in GRIDS:
        return GridVision(token, written, processor)
    seen = config.vision_config
    return TileVision(token, written, processor, (seen.image_size // seen.patch_size // config.scale_factor) ** 2)


def _processed(processor: Any, digest: str, **more: Any) -> Any:
    try:
        return processor(return_tensors="pt", **more)
    except ValueError as error:  # too narrow, too small
        raise PolicyError(f"the model's processor refuses the picture {digest}: {error}") from error
