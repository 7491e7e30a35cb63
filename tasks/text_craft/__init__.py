"""TextCraft: craft an item from a list of recipes, some of which do not help, in the manner of ADaPT's task."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

_PUBLISHED = "AgentGym's 100 games: Qwen2.5-7B-Instruct 0.42, GRPO on it 0.89, ScalingInter-7B 0.91"
SPEC = TaskSpec(
    id="lmgym/TextCraft-v0",
    entry_point="lmgym.tasks.text_craft.env:TextCraft",
    summary="Craft an item from a list of recipes: find out what it takes, get the raw items and craft the parts.",
    max_turns=40,
    answer_tokens=64,
    splits={"train": 1_000_000, "test": 400},
    score="1 when the item of the goal is crafted",
    references={"null": 0.0, "random": "0.18 (400 test problems)", "oracle": 1.0},
    source="rules and commands of TextCraft (ADaPT, MIT, arXiv 2311.05772); our own items and recipe generator",
    public={"depth": range(5)},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/TextCraftOfficial-v0",
        entry_point="lmgym.tasks.text_craft.env:TextCraftOfficial",
        summary="TextCraft with Minecraft's own recipes, from $TEXTCRAFT_DATA.",
        splits={"train": 0, "test": 0},
        references={"null": 0.0, "oracle": 1.0, "published": _PUBLISHED},
        source="rules and order of goals of TextCraft (ADaPT, MIT, arXiv 2311.05772); published scores of "
        "AgentGym-RL (MIT); recipes of Minecraft 1.16.5, which are not shipped",
        public={},
    ),
)
