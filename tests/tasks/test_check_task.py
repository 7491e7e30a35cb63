"""Every task keeps the promises that `check_task` lists; `make check` covers those that need extra data as well."""

import pytest

from lmgym.env.registry import specs
from lmgym.env.testing import check_task
from tests.components import bubblewrap, chromium, desktop, stockfish

SAMPLES = {  # of families with an id for every page or game
    "miniwob": (),  # tests/tasks/test_miniwob_pages.py
    "text_arena": ("lmgym/TextArena-v0", "lmgym/TextArena-Nim-v0", "lmgym/TextArena-Sokoban-v0"),
}
ELSEWHERE = ("lmgym/TryAgainReasoningGym-v0",)  # tests/tasks/test_try_again.py allows its packages' warnings
COMPONENTS = {
    "lmgym/Chess-v0": stockfish,
    "lmgym/Desktop-v0": desktop,
    **dict.fromkeys(("lmgym/PythonMath-v0", "lmgym/SWERepair-v0", "lmgym/Terminal-v0"), bubblewrap),
    **dict.fromkeys(("lmgym/GUIRecorded-v0", "lmgym/Phone-v0", "lmgym/WebShopBrowser-v0"), chromium),
    **dict.fromkeys(("lmgym/WebForms-v0", "lmgym/WebFormsArena-v0"), chromium),
}
SLOW = (  # ids, and families
    *COMPONENTS,
    "lmgym/BabyAI-v0",
    "lmgym/ChessGreedy-v0",
    "lmgym/ClickTargetDesktop-v0",
    "lmgym/VisualSearchLarge-v0",
    "text_arena",
    "textworld",
)
SPECS = [
    spec
    for spec in specs().values()
    if spec.package.startswith("lmgym.tasks.")
    and spec.id in SAMPLES.get(spec.name, (spec.id,))
    and spec.id not in ELSEWHERE
]


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(
            spec.id,
            marks=[pytest.mark.slow, pytest.mark.timeout(1800)] if {spec.id, spec.name} & {*SLOW} else [],
        )
        for spec in SPECS
    ],
)
def test_a_task_keeps_what_every_task_promises(task):
    if task in COMPONENTS:
        COMPONENTS[task]()
    check_task(task)
