"""Desktop: goals on a real desktop with Debian's applications, judged by the files and settings in the end."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Desktop-v0",
    entry_point="lmgym.tasks.desktop.env:DesktopTask",
    summary="Edit texts, sheets, documents and slides, manage files and use a terminal on a real desktop.",
    max_turns=25,
    splits={"train": 5_000, "test": 97},
    score="1 when files and settings are as the goal says and no other file changed, or an impossible goal is reported",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    extras=("gui",),
    player="thread",
    answer_tokens=64,
    concurrency=6,
    source="generated; goals of our own, applications of Debian",
    goldens="outcome",
    runs_code=True,
    sandboxed=True,
    public={
        "level": (0, 1, 2, 3),
        "applications": ("all", "light"),
        "observe": ("axtree", "names", "none"),
        "listed": (True, False),
        "pixels": ("none", "screenshot", "som"),
        "coordinates": ("pixel", "unit", "thousand"),
    },
)
OFFICIAL = replace(
    SPEC,
    id="lmgym/OSWorldOfficial-v0",
    entry_point="lmgym.tasks.desktop.official:OSWorldTask",
    summary="OSWorld's own tasks whose applications exist on this desktop, from its files.",
    max_turns=15,
    splits={"test": 0},
    score="the task's metrics, joined as the task says; 1 for FAIL if the task is infeasible",
    references={"GPT-4V": "0.1224 (arXiv 2404.07972)", "human": "0.7236 (arXiv 2404.07972)"},
    options={"split": "test"},
    deterministic=False,
    source="tasks and files of OSWorld (Xie et al. 2024, arXiv 2404.07972; Apache-2.0), which are not included",
    held_out=("test",),
    public={},
)
VARIANTS = (OFFICIAL,)
