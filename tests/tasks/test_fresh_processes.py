"""The first instances of each text task are the same in two fresh processes, beside another environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmgym.env.registry import build, find, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, MissingExtra

PICTURED = ("click_target", "visual_search")
EVERY = 16  # of these parts of tasks the slow tests take one


def textual(spec: TaskSpec) -> bool:
    """Return True for tasks in text with instances of their own, which need no browser, desktop or repository."""
    elsewhere = {"web", "gui", "swe"}.intersection(spec.extras) or spec.remote or spec.name in (*PICTURED, "terminal")
    return all(spec.splits.values()) and not elsewhere and spec.deterministic


TEXTUAL = [spec for spec in specs().values() if textual(spec)]
PARTS = [spec.id for spec in TEXTUAL if spec.part_of]
TASKS = [spec.id for spec in TEXTUAL if spec.id not in PARTS]
COMPILED = [task for task in TASKS if find(task).name == "textworld"]  # seconds an instance


def digests(task: str, company: str, hash_seed: str, cache: Path, instances: int = 100) -> list[str]:
    """Return the digests of a process with a cache of its own: a game compiled by another one would prove nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.tasks.fresh_process", task, company, str(instances)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "LMGYM_CACHE": str(cache / company)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    episodes: list[str] = json.loads(done.stdout.splitlines()[-1])
    return episodes


def check(task: str, cache: Path, instances: int = 100) -> None:
    try:
        build(task).close()
    except (InstanceError, MissingExtra) as error:
        pytest.skip(str(error))
    alone, beside = (
        digests(task, company, seed, cache, instances) for company, seed in (("alone", "1"), ("beside", "2"))
    )
    assert alone
    assert alone == beside


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("task", [*TASKS, *PARTS[::EVERY]])
def test_instances_are_the_same_in_every_process(task, tmp_path):
    check(task, tmp_path, 10 if task in COMPILED else 100)


@pytest.mark.whole
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("task", [*COMPILED, *PARTS])
def test_a_hundred_instances_are_the_same_in_every_process(task, tmp_path):
    check(task, tmp_path)


def test_digests_tell_instances_apart_and_see_the_second_environment(tmp_path):
    alone, beside = (digests("lmgym/GuessNumber-v0", company, "3", tmp_path) for company in ("alone", "beside"))
    assert alone == beside
    assert len(set(alone)) > 50
