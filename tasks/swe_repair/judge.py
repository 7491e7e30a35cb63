"""The judge: a diff, applied to a fresh copy of the broken repository, and the tests restored from outside.

Only changes inside the source folder count. Three guards stand against code that fools the tests: the patch may name
nothing that has no place in a repair (`integrity`), the log must agree with pytest's exit code, and altered copies of
the tests, which expect impossible values, must fail.
"""

from __future__ import annotations

import ast
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from lmgym.backends.coding.files import put
from lmgym.backends.coding.patches import apply
from lmgym.backends.sandbox import Sandbox, open_sandbox
from lmgym.errors import BackendError
from lmgym.tasks.swe_repair import workspace
from lmgym.tasks.swe_repair.hidden import visible
from lmgym.tasks.swe_repair.instances import Repair
from lmgym.tasks.swe_repair.integrity import violations
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


def judge(repair: Repair, patch: str) -> Judgement:
    """Return the verdict on a unified diff against the broken repository."""
    if not patch.strip():
        return Judgement(False, "empty patch")
    if len(patch) > LONGEST:
        return Judgement(False, f"patch of more than {LONGEST} characters")
    repository = named(repair.repository)
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        put(sandbox, visible(repair.files))
        workspace.commit(sandbox)
        if not apply(sandbox, patch):
            return Judgement(False, "the patch does not apply")
        sources = _sources(sandbox, repository)
        if problems := violations(repository, repair.files, sources):
            return Judgement(False, problems[0])
        others = {path: text for path, text in repository.files.items() if not path.startswith(f"{repository.source}/")}
        _replace(sandbox, {**others, **sources})
        run = run_tests(sandbox, ["tests"])
        verdict = _of_run(repair, run)
        if not verdict.resolved:
            return verdict
        impossible = altered(repository, repair.fail_to_pass)
        _replace(sandbox, {**others, **sources, **impossible})
        fooled = run_tests(sandbox, sorted(impossible))
        if not fooled.trusted or any(map(fooled.succeeded, _altered_tests(repair))):
            return Judgement(False, "tests that cannot pass do")
    return verdict


def _of_run(repair: Repair, run: TestRun) -> Judgement:
    fixed = sum(map(run.succeeded, repair.fail_to_pass)) / len(repair.fail_to_pass)
    kept = sum(map(run.kept, repair.pass_to_pass)) / max(len(repair.pass_to_pass), 1)
    if run.timed_out:
        return Judgement(False, "the tests do not end")
    if not run.trusted:
        return Judgement(False, "the log of the tests does not agree with their exit code")
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


class _Impossible(ast.NodeTransformer):
    """Replaces what assertions compare with by an object that nothing equals."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """Alter a comparison for equality."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            self.count += 1
            test.comparators = [ast.parse("type('Value', (), {})()", mode="eval").body]
        return node


def altered(repository: Repository, failing: tuple[str, ...]) -> dict[str, str]:
    """Return the test files of some tests with impossible expectations; those without comparisons are left out."""
    files = {}
    for path in sorted({test.partition("::")[0] for test in failing}):
        transformer = _Impossible()
        tree = transformer.visit(ast.parse(repository.files[path]))
        if transformer.count:
            files[path] = ast.unparse(ast.fix_missing_locations(tree))
    return files


def _altered_tests(repair: Repair) -> list[str]:
    """Return the tests of the altered files whose own code compares for equality."""
    repository = named(repair.repository)
    tests = []
    for test in repair.fail_to_pass:
        path, _, name = test.partition("::")
        names = name.partition("[")[0].split("::")
        for node in ast.walk(ast.parse(repository.files[path])):
            if isinstance(node, ast.FunctionDef) and node.name == names[-1] and _compares(node):
                tests.append(test)
    return tests


def _compares(function: ast.FunctionDef) -> bool:
    """Return True if an assertion at the top of a test compares for equality."""
    return any(
        isinstance(node, ast.Assert)
        and isinstance(node.test, ast.Compare)
        and len(node.test.ops) == 1
        and isinstance(node.test.ops[0], ast.Eq)
        for node in function.body
    )
