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
from lmgym.tasks.swe_repair.testing import PLUGIN, TestRun, function, run_tests

LONGEST = 1_000_000  # characters of a patch
EQUALITIES = {"assertEqual", "assertDictEqual", "assertListEqual", "assertSetEqual", "assertTupleEqual", "assert_equal"}
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
        run = run_tests(sandbox, ["tests"], limit=repository.limit)
        verdict = _of_run(repair, run)
        if not verdict.resolved:
            return verdict
        if impossible := altered(repository, repair.fail_to_pass):
            _replace(sandbox, {**others, **sources, **impossible})
            quick = ["--tb=no", "--assert=plain"]  # hundreds of failures take long to explain
            fooled = run_tests(sandbox, [*quick, *sorted(impossible)], limit=repository.limit)
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
        if _compares(node) and isinstance(node.test, ast.Compare):
            self.count += 1
            node.test.comparators = [_value()]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | ast.Assert:
        """Alter a call such as `assertEqual`, either of whose values may be the one that is tested."""
        if not _compares(node) or not isinstance(node.value, ast.Call):
            return node
        self.count += 1
        sides: list[ast.expr] = [ast.Compare(each, [ast.Eq()], [_value()]) for each in node.value.args[:2]]
        return ast.Assert(ast.BoolOp(ast.Or(), sides))


def _value() -> ast.expr:
    """Return an object that nothing equals."""
    return ast.parse("type('Value', (), {})()", mode="eval").body


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
    """Return the broken tests whose own code compares for equality."""
    files = named(repair.repository).files
    tests = {test: function(files[test.partition("::")[0]], test) for test in repair.fail_to_pass}
    return [test for test, code in tests.items() if code is not None and any(map(_compares, code.body))]


def _compares(statement: ast.stmt) -> bool:
    """Return True if a statement is an assertion of equality."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in EQUALITIES and len(statement.value.args) >= 2
    if not isinstance(statement, ast.Assert) or not isinstance(statement.test, ast.Compare):
        return False
    return len(statement.test.ops) == 1 and isinstance(statement.test.ops[0], ast.Eq)
