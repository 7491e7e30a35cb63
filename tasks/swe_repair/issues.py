"""Issue texts made from the behaviour that fails: a call, what it gives, and what it should give.

They show a failing test's own words and values. A text is not used if it contains a line which the bug changed, shows
no call, or quotes the address of an object.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.tasks.swe_repair import diffs
from lmgym.tasks.swe_repair.repositories import Repository
from lmgym.tasks.swe_repair.testing import TestRun
from lmgym.tasks.swe_repair.testing import function as function_of

SHORT = 90  # characters of a call in a title
STEPS = 10  # lines that lead to the call, at most
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")

TITLES = (
    "{call} gives a wrong result",
    "Wrong result of {call}",
    "{name}: unexpected result of {call}",
    "{call} does not do what it should",
    "Unexpected behaviour of {call}",
)
OPENINGS = (
    "I use {name} and ran into this:",
    "The following does not work as I expect:",
    "Steps to reproduce:",
    "After an update of {name} this behaves differently from what the documentation promises:",
    "Our own code broke with the present version of {name}. Reduced to a few lines:",
)
OBSERVED = {
    "value": ("It gives `{}`.", "Result: `{}`.", "What I get: `{}`.", "This yields `{}`."),
    "error": ("It raises `{}`.", "This ends with `{}`.", "What I get: `{}`.", "I see `{}`."),
    "nothing": ("Nothing is raised.", "It runs without an error.", "There is no exception."),
}
EXPECTED = {
    "value": ("I expected `{}`.", "It should be `{}`.", "What I want: `{}`.", "Correct would be `{}`."),
    "error": ("It should raise `{}`.", "I expected `{}`.", "Correct would be `{}`."),
    "nothing": ("It should just work.", "There should be no exception.", "I expected no error."),
}
MORE = (
    "Other calls are affected as well.",
    "There may be more cases like this one; I did not look further.",
    "I have seen it with other values too.",
)
PLACE = ("It seems to come from `{path}`.", "My guess is that `{path}` is to blame.", "Look at `{path}`, I would say.")


@dataclass(frozen=True)
class Failure:
    """Behaviour that one failing test shows."""

    steps: tuple[str, ...]  # lines that lead to the code
    call: str  # that fails
    code: str  # the call, or the loop or block around it that binds its names
    observed: tuple[str, str]  # kind ("value", "error" or "nothing") and text
    expected: tuple[str, str]
    given: str  # the names that the steps use without defining them; "" if there are none


def written(
    name: str, patch: str, repository: Repository, failing: Sequence[str], run: TestRun, *, place: bool
) -> str | None:
    """Return the text of an issue, the same for the same instance, or None if no test gives one.

    With `place` it names the broken file.
    """
    chance = random.Random(name)
    secrets = [line for line in diffs.changed_lines(patch) if len(line) >= 8]
    tests = [test for test in failing if test in run.facts]
    chance.shuffle(tests)
    path = diffs.patched_path(patch)
    for test in tests:
        failure = _failure(repository, test, run.facts[test])
        if failure is None:
            continue
        text = _text(chance, repository, failure, len(failing) > 1, path if place else "")
        if not any(line in text for line in secrets) and not ADDRESS.search(text):
            return text
    return None


def _text(chance: random.Random, repository: Repository, failure: Failure, more: bool, path: str) -> str:
    short = failure.call if len(failure.call) <= SHORT and "\n" not in failure.call else failure.call.partition("(")[0]
    title = chance.choice(TITLES).format(call=f"`{short}`", name=repository.name)
    code = "\n".join([*failure.steps, failure.code])
    parts = [title, chance.choice(OPENINGS).format(name=repository.name), f"```python\n{code}\n```"]
    if failure.given:
        parts.append(failure.given)
    sides = ((OBSERVED, failure.observed), (EXPECTED, failure.expected))
    behaviour = [chance.choice(sentences[kind]).format(value) for sentences, (kind, value) in sides]
    if chance.random() < 0.3:
        behaviour.reverse()
    parts.append("\n".join(behaviour))
    if more:
        parts.append(chance.choice(MORE))
    if path:
        parts.append(chance.choice(PLACE).format(path=path))
    return "\n\n".join(parts)


def _failure(repository: Repository, test: str, facts: Mapping[str, Any]) -> Failure | None:
    """Return what a failing test shows; None if its source does not tell, has no call or too much around it."""
    path = test.partition("::")[0]
    function = function_of(repository.files[path], test)
    line = int(facts.get("line", 0))
    if function is None or not line:
        return None
    before = [each for each in function.body if (each.end_lineno or 0) < line and not _is_docstring(each)]
    statement = _innermost(function, line)
    if statement is None:
        return None
    mirrored = _mirrored(statement, facts)
    if mirrored is not None:
        statement = mirrored
        facts = {**facts, "left": facts.get("right"), "right": facts.get("left")}
    call, expected = _call(statement)
    around = _around(function, statement)
    if isinstance(around, ast.FunctionDef) or (around is not None and ast.unparse(around).count("\n") >= STEPS):
        return None
    if not any(isinstance(node, ast.Call) for each in (*before, *ast.parse(call).body) for node in ast.walk(each)):
        return None
    steps = "\n".join(map(ast.unparse, before)).splitlines()
    if len(steps) > STEPS:  # assertions that hold are not needed
        steps = "\n".join(ast.unparse(each) for each in before if not isinstance(each, ast.Assert)).splitlines()
    return Failure(
        steps=tuple(steps[-STEPS:]),
        call=call,
        code=call if around is None else ast.unparse(around),
        observed=_observed(facts),
        expected=_expected(facts, expected),
        given=_given(function, facts, path),
    )


def _around(function: ast.FunctionDef, statement: ast.stmt) -> ast.stmt | None:
    """Return the loop, block or function of a test around a statement, if it binds names that the statement reads."""
    around = next((each for each in function.body if statement in ast.walk(each) and each is not statement), None)
    bound = {name for node in ast.walk(around) if (name := _bound(node))} if around else set()
    read = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return around if bound & read else None


def _bound(node: ast.AST) -> str | None:
    """Return the name that a node of a syntax tree binds, if it is a target or a parameter."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def _innermost(function: ast.FunctionDef, line: int) -> ast.stmt | None:
    """Return the smallest statement that contains a line; a `with pytest.raises` counts with its body."""
    inside = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.stmt) and each is not function and each.lineno <= line <= (each.end_lineno or 0)
    ]
    for each in inside:
        if isinstance(each, ast.With) and _raises(each) is not None:
            return each
    return min(inside, key=lambda each: ((each.end_lineno or 0) - each.lineno, -each.col_offset), default=None)


