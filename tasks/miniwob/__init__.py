"""MiniWoB++: small web pages with a goal, by accessibility tree, HTML or pixels, in virtual time."""

from dataclasses import replace

from lmgym.env.spec import Standard, TaskSpec
from lmgym.tasks.miniwob.pages import PAGES, SOLVED, TEST, TRAIN, TURNS

_ENV = "lmgym.tasks.miniwob.env"
SPEC = TaskSpec(
    id="lmgym/MiniWoB-v0",
    entry_point=f"{_ENV}:MiniWoB",
    summary="Reach the goal of a small web page; 62 pages to train on, 63 others to be tested on.",
    max_turns=10,
    splits={"train": 1_000 * len(TRAIN), "test": 100 * len(TEST)},
    score="the page's raw reward, 0 where it is negative; success is a raw reward of 1",
    references={"null": 0.0},
    extras=("web",),
    player="thread",
    source="pages of MiniWoB++ (MIT; Shi et al. 2017, Liu et al. 2018); split and actions as in BrowserGym",
    goldens="outcome",
    standard=Standard(instances=5 * len(TEST)),
)


def _page(name: str) -> TaskSpec:
    solved = name in SOLVED
    return replace(
        SPEC,
        id=f"lmgym/MiniWoB-{name}-v0",
        entry_point=f"{_ENV}:{'Solved' if solved else 'MiniWoB'}",
        summary=f"Reach the goal of the page {name}.",
        max_turns=TURNS.get(name, 10),
        splits={"train": 1_000, "test": 100},
        references={"null": 0.0, **({"oracle": 1.0} if solved else {})},
        options={"page": name},
        standard=Standard(instances=100),
        part_of=SPEC.id,
    )


VARIANTS = tuple(_page(name) for name in PAGES)
