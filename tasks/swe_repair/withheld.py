"""Tests without their expectations, so that the process of the code under test does not have the answers.

An assertion such as `assert area(2, 3) == 6` becomes `observe(0, area(2, 3))`. Where the same test runs beside the good
repository, it is `observe(0, area(2, 3), 6)`. Only expectations that do not come from the library are taken out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator

EQUALITIES = {"assertEqual", "assertDictEqual", "assertListEqual", "assertSetEqual", "assertTupleEqual", "assert_equal"}
TRUTHS = {"assertTrue": "True", "assertFalse": "False"}
RAISES = {"raises", "assertRaises"}
TRUSTED = {*sys.stdlib_module_names, "pytest"}  # modules whose names in a test are not the library's
IMPORT = "from observe_plugin import Raising as _raising, observe as _observe"
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.NotEq: ast.Eq, ast.NotIn: ast.In, ast.IsNot: ast.Is}
Scope = ast.Module | ast.FunctionDef


def rewritten(source: str, *, withhold: bool) -> tuple[str, dict[int, str]]:
    """Return a test file that observes, and the operator of each assertion by number.

    Without `withhold` the expectations stay, as the good repository needs them.
    """
    tree = ast.parse(source)
    observer = _Observer(_of_library(tree, set()), withhold=withhold)
    observer.visit(tree)
    if withhold:
        _drop_unused(tree, observer.library)
    start = next((i for i, node in enumerate(tree.body) if not _opening(node)), len(tree.body))
    tree.body[start:start] = ast.parse(IMPORT).body
    return ast.unparse(ast.fix_missing_locations(tree)), observer.operators


def _opening(node: ast.stmt) -> bool:
    """Return True for a docstring and for imports from the future, which come first."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or (
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )


def _loaded(node: ast.AST) -> set[str]:
    """Return the names that code reads."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield names that code binds or fills, with the expression that they come from; None if it is not known."""
    for each in ast.walk(node):
        pairs: list[tuple[ast.AST, ast.AST | None]] = []
        if isinstance(each, ast.Assign):
            pairs = [(target, each.value) for target in each.targets]
        elif isinstance(each, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and each.value is not None:
            pairs = [(each.target, each.value)]
        elif isinstance(each, ast.For | ast.comprehension):
            pairs = [(each.target, each.iter)]
        elif isinstance(each, ast.withitem) and each.optional_vars is not None:
            pairs = [(each.optional_vars, None)]
        elif isinstance(each, ast.ExceptHandler) and each.name:
            yield each.name, None
        for target, value in pairs:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    yield name.id, value


def _of_library(scope: ast.AST, outer: set[str]) -> set[str]:
    """Return the names in a module or a function whose values may come from the library."""
    library = {*outer, "self", "cls"}
    local = scope.body if isinstance(scope, ast.Module) else [scope]
    for node in ast.walk(scope):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = alias.name if isinstance(node, ast.Import) else node.module or ""
                relative = isinstance(node, ast.ImportFrom) and node.level > 0
                if module.partition(".")[0] not in TRUSTED or relative:
                    library.add((alias.asname or alias.name).partition(".")[0])
        elif node is not scope and isinstance(node, ast.Lambda) and not isinstance(scope, ast.Module):
            library |= {argument.arg for argument in node.args.args}
    nested = [each for node in local for each in ast.walk(node) if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    if isinstance(scope, ast.Module):
        local = [node for node in local if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    size = -1
    while size != len(library):
        size = len(library)
        library |= {node.name for node in nested if node is not scope and _loaded(node) & library}
        for node in local:
            library |= {name for name, value in _bound(node) if value is None or _loaded(value) & library}
    return library


class _Observer(ast.NodeTransformer):
    """Replaces assertions by observations."""

    def __init__(self, library: set[str], *, withhold: bool) -> None:
        self.library, self.withhold = library, withhold
        self.operators: dict[int, str] = {}
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Enter a function with its own names; what a helper is called with may come from the library."""
        outer = self.library
        parameters = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        if node.name.startswith("test"):
            fixtures = parameters & outer
            for names, values in _tables(node):
                fixtures = fixtures | set(names) if _loaded(values) & outer else fixtures - set(names)
        else:
            fixtures = parameters
        self.library = _of_library(node, (outer - parameters - {name for name, _ in _bound(node)}) | fixtures)
        self.generic_visit(node)
        if self.withhold:
            _drop_unused(node, self.library)
        self.library = outer
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Observe a comparison, or whether something is true."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._comparison(test.left, test.comparators[0], type(test.ops[0]))
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._truth(test.operand, "False")
        return self._truth(test, "True")

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Observe a call such as `assertEqual`."""
        call = node.value
        name = called(call) if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and name in EQUALITIES and len(call.args) >= 2:
            return self._comparison(call.args[0], call.args[1], ast.Eq)
        if isinstance(call, ast.Call) and name in TRUTHS and call.args:
            return self._truth(call.args[0], TRUTHS[name])
        return node

    def visit_With(self, node: ast.With) -> ast.With:
        """Observe the exception of `with pytest.raises`."""
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and called(call) in RAISES and call.args:
                number = self._number("Raises")
                kept = [] if self.withhold else call.args
                named = [] if self.withhold else call.keywords
                item.context_expr = ast.Call(ast.Name("_raising", ast.Load()), [number, *kept], named)
        self.generic_visit(node)
        return node

    def _number(self, operator: str) -> ast.Constant:
        number = len(self.operators)
        self.operators[number] = operator
        return ast.Constant(number)

    def _comparison(self, left: ast.expr, right: ast.expr, operator: type[ast.cmpop]) -> ast.stmt:
        """Observe one side; where both may come from the library, whether the comparison holds."""
        free = [not _loaded(side) & self.library for side in (left, right)]
        if operator not in OPPOSITE and free[1] and not isinstance(left, ast.Constant):
            return self._observe(operator.__name__, left, right)
        if operator is ast.Eq and free[0]:
            return self._observe("Eq", right, left)
        compared = ast.Compare(left, [OPPOSITE.get(operator, operator)()], [right])
        return self._truth(compared, "False" if operator in OPPOSITE else "True")

    def _truth(self, value: ast.expr, expected: str) -> ast.stmt:
        twice = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), value))
        return self._observe("Is", twice, ast.Constant(expected == "True"))

    def _observe(self, operator: str, value: ast.expr, expected: ast.expr) -> ast.stmt:
        arguments = [self._number(operator), value, *([] if self.withhold else [expected])]
        return ast.Expr(ast.Call(ast.Name("_observe", ast.Load()), arguments, []))


