"""Visual search: a large picture is shown shrunk, and what is asked can only be read in a crop of it."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/VisualSearch-v0",
    entry_point="lmgym.tasks.visual_search.env:VisualSearch",
    summary="Read a letter on one of the tiles of a picture that is shown too small for it: crop, then answer.",
    max_turns=4,
    splits={"train": 1_000_000, "test": 1_000},
    score="1 when the answer is the letter on the tile that was asked for",
    references={"null": 0.0, "random": 0.26, "oracle": 1.0},
    source="generated; after V* and the crop protocols of MGPO and ViGoRL, whose pictures are not included",
    public={  # how large pictures are, and how many letters are kept drawn, goes with the id
        **{"protocol": ("tool", "mgpo", "vigorl"), "zoom": (2, 4, 8, 16), "crops": range(1, 11)},
        **{"least": range(1, 25), "tiles": range(1, 25), "colours": range(1, 9), "shapes": range(1, 4)},
        **{"coordinates": ("pixels", "thousand"), "blank": (True, False)},
    },
)
_MGPO = replace(
    SPEC,
    id="lmgym/VisualSearchMGPO-v0",
    summary="Visual search in two fixed turns: name a box, see it cut from the full picture, answer (MGPO).",
    max_turns=2,
    prose=True,
    references={"null": 0.0, "random": 0.28, "oracle": 1.0},
    options={"protocol": "mgpo"},
    source="generated; protocol of MGPO (arXiv 2507.05920)",
)
_VIGORL = replace(
    SPEC,
    id="lmgym/VisualSearchViGoRL-v0",
    answer_tokens=128,
    summary="Visual search with thoughts that point at coordinates, and a zoom tool (ViGoRL).",
    max_turns=6,
    prose=True,
    thoughts=True,
    references={"null": 0.0, "random": 0.27, "oracle": 1.0},
    options={"protocol": "vigorl", "crops": 5},
    source="generated; protocol and reward of ViGoRL (arXiv 2505.23678)",
)
_LARGE = replace(
    SPEC,
    id="lmgym/VisualSearchLarge-v0",
    summary="Visual search among up to 24 tiles, told apart by colour and shape, in a picture of 3,584 pixels a side.",
    max_turns=8,
    references={"null": 0.0, "random": 0.07, "oracle": 1.0},
    options={
        **{"side": 3584, "view": 448, "cells": 16, "margin": 7, "least": 8, "tiles": 24},
        **{"colours": 8, "shapes": 3, "letters": 16, "zoom": 4, "crops": 7},
    },
)
VARIANTS = (_MGPO, _VIGORL, _LARGE)