def _raises(statement: ast.With) -> ast.Call | None:
    """Return the call by which a `with` expects an exception: `pytest.raises(...)` or `self.assertRaises(...)`."""
    calls = [item.context_expr for item in statement.items if isinstance(item.context_expr, ast.Call)]
    return next((call for call in calls if "raises" in ast.unparse(call.func).lower()), None)


def _mirrored(statement: ast.stmt, facts: Mapping[str, Any]) -> ast.Assert | None:
    """Return `assert f(x) == y` for `assert y == f(x)`, where y has parameters of the test and no call; else None."""
    test = statement.test if isinstance(statement, ast.Assert) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    left = list(ast.walk(test.left))
    names = {node.id for node in left if isinstance(node, ast.Name)}
    if any(isinstance(node, ast.Call) for node in left) or not names <= set(facts.get("parameters", {})):
        return None
    if not any(isinstance(node, ast.Call) for node in ast.walk(test.comparators[0])):
        return None
    return ast.Assert(ast.Compare(test.comparators[0], test.ops, [test.left]))


def _call(statement: ast.stmt) -> tuple[str, tuple[str, str]]:
    """Return the code that fails, and what it should do as far as the statement says so."""
    if isinstance(statement, ast.With):
        kind = _raises(statement)
        wanted = ast.unparse(kind.args[0]) if kind is not None and kind.args else "an exception"
        return "\n".join(map(ast.unparse, statement.body)), ("error", wanted)
    if isinstance(statement, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
            return ast.unparse(test.left), ("value", ast.unparse(test.comparators[0]))
        return ast.unparse(test), ("value", "True")
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("assert") and len(call.args) > 1:
            return ast.unparse(call.args[0]), ("value", ast.unparse(call.args[1]))
    return ast.unparse(statement), ("nothing", "")


def _observed(facts: Mapping[str, Any]) -> tuple[str, str]:
    kind, message = facts["exception"], str(facts["message"]).partition("\n")[0]
    if message.startswith("DID NOT RAISE") or message.endswith(" not raised"):  # pytest, unittest
        return "nothing", ""
    if kind != "AssertionError":
        return "error", f"{kind}: {message}" if message else kind
    if facts.get("op") in ("==", "is"):
        return "value", facts["left"]
    if " != " in message and not message.startswith("assert"):
        return "value", message.partition(" != ")[0]
    return "value", "False"


def _expected(facts: Mapping[str, Any], source: tuple[str, str]) -> tuple[str, str]:
    """Return the value that was compared with, or what the source says."""
    if facts["exception"] == "AssertionError" and facts.get("op") in ("==", "is"):
        return "value", facts["right"]
    return source


def _given(function: ast.FunctionDef, facts: Mapping[str, Any], path: str) -> str:
    values: Mapping[str, str] = facts.get("parameters", {})
    parts = [f"`{name} = {value}`" for name, value in values.items()]
    text = f"Here {', '.join(parts)}." if parts else ""
    others = [each.arg for each in function.args.args if each.arg not in values and each.arg != "self"]
    if others:
        listed = ", ".join(f"`{each}`" for each in others)
        text = f"{text} See `{path}` for {listed}.".strip()
    return text


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