def called(call: ast.Call) -> str:
    """Return the last name of what a call calls."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _tables(node: ast.FunctionDef) -> Iterator[tuple[list[str], ast.expr]]:
    """Yield the names and the values of a function's `pytest.mark.parametrize`."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and called(decorator) == "parametrize" and len(decorator.args) >= 2:
            names = _strings(decorator.args[0])
            if names:
                yield names, decorator.args[1]


def _strings(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",")]
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _drop_unused(scope: Scope, library: set[str]) -> None:
    """Take out the constants, columns of parameters and values of loops that only expectations needed."""
    while True:
        loaded = {name for node in scope.body for name in _loaded(node)}
        if isinstance(scope, ast.FunctionDef):
            for names, values in _tables(scope):
                _blank(names, values, loaded)
        for node in ast.walk(scope):
            if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
                _blank([getattr(name, "id", "") for name in node.target.elts], node.iter, loaded | {""})
        unused = [node for node in scope.body if _unused(node, loaded, library)]
        if not unused:
            return
        scope.body = [node for node in scope.body if node not in unused] or [ast.Pass()]


def _unused(node: ast.stmt, loaded: set[str], library: set[str]) -> bool:
    if not isinstance(node, ast.Assign) or _loaded(node.value) & library:
        return False
    names = [target.id if isinstance(target, ast.Name) else "" for target in node.targets]
    return all(name and not name.startswith(("pytest", "__")) for name in names) and not set(names) & loaded


def _blank(names: list[str], table: ast.expr, loaded: Iterable[str]) -> None:
    """Put None for the values in a table of literals whose names nothing reads."""
    for row in table.elts if isinstance(table, ast.List | ast.Tuple) else []:
        if len(names) > 1 and isinstance(row, ast.Tuple | ast.List) and len(row.elts) == len(names):
            row.elts = [
                each if name in loaded else ast.Constant(None) for name, each in zip(names, row.elts, strict=True)
            ]
