"""TextWorld: small worlds of rooms, doors, containers and keys, generated and played by the TextWorld engine."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

_ENV = "lmgym.tasks.textworld.env"
_SPLITS = {"train": 5_000, "test": 500}
_FEWER = {**_SPLITS, "test": 100}  # as many as the guide plays
_PUBLIC: dict[str, range | tuple[str | bool, ...]] = {
    "goal": ("detailed", "brief", "none"),
    "rewards": ("sparse", "dense"),
    "view": ("feedback", "state"),
    "instructions": (True, False),
}
SPEC = TaskSpec(
    id="lmgym/TextWorld-v0",
    entry_point=f"{_ENV}:Custom",
    summary="Follow a quest of four steps in a generated world of two rooms and at least three objects (w2-o3-q4).",
    max_turns=12,
    splits=_SPLITS,
    score="1 when the quest is completed",
    references={
        "null": 0.0,
        "random": "0.06 (admissible commands, first 100 of test)",
        "oracle": 1.0,
        "Qwen2.5-1.5B after PPO": "0.88 (arXiv 2510.01132)",
    },
    extras=("textworld",),
    player="process",
    source="games generated at first use by TextWorld 1.7 (MIT; Côté et al. 2018, arXiv 1806.11532)",
    public={"rooms": range(1, 11), "objects": range(1, 13), "quest": range(1, 9), **_PUBLIC},
)


def _sized(rooms: int, objects: int, quest: int, published: dict[str, str]) -> TaskSpec:
    return replace(
        SPEC,
        id=f"lmgym/TextWorldW{rooms}O{objects}Q{quest}-v0",
        summary=f"Follow a quest of {quest} steps in {rooms} rooms with at least {objects} objects "
        f"(w{rooms}-o{objects}-q{quest}).",
        max_turns=12 if rooms == 2 else 24,
        references={"null": 0.0, "oracle": 1.0, **published},
        splits=_FEWER,
        options={"rooms": rooms, "objects": objects, "quest": quest},
    )


W8O3Q4 = _sized(8, 3, 4, {})
W2O12Q4 = _sized(2, 12, 4, {})
W8O12Q4 = _sized(8, 12, 4, {"Qwen2.5-1.5B after PPO": "0.51 (arXiv 2510.01132)"})
W4O6Q8 = _sized(4, 6, 8, {"Qwen2.5-1.5B after PPO": "0.59 (arXiv 2510.01132)"})
COIN = replace(
    SPEC,
    id="lmgym/TextWorldCoin-v0",
    entry_point=f"{_ENV}:Coin",
    summary="Explore ten rooms, half of them dead ends, and take the coin.",
    max_turns=30,
    splits=_FEWER,
    score="1 when the coin is taken",
    public={"level": (*range(1, 21), *range(101, 121), *range(201, 221)), **_PUBLIC},
    references={"null": 0.0, "oracle": 1.0},
)
TREASURE = replace(
    SPEC,
    id="lmgym/TextWorldTreasure-v0",
    entry_point=f"{_ENV}:Treasure",
    summary="Find the named object in ten rooms with containers; taking the wrong one loses.",
    max_turns=40,
    splits=_FEWER,
    score="1 when the right object is taken",
    public={"level": range(1, 21), **_PUBLIC},
    references={"null": 0.0, "oracle": 1.0},
)
COOKING = replace(
    SPEC,
    id="lmgym/TextWorldCooking-v0",
    entry_point=f"{_ENV}:Cooking",
    summary="Find the kitchen, read the recipe, fetch, cut and cook two ingredients, eat; a mistake loses.",
    max_turns=40,
    splits={"train": 5_000, "valid": 500, "test": 100},
    score="share of the game's points; 1 when the meal is eaten",
    public={
        "recipe": range(1, 6),
        "go": (1, 6, 9, 12),
        **dict.fromkeys(("opens", "cook", "cut"), (True, False)),
        **_PUBLIC,
    },
    references={"null": 0.0, "oracle": 1.0},
)
SIMPLE = replace(
    SPEC,
    id="lmgym/TextWorldSimple-v0",
    entry_point=f"{_ENV}:Simple",
    summary="Leave the locked bedroom, find the food in a house of six rooms, put it on the stove; eating it loses.",
    max_turns=24,
    splits=_FEWER,
    score="1 when the food is on the stove",
    public=_PUBLIC,
    references={"null": 0.0, "oracle": 1.0},
)
VARIANTS = (W8O3Q4, W2O12Q4, W8O12Q4, W4O6Q8, COIN, TREASURE, COOKING, SIMPLE)
