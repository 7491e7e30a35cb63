"""WebForms: the portal of a small firm in a browser, and tasks in WebArena's layout on it or on the official sites."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

OWN = 33  # tasks in arena.json

_ENV = "lmgym.tasks.webforms.env"
SPEC = TaskSpec(
    id="lmgym/WebForms-v0",
    entry_point=f"{_ENV}:WebForms",
    summary="Sign in, buy, fill in forms of several pages and look things up at the portal of a small firm.",
    max_turns=25,
    splits={"train": 5_000, "test": 500},
    score="1 when the server keeps what it should and nothing else, and the answer or the report is right",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    extras=("web",),
    player="thread",
    source="generated; rules and pages of our own",
    goldens="outcome",
    public={
        "observe": ("axtree", "html", "none"),
        "pixels": ("none", "screenshot", "som"),
        "places": (True, False),
    },
)
_ARENA = "lmgym.tasks.webforms.arena"
_JUDGED = "1 when all evaluators of the task hold, its known holes closed; `scoring='official'` has them"
ARENA = replace(
    SPEC,
    id="lmgym/WebFormsArena-v0",
    entry_point=f"{_ARENA}:PortalArena",
    summary="Tasks in WebArena's layout at the portal: answers, addresses and what pages hold in the end.",
    max_turns=30,
    splits={"test": OWN},
    score=_JUDGED,
    options={"split": "test"},
)
OFFICIAL = replace(
    ARENA,
    id="lmgym/WebArena-v0",
    entry_point=f"{_ARENA}:WebArena",
    summary="WebArena's own tasks on sites that somebody runs, without those that need a judge.",
    splits={"test": 0},
    references={"GPT-4": "0.144 (arXiv 2307.13854)", "human": "0.782 (arXiv 2307.13854)"},
    deterministic=False,
    source="tasks and sites of WebArena (Zhou et al. 2023, arXiv 2307.13854; Apache-2.0), which are not included",
    held_out=("test",),
)
JUDGED = replace(
    OFFICIAL,
    id="lmgym/WebArenaJudged-v0",
    summary="WebArena's own tasks, those too whose answers a judge compares: give it by `judge=`.",
)
VARIANTS = (ARENA, OFFICIAL, JUDGED)
