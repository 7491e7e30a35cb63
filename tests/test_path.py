"""GRPO can be read from an environment's step to the backward pass: what CONTRIBUTING names is what runs, and short."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, MappingProxyType

import pytest

from lmgym.baselines import grpo
from lmgym.env import registry
from lmgym.train import loop
from lmgym.train.stage import LearningStage
from lmgym.train.stages import Rl
from tests.baselines.test_learning import small
from tests.train.chain import SPEC, chain_policy

ROOT = Path(__file__).parents[1]
MOST_LINES, MOST_FUNCTIONS = 1000, 60  # lines with docstrings
ARGS = small(
    grpo, warmup=1, warmup_episodes=8, steps=1, instances=8, group=4, minibatches=1, invalid_cost=0.1, evaluate=4
)
Functions = dict[str, set[str]]  # by file


def section() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text().partition("## Read GRPO end to end")[2].partition("\n## ")[0]


def named() -> Functions:
    """The functions of the table, by file."""
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.+?) \|", section(), re.MULTILINE)
    return {file: set(re.findall(r"`([\w.]+)`", functions)) for file, functions in rows}


def beside() -> set[str]:
    """The files, and functions as `file:name`, that the text sets beside the path."""
    return set(re.findall(r"`([\w/]+\.py(?::[\w.]+)?)`", section().partition("Beside the path")[2]))


class Tracer:
    """The functions of ours that run from the first step of an environment to the first backward pass."""

    def __init__(self) -> None:
        self.entered: Functions = defaultdict(set)
        self.on = self.over = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_qualname
        if event == "call" and not self.on and name == "TextEnv.step":
            self.on = True
            for outer in callers(frame):
                self.note(outer)
        self.over |= event == "return" and name == "Updater._backward"
        if event == "call" and self.on and not self.over:
            self.note(frame.f_code)

    def note(self, code: CodeType) -> None:
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT / "lmgym") or path.is_relative_to(ROOT / "baselines"):
            file = str(path.relative_to(ROOT))
            if code.co_qualname in spans(file):
                self.entered[file].add(code.co_qualname)


def callers(frame: FrameType) -> Iterator[CodeType]:
    """Yield the callers of a frame, up to the step of the stage."""
    while frame.f_back is not None:
        frame = frame.f_back
        yield frame.f_code
        if frame.f_code.co_qualname == "LearningStage.step":
            return


@cache
def spans(file: str) -> dict[str, int]:
    """Lines of the functions of a file by qualified name, decorators and docstrings included; inner ones are theirs."""
    found: dict[str, int] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                found[prefix + child.name] = (child.end_lineno or first) - first + 1
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse((ROOT / file).read_text()), "")
    return found


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    tracer = Tracer()
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC})

    def traced(stage, *arguments):
        before = sys.getprofile()
        sys.setprofile(tracer)
        try:
            return LearningStage.step(stage, *arguments)
        finally:
            sys.setprofile(before)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "specs", lambda: known)
        patched.setattr(Rl, "step", traced)
        folder = tmp_path_factory.mktemp("path") / "run"
        loop.run(grpo.recipe(ARGS), chain_policy(), task=SPEC.id, folder=folder, quiet=True)
    assert tracer.over
    return dict(tracer.entered)


def test_the_path_is_what_runs(entered: Functions) -> None:
    aside = beside()
    ran = {(file, name) for file, names in entered.items() for name in names}
    ran = {(file, name) for file, name in ran if file not in aside and f"{file}:{name}" not in aside}
    told = {(file, name) for file, names in named().items() for name in names}
    assert sorted(ran - told) == [], "these run and are not in CONTRIBUTING's table"
    assert sorted(told - ran) == [], "these are in CONTRIBUTING's table and do not run"


def test_the_path_is_short_enough_to_be_read_and_nothing_is_set_aside_that_does_not_run(entered: Functions) -> None:
    ran = set(entered) | {f"{file}:{name}" for file, names in entered.items() for name in names}
    assert beside() <= ran
    lines = {file: sum(spans(file)[name] for name in names) for file, names in named().items()}
    assert sum(lines.values()) < MOST_LINES, lines
    assert sum(map(len, named().values())) < MOST_FUNCTIONS
