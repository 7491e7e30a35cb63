"""Options and authored instances that a task cannot have: each is refused by a message that names the value."""

from __future__ import annotations

from typing import Any

import pytest

from lmgym.env.registry import build
from lmgym.errors import InstanceError

TYPES = "types are some of pick_and_place_simple"
CHESS = "choose stockfish, elo:1350 to elo:2850, skill:0 to skill:20, greedy or random"
TILE = "a tile takes 12 pixels of the view"
RECIPE = "recipe is 1 to 5, take up to recipe, go 1, 6, 9 or 12"
OPTIONS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "alfworld": [
        ({"goals": "human"}, "goals='human' needs the sentences of official games"),
        ({"source": "official"}, "unknown source 'official' .* choose procedural"),
        ({"source": "mine"}, "unknown source 'mine' .* choose procedural"),
        ({"types": ("cook",)}, TYPES),
        ({"types": ()}, TYPES),
    ],
    "car_dealer": [({"rewards": "cash"}, "choose fancy, revenue")],
    "chess": [({"opponent": name}, CHESS) for name in ("elo:1200", "skill:21", "elo", "stockfish:3", "")],
    "click_target": [
        ({"by": "shape"}, "by is colour or name; got 'shape'"),
        ({"cell": 31}, "cell is 32 or more; got 31"),
        ({"colours": 9}, "colours is 1 to 8; got 9"),
        ({"width": 20}, "got ScreenLevel.width=20"),
        ({"windows": 7}, "7 windows at scale 1 take 156 by 220 pixels"),
        ({"coordinates": "x"}, "unknown coordinates 'x' .* choose pixels, thousand"),
    ],
    "connect_four": [({"opponent": "minimax"}, "unknown opponent 'minimax' .* choose random, mcts:N")],
    "doctor": [({"budget": 1}, "choose 0, 2, 3, 4, 5, 6, 7, 8, 9, 10")],
    "frozen_lake": [({"protocol": "gem"}, "unknown protocol 'gem'"), ({"side": 20}, "3 to 8 tiles")],
    "guess_number": [({"highest": highest}, f"highest is 1 to .*; got {highest}") for highest in (0, -5, 10**30)],
    "kuhn_poker": [
        ({"opponent": "minimax"}, "unknown opponent 'minimax' for lmgym/KuhnPoker-v0; choose cfr, random"),
        ({"seat": "third"}, "unknown seat 'third'"),
    ],
    "leduc_poker": [({"reward": "chips"}, "unknown reward 'chips'")],
    "maze": [({"view": "all"}, "unknown view 'all'"), ({"rewards": "dense"}, "unknown rewards 'dense'")],
    "mini_hanabi": [
        ({name: value}, f"{name} is .* got {value}")
        for name, value in (("colors", 6), ("information", 9), ("lives", 0))
    ],
    "mint": [({"task": "Nothing-v0"}, "task='Nothing-v0'"), ({"k": 6}, "k=6")],
    "python_math": [
        *(({name: "x"}, f"unknown {name} 'x'") for name in ("protocol", "family", "tool", "state")),
        ({"level": 4}, "unknown level 4 .* choose 1, 2, 3"),
        ({"seconds": 0}, "seconds is above 0"),
    ],
    "recommender": [({"rewards": "sales"}, "choose session, clicks")],
    "retail_desk": [({"level": 5}, "choose 0, 1, 2, 3, 4")],
    "sokoban": [
        ({"protocol": "gem"}, "unknown protocol 'gem'"),
        ({"side": 4}, "side 5 to 8"),
        ({"boxes": 9}, "boxes 1 to 3"),
    ],
    "terminal": [({"protocol": "tmux"}, "choose bash, tools, r2e")],
    "text_nav": [({"view": "all"}, "unknown view 'all'")],
    "textworld": [
        ({"goal": "vague"}, "unknown goal 'vague' .* choose detailed, brief, none"),
        ({"rewards": "shaped"}, "unknown rewards 'shaped' .* choose sparse, dense"),
        ({"rooms": 21}, "rooms is 1 to 20"),
        ({"level": 1}, "unknown option 'level'"),
    ],
    "TextWorldCoin-v0": [({"level": 151}, "got 151")],
    "TextWorldCooking-v0": [({"go": 2}, RECIPE), ({"take": 3}, RECIPE)],
    "TextWorldTreasure-v0": [({"level": 31}, "got 31")],
    "tic_tac_toe": [({"opponent": "mcts:0"}, "unknown opponent 'mcts:0'")],
    "try_again": [({"level": 4}, "level is 1 to 3")],
    "visual_search": [
        ({"protocol": "other"}, "unknown protocol 'other' .* choose tool, mgpo, vigorl"),
        ({"side": 1000}, "side must be an even multiple of view"),
        ({"cells": 8}, TILE),  # a cell of 8 pixels has no room for a tile
        ({"letters": 17}, "letters is 1 to 16; got 17"),
        ({"shapes": 4}, "shapes is 1 to 3; got 4"),
        ({"least": 5}, "least is 1 to 2; got 5"),
        ({"zoom": 3}, "zoom is 2 or more and divides side=1024; got 3"),
        ({"margin": -1}, TILE),
        ({"coordinates": "inches"}, "unknown coordinates 'inches' .* choose pixels, thousand"),
    ],
    "WebShop-v0": [
        ({"mode": "braille"}, "unknown mode 'braille' .* choose text, text_rich, html, url, brief"),
        ({"goals": "inhuman"}, "unknown goals 'inhuman' .* choose synthetic, human"),
        ({"products": 10}, "has 500 to 100000 products; got products=10"),
        ({"length": 0}, "length is 1 or more"),
        ({"source": "official"}, "unknown source 'official' .* choose procedural"),
        ({"nouns": "x"}, "unknown nouns 'x' .* choose auto, spacy, own"),
    ],
    "WebShopBrowser-v0": [({"observe": "braille"}, "unknown observe 'braille' for .*; choose axtree")],
    "wordle": [({"colouring": "rainbow"}, "unknown colouring 'rainbow' .* choose lmrl, counting")],
}
FENS = ("nonsense", 4, "4k3/8/8/8/8/8/8/4K3 w - - 0 1", "6k1/5ppp/8/8/8/8/8/R3K3 b Q - 0 1")  # the last: Black on turn
WORDS: tuple[dict[str, Any], ...] = ({}, {"word": "zzzzz"}, {"word": 3}, {"words": "crane"})
INSTANCES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "ChessEndgames-v0": [({"fen": fen}, "fen|FEN|endgame") for fen in FENS],
    "ChessGreedy-v0": [({"fen": fen}, "fen|FEN|White") for fen in FENS],
    "maze": [
        ({"start": start}, r"\[row, column\]")
        for start in ([0, 0], [8, 6], "5, 6", None, [[1], [2]], [1.0, 1.0], [True, True])
    ],
    "textworld": [({"seed": -1}, r"\{'seed': n\} with 0 <= n")],
    "try_again": [({**instance}, '"question": ..., "answer": ...') for instance in ({}, {"question": "1 + 1 = ?"})],
    "twenty_questions": [({"word": "zebra"}, "one of its list")],
    "wordle": [
        ({**instance}, "one of its list")
        for instance in ({}, {"word": "zzzzz"}, {"word": 3}, {"word": ["crane"]}, {"words": "crane"})
    ],
}


def cases(table: dict[str, list[tuple[dict[str, Any], str]]]) -> list[Any]:
    return [
        pytest.param(task, values, message, id=f"{task}-{values}")
        for task, rows in table.items()
        for values, message in rows
    ]


@pytest.mark.parametrize(("task", "options", "message"), cases(OPTIONS))
def test_an_option_is_refused(task: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        build(task, **options)


@pytest.mark.parametrize(("task", "instance", "message"), cases(INSTANCES))
def test_an_authored_instance_is_refused(task: str, instance: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        build(task).reset(options={"instance": instance})
