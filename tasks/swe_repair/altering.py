"""Copies of tests that expect wrong values, and so must fail: they find out objects that equal whatever is expected.

A wrong value is of the same kind as the right one, `Number(4)` for `Number(3)`, so code cannot tell it by its type.
"""

from __future__ import annotations

import ast
import copy
from functools import lru_cache

from lmgym.backends.coding.files import put
from lmgym.backends.sandbox import open_sandbox
from lmgym.tasks.swe_repair import workspace
from lmgym.tasks.swe_repair.repositories import Repository
from lmgym.tasks.swe_repair.testing import BAD, PLUGIN, run_tests
from lmgym.tasks.swe_repair.withheld import EQUALITIES, called

QUICK = ("--tb=no", "--assert=plain")  # hundreds of failures take long to explain


class _Altered(ast.NodeTransformer):
    """Replaces what assertions compare with by another value."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """Alter a comparison for equality."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            self.count += 1
            test.comparators = [wrong(test.comparators[0])]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | ast.Assert:
        """Alter a call such as `assertEqual`, either of whose values may be the one that is tested."""
        call = node.value
        if not isinstance(call, ast.Call) or called(call) not in EQUALITIES or len(call.args) < 2:
            return node
        self.count += 1
        first, second = call.args[:2]
        sides: list[ast.expr] = [
            ast.Compare(each, [ast.Eq()], [wrong(other)]) for each, other in ((first, second), (second, first))
        ]
        return ast.Assert(ast.BoolOp(ast.Or(), sides))


def wrong(expected: ast.expr) -> ast.expr:
    """Return an expectation with other numbers, else with other texts, else an object that nothing equals."""
    altered = copy.deepcopy(expected)
    constants = [node for node in ast.walk(altered) if isinstance(node, ast.Constant)]
    numbers = [node for node in constants if type(node.value) in (int, float)]
    texts = [node for node in constants if isinstance(node.value, str)]
    for node in numbers or texts:
        node.value = node.value + (1 if numbers else "~")  # type: ignore[operator]
    if numbers or texts:
        return altered
    return ast.parse("type('Value', (), {})()", mode="eval").body


def altered(repository: Repository, tests: tuple[str, ...]) -> dict[str, str]:
    """Return the files of some tests with wrong expectations; those without comparisons are left out."""
    files = {}
    for path in sorted({test.partition("::")[0] for test in tests}):
        transformer = _Altered()
        tree = transformer.visit(ast.parse(repository.files[path]))
        if transformer.count:
            files[path] = ast.unparse(ast.fix_missing_locations(tree))
    return files


@lru_cache(maxsize=256)
def failing_when_altered(repository: Repository, path: str) -> frozenset[str]:
    """Return the tests of an altered file that fail beside the good repository, as they do beside a true repair."""
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        put(sandbox, {**repository.files, **altered(repository, (path,))})
        run = run_tests(sandbox, [*QUICK, path], limit=repository.limit)
    return frozenset(test for test, status in run.statuses.items() if status in BAD)
