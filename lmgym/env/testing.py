"""`check_task`: all checks of a task, for authors, `lmgym check` and the test suite."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from lmgym.env import card
from lmgym.env.checks import BROKEN, OF_EPISODES, Check, Subject
from lmgym.env.env import TextEnv
from lmgym.env.registry import build, find, load
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError

MOST = 5  # findings of one check
HEAVY = frozenset(
    {
        *("torch", "transformers", "tokenizers", "datasets", "ray", "scipy", "pandas", "matplotlib", "PIL"),
        *("textworld", "alfworld", "playwright", "docker", "openai"),
    }
)


class Finding(NamedTuple):
    """Result of one check."""

    check: str
    ok: bool
    message: str  # the problem; if ok, the promise or why it was skipped


class TaskError(LmgymError, AssertionError):
    """A task breaks a promise; the message has one line per finding."""


def check_task(task: str | TaskSpec) -> list[Finding]:
    """Run every check on a task and return the findings.

    Raises TaskError, with a line for each problem, and MissingExtra if the task's packages are not installed.
    """
    results = list(findings(task))
    if problems := [f"{finding.check}: {finding.message}" for finding in results if not finding.ok]:
        raise TaskError("\n".join(problems))
    return results


def findings(task: str | TaskSpec) -> Iterator[Finding]:
    """Run every check on a task and yield each finding at once."""
    spec = task if isinstance(task, TaskSpec) else find(task)
    load(spec)
    absent: dict[str, str] = {}
    for split in spec.splits:
        try:
            with closing(build(spec, split=split)) as env:
                env.reset(seed=0, options={"index": 0})
        except InstanceError as error:
            absent[split] = str(error)
    subject = Subject(spec, tuple(split for split in spec.splits if split not in absent))
    for split, reason in absent.items():
        yield Finding(f"split {split}", ok=spec.splits[split] == 0, message=f"skipped: {reason}")
    for check in (*OF_THE_FOLDER, *OF_EPISODES):
        if subject.splits or check in OF_THE_FOLDER:
            yield from _run(check, subject)


def _run(check: Check, subject: Subject) -> Iterator[Finding]:
    """Run one check and yield its problems, or its promise if there are none."""
    name = check.__name__.replace("_", " ")
    clean = True
    try:
        for problem in itertools.islice(check(subject), MOST):
            clean = False
            yield Finding(name, ok=False, message=problem)
    except BROKEN as error:
        clean = False
        where = traceback.extract_tb(error.__traceback__)[-1]
        yield Finding(name, False, f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})")
    if clean:
        yield Finding(name, ok=True, message=(check.__doc__ or "").partition("\n")[0])


def spec_and_card(subject: Subject) -> Iterator[str]:
    """The spec is valid and the README's card agrees with it."""
    spec = subject.spec
    if not re.fullmatch(r"[\w-]+/\w[\w-]*-v\d+", spec.id):
        yield f"id {spec.id!r} does not have the form namespace/Name-v0"
    if not issubclass(load(spec), TextEnv):
        yield f"{spec.entry_point} is not a TextEnv"
    if unknown := [split for split in spec.held_out if split not in spec.splits]:
        yield f"held_out names {unknown[0]!r}, which is not a split"
    for name, value in spec.references.items():
        if isinstance(value, float | int) and not 0 <= value <= 1:
            yield f"reference {name} is {value}; scores are in [0, 1]"
    if difference := card.differs(spec):
        yield difference


def light_import(subject: Subject) -> Iterator[str]:
    """Importing the SPEC loads neither the environment nor anything heavy."""
    spec = subject.spec
    module = spec.entry_point.partition(":")[0]
    code = (
        f"import sys, importlib; sys.path[:] = {sys.path!r}; import lmgym; importlib.import_module({spec.package!r}); "
        f"print(*[m for m in sys.modules if m == {module!r} or m in {sorted(HEAVY)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=os.environ)
    if done.returncode:
        yield f"import {spec.package} fails: {done.stderr.strip().splitlines()[-1]}"
    if loaded := done.stdout.split():
        yield f"import {spec.package} loads {', '.join(loaded)}: import them inside functions"


OF_THE_FOLDER: tuple[Check, ...] = (spec_and_card, light_import)
