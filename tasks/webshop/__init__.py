"""WebShop: buy in a simulated shop what an instruction asks for; a procedural shop, and the official one."""

from dataclasses import replace
from importlib.resources import files

from lmgym.env.spec import TaskSpec

_ACTIONS = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
_RULES = "rules and reward of WebShop (MIT; Yao et al. 2022, arXiv 2207.01206); engine, catalogue and words our own"
_PAPER: dict[str, float | str] = {
    "learned, IL": "success 0.29 (arXiv 2207.01206, 1.18 M products, human goals)",
    "rule": "success 0.096 (same)",
    "human expert": "success 0.59 (same)",
}
SPEC = TaskSpec(
    id="lmgym/WebShop-v0",
    entry_point="lmgym.tasks.webshop.env:WebShop",
    summary="Search, compare and buy in a shop of 1,000 generated products what an instruction asks for.",
    max_turns=15,
    splits={"train": 5059, "eval": 1000, "test": 500},
    score="the share of the wanted attributes, options and price limit that the purchase meets, times the kind's match",
    references={"null": 0.0, "random": 0.219, "first hit": 0.54, "demonstrator": 0.903, "oracle": 1.0},
    extras=("webshop",),
    instructions=_ACTIONS,
    source=_RULES,
    held_out=("test",),
    options={"mode": "brief", "length": 4, "nouns": "own"},
    public={
        "mode": ("brief", "text", "text_rich", "html"),
        "length": range(1, 51),
        "previous_observations": range(11),
        "previous_actions": range(11),
        **dict.fromkeys(("show_attributes", "prefixes", "instructions"), (True, False)),
    },
    public_info=("nouns", "verbose"),
)
HUMAN = replace(
    SPEC,
    id="lmgym/WebShopHuman-v0",
    summary="The same shop with instructions in varied human-style phrasing.",
    splits={"train": 2500, "eval": 1000, "test": 500},
    references={"null": 0.0, "random": 0.248, "first hit": 0.658, "demonstrator": 0.915, "oracle": 1.0},
    options={**SPEC.options, "goals": "human"},
)
OFFICIAL = replace(
    SPEC,
    id="lmgym/WebShopOfficial-v0",
    summary="The official products and human goals, from $WEBSHOP_DATA.",
    splits={"train": 0, "eval": 0, "test": 0},
    references={"null": 0.0, "oracle": "1 but for the goals that the card's command lists", **_PAPER},
    source=f"items_shuffle, items_ins_v2 and items_human_ins of WebShop (MIT) under $WEBSHOP_DATA; {_RULES}",
    options={"source": "official", "goals": "human"},
)
BROWSER = replace(
    SPEC,
    id="lmgym/WebShopBrowser-v0",
    entry_point="lmgym.tasks.webshop.browser:WebShopBrowser",
    summary="The same shop as a web site in Chromium, by accessibility tree, HTML or pictures.",
    max_turns=30,
    answer_tokens=64,
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    extras=("webshop", "web"),
    instructions="",  # the first page has them
    player="thread",
    options={"length": 10, "nouns": "own"},
    public={
        "observe": ("axtree", "html", "none"),
        "pixels": ("none", "screenshot", "som"),
        **dict.fromkeys(("places", "instructions"), (True, False)),
    },
    goldens="outcome",
)
VARIANTS = (HUMAN, OFFICIAL, BROWSER)
