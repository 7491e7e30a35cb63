"""The judge: a diff, applied to a fresh copy of the broken repository, and the tests restored from outside.

Only changes inside the source folder count. Four guards stand against code that fools the tests: the values that the
tests of the bug see are compared outside of the sandbox with expectations that it does not hold (`observing`); copies
of these tests that expect wrong values must fail (`altering`); the log must agree with pytest's exit code; and the
patch may name nothing that has no place in a repair (`integrity`).
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from lmgym.backends.coding.files import put
from lmgym.backends.coding.patches import apply
from lmgym.backends.sandbox import Sandbox, open_sandbox
from lmgym.errors import BackendError
from lmgym.tasks.swe_repair import workspace
from lmgym.tasks.swe_repair.altering import QUICK, altered, failing_when_altered
from lmgym.tasks.swe_repair.hidden import visible
from lmgym.tasks.swe_repair.instances import Repair
from lmgym.tasks.swe_repair.integrity import violations
from lmgym.tasks.swe_repair.observing import meets
from lmgym.tasks.swe_repair.repositories import Repository, named
from lmgym.tasks.swe_repair.testing import PLUGIN, TestRun, run_tests

LONGEST = 1_000_000  # characters of a patch
FORBIDDEN = (
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "*.pyc",
    "*.so",
    "pytest.ini",
    "*.cfg",
    "*.toml",
)


@dataclass(frozen=True)
class Judgement:
    """Outcome of a judged patch."""

    resolved: bool
    reason: str  # in a few words
    fixed: float = 0.0  # share of the tests that have to pass again
    kept: float = 0.0  # share of the tests that have to pass still
    applied: bool = True


def judge(repair: Repair, patch: str) -> Judgement:
    """Return the verdict on a unified diff against the broken repository."""
    if not patch.strip():
        return Judgement(False, "empty patch", applied=False)
    if len(patch) > LONGEST:
        return Judgement(False, f"patch of more than {LONGEST} characters", applied=False)
    repository = named(repair.repository)
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        put(sandbox, visible(repair.files))
        workspace.commit(sandbox)
        if not apply(sandbox, patch):
            return Judgement(False, "the patch does not apply", applied=False)
        sources = _sources(sandbox, repository)
        if problems := violations(repository, repair.files, sources):
            return Judgement(False, problems[0])
        others = {path: text for path, text in repository.files.items() if not path.startswith(f"{repository.source}/")}
        _replace(sandbox, {**others, **sources})
        run = run_tests(sandbox, ["tests"], limit=repository.limit)
        verdict = _of_run(repair, run)
        if not verdict.resolved:
            return verdict
        if wrong := altered(repository, repair.fail_to_pass):
            _replace(sandbox, {**others, **sources, **wrong})
            fooled = run_tests(sandbox, [*QUICK, *sorted(wrong)], limit=repository.limit)
            failing = {test for path in wrong for test in failing_when_altered(repository, path)}
            if not fooled.trusted or any(fooled.succeeded(test) for test in repair.fail_to_pass if test in failing):
                return Judgement(False, "tests that cannot pass do")
    if not meets(repository, sources, repair.fail_to_pass):
        return Judgement(False, "the tests see other values than they expect")
    return verdict


def _of_run(repair: Repair, run: TestRun) -> Judgement:
    fixed = sum(map(run.succeeded, repair.fail_to_pass)) / len(repair.fail_to_pass)
    kept = sum(map(run.kept, repair.pass_to_pass)) / max(len(repair.pass_to_pass), 1)
    if run.timed_out:
        return Judgement(False, "the tests do not end")
    if not run.trusted:
        return Judgement(False, "the tests do not end by themselves, or their log does not agree with their exit code")
    resolved = fixed == 1.0 and (kept == 1.0 or not repair.pass_to_pass)
    return Judgement(resolved, "resolved" if resolved else "tests fail", fixed, kept)


def _sources(sandbox: Sandbox, repository: Repository) -> dict[str, str]:
    """Return the patched source files: plain Python text inside the source folder, and nothing else."""
    unwanted = " -o ".join(f"-name '{name}'" for name in FORBIDDEN)
    sandbox.run(f"find {repository.source} \\( -type l -o {unwanted} \\) -delete")
    done = sandbox.run(["tar", "-cf", "-", repository.source])
    if done.code or done.dropped:
        return {}
    files: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        for member in tar.getmembers():
            content = tar.extractfile(member) if member.isreg() and member.name.endswith(".py") else None
            if content is not None:
                files[member.name] = content.read().decode("utf-8", "replace")
    return files


def _replace(sandbox: Sandbox, files: Mapping[str, str]) -> None:
    """Make the folder hold these files and nothing else."""
    done = sandbox.run("find . -mindepth 1 -delete")
    if done.code:
        raise BackendError(f"the judge cannot clear its folder: {done.text[-300:]}")
    put(sandbox, files)
