"""SWERepair: find and repair a bug in a small Python repository, in a sandbox, judged by its tests."""

from lmgym.env.spec import TaskSpec

TRAIN = 1_000_000  # instances are made when they are first opened
SPEC = TaskSpec(
    id="lmgym/SWERepair-v0",
    entry_point="lmgym.tasks.swe_repair.env:SWERepair",
    summary="Repair a bug in a small Python repository from an issue; its tests decide, in a fresh sandbox.",
    max_turns=40,
    answer_tokens=1024,
    splits={"train": TRAIN, "test": 52, "pypi": 0},  # the sources of pypi are fetched: they may be missing
    held_out=("pypi",),
    score="1 when all tests that the bug broke pass again and no other test fails",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    extras=("swe",),
    player="thread",
    source="packages of our own, in the split pypi six libraries from PyPI (MIT, BSD-3-Clause); bugs by the procedural "
    "families of SWE-smith (MIT, arXiv 2504.21798)",
    goldens="outcome",
    runs_code=True,
    sandboxed=True,
    public={
        "protocol": ("bash", "tools", "r2e"),
        "level": ("all", "easy", "medium", "hard"),
        "rewards": ("sparse", "dense"),
    },
)
