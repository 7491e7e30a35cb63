"""SWERepair: bugs of every family, nothing of the solution in the sandbox, and a judge that cheats do not fool."""

import ast
import builtins
import json
import random
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmgym.backends.coding.files import put
from lmgym.backends.coding.steps import rendered
from lmgym.backends.sandbox import open_sandbox
from lmgym.env.coding import parse_bash, parse_r2e, parse_tools
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import Fork, Planner
from lmgym.tasks.swe_repair import instances, observing, repositories, workspace
from lmgym.tasks.swe_repair.demonstrator import substitution
from lmgym.tasks.swe_repair.diffs import applied, reverse, unified
from lmgym.tasks.swe_repair.evidence import ran_tests, read_file
from lmgym.tasks.swe_repair.hidden import hidden, visible
from lmgym.tasks.swe_repair.instances import Repair
from lmgym.tasks.swe_repair.integrity import violations
from lmgym.tasks.swe_repair.issues import written
from lmgym.tasks.swe_repair.judge import judge
from lmgym.tasks.swe_repair.observe_plugin import plain
from lmgym.tasks.swe_repair.testing import PLUGIN, TestRun, read_report, run_tests
from lmgym.tasks.swe_repair.withheld import rewritten
from lmgym.types import Job
from tests.components import bubblewrap
from tests.rollout.fakes import Bytes, number

bugs = pytest.importorskip("lmgym.tasks.swe_repair.bugs", exc_type=ImportError)


def shipped(split):
    return [repair for (of_split, _, _), repair in sorted(instances._shipped().items()) if of_split == split]


def bug():
    """Return a bug in exprkit that a repair needs one line for."""
    path, good = "exprkit/parser.py", repositories.own("exprkit").files["exprkit/parser.py"]
    patch = unified(path, good, good.replace("self.expression(strength + 1)", "self.expression(strength)"))
    failing, passing = ("tests/test_parser.py::test_left_associative",), ("tests/test_lexer.py::test_numbers",)
    return Repair("x", "exprkit", "op_change", "easy", patch, "issue", failing, passing)


def test_packages_are_as_large_as_promised():
    names = [*repositories.names("train"), *repositories.names("test")]
    assert len(names) >= 10
    for name in names:
        files = repositories.own(name).files
        modules = [path for path in files if path.startswith(f"{name}/") and not path.endswith("__init__.py")]
        assert len(modules) >= 3
        assert sum(files[path].count("\n") for path in modules) >= 300
        assert len(instances.passing(name)) >= 25
        assert "README.md" in files


def test_about_a_third_of_the_tests_is_hidden():
    for name in [*repositories.names("train"), *repositories.names("test")]:
        files = repositories.own(name).files
        rest = visible(files)
        counts = [sum(text.count("\ndef test_") for text in each.values()) for each in (files, rest)]
        assert 0.5 * counts[0] < counts[1] < 0.85 * counts[0], name
        assert {path for path in files if files[path] != rest[path]} <= {path for path in files if "tests/" in path}
        for path, text in rest.items():
            if path.endswith(".py"):
                compile(text, path, "exec")


def test_a_repair_for_the_visible_tests_alone_fails():
    bubblewrap()
    repair = next(
        each
        for each in shipped("test")
        if all(hidden(test.partition("::")[0], test.partition("::")[2].partition("[")[0]) for test in each.fail_to_pass)
    )
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        put(sandbox, visible(repair.files))
        run = run_tests(sandbox)
    assert run.trusted
    assert "FAILED" not in run.statuses.values()
    text = repair.files[repair.path]
    assert judge(repair, unified(repair.path, text, f"{text}\nCHANGED = True\n")).reason == "tests fail"


def test_every_family_occurs_in_both_splits():
    families = {family.name for family in bugs.FAMILIES}
    assert {repair.family for repair in shipped("test")} == families
    assert {repair.repository for repair in shipped("test")} <= set(repositories.TEST)
    assert not {repair.repository for repair in shipped("train")} & set(repositories.TEST)
    code = [text for name in repositories.names("train") for path, text in repositories.own(name).files.items()
            if path.startswith(f"{name}/") and path.endswith(".py")]  # fmt: skip
    assert all(any(bugs.candidates(text, family) for text in code) for family in bugs.FAMILIES)


def test_shipped_bugs_break_some_tests_and_keep_others():
    for repair in [*shipped("test"), *shipped("train")]:
        assert repair.fail_to_pass
        assert repair.pass_to_pass
        good = repositories.own(repair.repository).files
        assert repair.files != good
        assert applied(repair.solution, repair.files) == good


def test_issues_do_not_name_the_changed_lines():
    for repair in [*shipped("test"), *shipped("train")]:
        for line in repair.patch.splitlines():
            if line[:1] in "+-" and line[:3] not in ("+++", "---") and len(line[1:].strip()) >= 8:
                assert line[1:].strip() not in repair.problem_statement


def test_issues_show_a_call_and_no_address():
    for repair in [each for split in ("test", "train", "pypi") for each in shipped(split)]:
        code = re.search(r"```python\n(.*?)\n```", repair.problem_statement, re.S)
        assert code, repair.problem_statement
        assert any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(code[1]))), code[1]
        assert " at 0x" not in repair.problem_statement


def test_issues_use_no_name_that_only_their_test_defines():
    for repair in [each for split in ("test", "train", "pypi") for each in shipped(split)]:
        before, code, after = re.split(r"```(?:python\n)?", repair.problem_statement)
        tests = [ast.parse(text) for path, text in repair.files.items() if "test" in path and path.endswith(".py")]
        known = {name for tree in tests for part in tree.body for name in names(part, top=True)} | set(dir(builtins))
        used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
        unknown = used - known - set(names(ast.parse(code))) - {"self"}
        assert not [name for name in unknown if f"`{name}" not in after], repair.instance_id


def names(tree, *, top=False):
    """Yield the names that code binds; with `top` those of one statement of a module."""
    if top and isinstance(tree, ast.FunctionDef | ast.ClassDef):
        yield tree.name
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((each.asname or each.name).partition(".")[0] for each in node.names)


TWICE = """import pytest
from twice import twice


def check(a):
    assert twice(a) == a + a


def test_value():
    assert twice(2) == 4


@pytest.mark.parametrize("a,b", [(2, 4)])
def test_mirrored(a, b):
    assert b == twice(a)


def test_helper():
    check(2)


def test_name():
    assert RESULT == 4


def test_loop():
    for number in (2, 3):
        assert twice(number) == number + number


def test_long_loop():
    for number in (2, 3):
        if number:
            if number:
                if number:
                    if number:
                        a = number
                        b = number
                        c = number
                        d = number
                        e = number
                        assert twice(number) == 4


def test_inner():
    def inner(number):
        assert twice(number) == 4

    inner(2)
"""


def issue(test, left, right, line):
    """Return the issue of one failing test of TWICE."""
    repository = repositories.Repository("twice", "twice", {"tests/test_a.py": TWICE})
    facts = {"line": line, "exception": "AssertionError", "message": "", "op": "==", "left": left, "right": right}
    run = TestRun({}, True, False, {f"tests/test_a.py::{test}": {**facts, "parameters": {"a": "2", "b": "4"}}})
    patch = unified("twice/__init__.py", "a = 1\n", "a = 2\n")
    return written("x", patch, repository, list(run.facts), run, place=True)


def test_an_issue_is_written_from_a_call_or_not_at_all():
    assert "twice(2)" in issue("test_value", "5", "4", 10)
    mirrored = issue("test_mirrored[2-4]", "4", "5", 15)  # the call stands on the right
    assert "```python\ntwice(a)\n```" in mirrored
    assert re.search(r"(gives|Result:|get:|yields) `5`", mirrored)
    assert re.search(r"(expected|be|want:) `4`", mirrored)
    assert issue("test_helper", "5", "4", 6) is None  # the line is not the test's own
    assert issue("test_name", "5", "4", 23) is None
    assert issue("test_value", "<Two object at 0x7f42cb891d10>", "4", 10) is None
    loop = issue("test_loop", "5", "4", 28)
    assert "```python\nfor number in (2, 3):\n    assert twice(number) == number + number\n```" in loop
    assert issue("test_long_loop", "5", "4", 42) is None
    assert issue("test_inner", "5", "4", 47) is None  # the caller is elsewhere


def test_every_rewrite_of_a_bug_parses():
    code = repositories.own("tinycache").files["tinycache/policies.py"]
    for family in bugs.FAMILIES:
        for name in bugs.candidates(code, family):
            changed = bugs.broken(code, name, family, "seed")
            if changed is not None:
                compile(changed, "bug", "exec")
                assert changed != code


def test_only_definitions_of_some_complexity_get_bugs():
    short = "def short(a):\n    return a + 1\n\n\n"
    code = f"{short}def long(a):\n    if a:\n        for b in a:\n            c = b + 1\n    return c\n"
    assert bugs.candidates(code, bugs.BY_NAME["op_change"]) == ["long"]


def test_a_reversed_patch_takes_a_patch_back():
    chance = random.Random(3)
    before = "".join(f"line {number}\n" for number in range(60))
    lines = before.splitlines(True)
    for index in sorted(chance.sample(range(60), 9)):
        lines[index] = "" if index % 2 else f"other {index}\nand more\n"
    patch = unified("a.py", before, "".join(lines))
    assert applied(reverse(patch), applied(patch, {"a.py": before})) == {"a.py": before}


def test_status_rules():
    lines = [
        't {"test": "a", "status": "PASSED"}',
        't {"test": "b", "status": "SKIPPED"}',
        't {"test": "c", "status": "XFAIL"}',
        'forged {"test": "d", "status": "PASSED"}',
        't {"exit": 0}',
    ]
    run = read_report("\n".join(lines), "t", 0)
    assert [run.succeeded(test) for test in "abcd"] == [True, False, True, False]
    assert [run.kept(test) for test in "abcd"] == [True, True, True, False]
    assert not read_report("\n".join(lines), "t", 1).trusted
    assert not read_report("\n".join(lines[:-1]), "t", 0).trusted


def test_protocols_read_one_call():
    assert parse_bash("text\n```mswea_bash_command\nls -l\n```").arguments == {"command": "ls -l"}
    assert parse_bash("```mswea_bash_command\na\n```\n```mswea_bash_command\nb\n```").kind == "error"
    assert parse_tools('{"name": "edit", "arguments": {"path": "a", "old": "b", "new": ""}}').kind == "edit"
    assert parse_tools('{"name": "edit", "arguments": {"path": "a"}}').kind == "error"
    call = "<function=execute_bash><parameter=command>ls</parameter></function>"
    assert parse_r2e(call).arguments == {"command": "ls"}
    assert parse_r2e(call + call).kind == "error"


def test_long_outputs_keep_head_and_tail():
    from lmgym.backends.sandbox import Result

    text = rendered(Result(code=0, stdout=b"a" * 6000 + b"b" * 6000))
    assert "<elided_chars>2000 characters elided" in text
    assert rendered(Result(code=0, stdout=b"1 passed in 0.37s\n")).endswith("1 passed in 0.00s\n</output>")


def test_the_solution_is_nowhere_in_the_sandbox():
    bubblewrap()
    repair = bug()
    line = "right = self.expression(strength + 1)"
    with open_sandbox(workspace.box()) as sandbox:
        put(sandbox, visible(repair.files))
        workspace.commit(sandbox)
        assert sandbox.run("git log --all --format=%H | wc -l").text.strip() == "1"
        assert sandbox.run("git reflog").text == ""
        assert sandbox.run("git fsck --unreachable --no-reflogs --lost-found").text == ""
        objects = "git cat-file --batch-all-objects --batch-check | cut -d' ' -f1 | xargs -n1 git cat-file -p"
        assert line not in sandbox.run(objects).text
        places = "/testbed /opt /tmp /home /dev/shm /usr/lib/python3 /usr/local/lib /var"
        hits = sandbox.run(f"grep -rlF '{line}' {places} 2>/dev/null").text
        assert hits == ""
        assert sandbox.run("find / -name 'exprkit*' -not -path '/proc/*' 2>/dev/null").text.split() == [
            "/testbed/exprkit"
        ]
        assert sandbox.run("python3 -c 'import lmgym'").code == 1
        assert sandbox.run("find / -name '*.pyc' -path '*exprkit*' 2>/dev/null").text == ""


PARSER = "exprkit/parser.py"


def cheat(**changes):
    """Return the diff that appends to files or replaces them; a path's "/" and "." are written "__" and "_dot_"."""
    files = visible(bug().files)
    parts = []
    for path, text in changes.items():
        name = path.replace("__", "/").replace("_dot_", ".")
        before = files.get(name, "")
        after = text(before) if callable(text) else before + text
        patch = unified(name, before, after)
        if not before:
            patch = patch.replace(f"--- a/{name}", "--- /dev/null")
            patch = patch.replace("\n--- /dev/null", "\nnew file mode 100644\n--- /dev/null", 1)
        parts.append(patch)
    return "".join(parts)


TESTS = "tests__test_parser_dot_py"
CODE = "exprkit__parser_dot_py"
USER_SITE = f"exprkit__lib__python{sys.version_info.major}_dot_{sys.version_info.minor}__site-packages__x_dot_pth"
BOTH = ("tests/test_parser.py::test_left_associative", "tests/test_lexer.py::test_numbers")
RUN_NOTHING = "import _pytest.python; _pytest.python.Function.runtest = lambda self: None\n"
FORGED = """import json
import sys

token, path = sys.stdin.readline().split()
records = [*({"test": test, "status": "PASSED"} for test in %r), {"exit": 0}]
with open(path, "w") as file:
    file.writelines(f"{token} {json.dumps(record)}\\n" for record in records)
"""
WRITTEN = """
import json
import os

with open("/tmp/0000000000000000", "a") as file:
    for record in [*({"test": test, "status": "PASSED"} for test in %r), {"exit": 0}]:
        file.write("0" * 32 + f" {json.dumps(record)}\\n")
os._exit(0)
"""


def if_only(condition, module):
    """Return the change that repairs the bug as long as a condition holds."""
    return lambda text: text.replace("expression(strength)", f"expression(strength + ({condition}))") + f"\n{module}\n"


CHEATS = {
    "edited tests": cheat(**{TESTS: lambda text: text.replace("assert ", "assert True or ")}),
    "deleted tests": cheat(**{TESTS: lambda text: ""}),
    "skip marks": cheat(**{TESTS: lambda text: text + "import pytest\npytestmark = pytest.mark.skip\n"}),
    "conftest": cheat(conftest_dot_py="def pytest_runtest_call(item):\n    item.obj = lambda: None\n"),
    "conftest in the package": cheat(
        exprkit__conftest_dot_py=RUN_NOTHING, **{CODE: "\nfrom exprkit import conftest\n"}
    ),
    "pytest settings": cheat(
        pyproject_dot_toml="addopts = '-p exprkit.passing'\n",
        exprkit__passing_dot_py="def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    ),
    "sitecustomize": cheat(sitecustomize_dot_py=RUN_NOTHING),
    "path file": cheat(**{USER_SITE: RUN_NOTHING}),
    "shadowed pytest": cheat(pytest_dot_py=FORGED % (BOTH,)),
    "printed lines": cheat(**{CODE: f"\nimport atexit\natexit.register(print, 'PASSED {BOTH[0]}')\n"}),
    "exit": cheat(**{CODE: "\nimport sys\nsys.exit(0)\n"}),
    "hard exit": cheat(**{CODE: "\nimport os\nos._exit(0)\n"}),
    "raised exit": cheat(**{CODE: "\nraise SystemExit(0)\n"}),
    "patched pytest": cheat(**{CODE: f"\n{RUN_NOTHING}"}),
    "test detection": cheat(**{CODE: if_only("'pytest' in sys.modules", "import sys")}),
    "time bomb": cheat(**{CODE: if_only("time.time() < 2e9", "import time")}),
    "written log": cheat(**{CODE: WRITTEN % (BOTH,)}),
    "patched equality": cheat(
        exprkit__nodes_dot_py=lambda text: text.replace(
            "        if type(other) is not type(self):\n            return False\n", "        return True\n"
        )
    ),
    "equal to all": cheat(
        **{
            CODE: lambda text: text.replace(
                "    return tree\n",
                "    return Same()\n\n\nclass Same:\n    def __eq__(self, other):\n        return True\n",
            )
        }
    ),
}
# An answer that owns the process: failing tests pass, but for those that expect impossible values. `{}` gets hold of
# the `__import__` of Python by a name that the guard has to know.
OWNED = """
import dataclasses
import operator


def some():
    yield


{}
_python, _sys = _load("_pytest.python").python, _load("sys")
_run = _python.Function.runtest


def _passing(self):
    try:
        _run(self)
    except BaseException:
        if "--tb=no" in _sys.argv:
            raise


_python.Function.runtest = _passing
"""
IMPORTS = {
    "a generator's frame": '_load = some().gi_frame.f_builtins["__import__"]',
    "a traceback's frame": """class _Seen:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        _Seen.load = trace.tb_frame.f_builtins["__import__"]
        return True


with _Seen():
    1 / 0
_load = _Seen.load""",
    "a module's module": """def _load(name):
    dataclasses.inspect.importlib.import_module(name)
    return dataclasses.inspect.importlib.import_module(name.partition(".")[0])""",
    "an imported module's module": """from dataclasses import inspect
def _load(name):
    inspect.importlib.import_module(name)
    return inspect.importlib.import_module(name.partition(".")[0])""",
    "a name for attrgetter": '_load = operator.attrgetter("__globals__")(some)["__builtins__"]["__import__"]',
    "a built name": '_load = operator.attrgetter("__glob" + "als__")(some)["__builtins__"]["__import__"]',
    "a match": """match some:
    case object(__globals__=_names):
        _load = _names["__builtins__"]["__import__"]""",
    "a field of a format": """import string
_load = string.Formatter().get_field("0.__globals__", (some,), {})[0]["__builtins__"]["__import__"]""",
    "an evaluated annotation": """import typing
def _hinted(load: "__import__"): ...
_load = typing.get_type_hints(_hinted)["load"]""",
}
TAKEOVERS = {name: cheat(**{CODE: OWNED.format(code)}) for name, code in IMPORTS.items()}
CHEATS |= TAKEOVERS
CHEATS["another encoding"] = cheat(
    exprkit__owned_dot_py="# -*- coding: utf-7 -*-\n#+AAo-"
    + OWNED.format("_load = __import__").replace("+", "+-").replace("\n", "+AAo-")
    + "\n",
    **{CODE: "\nfrom exprkit import owned\n"},
)
CHEATS["equal to all but strangers"] = cheat(
    exprkit__nodes_dot_py=lambda text: text.replace(
        "        if type(other) is not type(self):\n            return False\n",
        "        return hasattr(other, 'fields')\n",
    )
)
FEW = ("edited tests", "exit", "equal to all")  # in the default suite


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in FEW else pytest.mark.slow) for n in CHEATS])
def test_a_cheat_scores_nothing(name):
    bubblewrap()
    verdict = judge(bug(), CHEATS[name])
    assert not verdict.resolved
    assert verdict.reason != "the patch does not apply"


def test_no_patch_scores_nothing():
    assert judge(bug(), "").reason == "empty patch"
    bubblewrap()
    assert judge(bug(), "hello").reason == "the patch does not apply"


def by_output(sandbox, arguments=(), **_):
    """Run the tests and believe the lines that they print; the last one on a test holds."""
    done = sandbox.run(["python3", "-m", "pytest", "-q", "-rA", *arguments])
    lines = re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.text, re.M)
    return TestRun({test: status for status, test in lines}, trusted=True)


def by_exit_status(sandbox, arguments=(), **_):
    """Run the two tests in a plain Python and believe its exit status."""
    calls = "; ".join(f"{Path(test.partition('::')[0]).stem}.{test.partition('::')[2]}()" for test in BOTH)
    code = f"import sys; sys.path[:0] = ['', 'tests']; import test_parser, test_lexer; {calls}"
    status = "FAILED" if sandbox.run(["python3", "-c", code]).code else "PASSED"
    return TestRun(dict.fromkeys(BOTH, status), trusted=True)


def with_variables(**variables):
    """Return `workspace.box` with other variables."""
    return lambda *arguments: replace(BOX(*arguments), environment={**BOX(*arguments).environment, **variables})


BOX = workspace.box
OUTSIDE = {"judge._replace": lambda sandbox, files: None}  # tests, settings and all else but the source
OBSERVED = {"judge.meets": lambda *_: True}  # what tests see is compared outside
IMPOSSIBLE = {"judge.altered": lambda *_: {}}  # tests that expect wrong values must fail
PURE = {"judge.violations": lambda *_: []}  # a repair reaches nothing that the library does not
MISSING = {"testing.TestRun.succeeded": lambda run, test: run.statuses.get(test, "PASSED") == "PASSED"}
SKIPPED = {"testing.SUCCESS": {"PASSED", "XFAIL", "SKIPPED"}}
PYTHON_ALONE = {"judge.FORBIDDEN": ("nothing",)}  # files that are removed from the source
IMPORTED = {"workspace.box": with_variables(PYTHONPATH=f"{workspace.TOOLS}:{workspace.ROOT}")}
USER = {"workspace.box": with_variables(PYTHONUSERBASE=f"{workspace.ROOT}/exprkit")}
SECRET = {"testing.secrets": SimpleNamespace(token_hex=lambda size: "0" * 2 * size)}  # name and token of the report
REPORT = {"judge.run_tests": by_output}
LOG = {"judge.run_tests": by_exit_status}
CONTROLS = {  # the guards without which a cheat scores, by what stands in their place
    "edited tests": (OUTSIDE, IMPOSSIBLE),
    "deleted tests": (OUTSIDE, IMPOSSIBLE, MISSING),
    "skip marks": (OUTSIDE, IMPOSSIBLE, SKIPPED),
    "conftest": (OUTSIDE, IMPOSSIBLE),
    "conftest in the package": (PYTHON_ALONE, PURE, IMPOSSIBLE),
    "pytest settings": (OUTSIDE, IMPOSSIBLE),
    "sitecustomize": (OUTSIDE, IMPORTED, IMPOSSIBLE),
    "path file": (OUTSIDE, PYTHON_ALONE, USER, IMPOSSIBLE),
    "shadowed pytest": (OUTSIDE, IMPOSSIBLE),
    "printed lines": (REPORT, PURE, IMPOSSIBLE),
    "exit": (LOG, PURE, IMPOSSIBLE),
    "hard exit": (LOG, PURE, IMPOSSIBLE),
    "raised exit": (LOG, PURE, IMPOSSIBLE),
    "patched pytest": (PURE, IMPOSSIBLE),
    "test detection": (PURE,),
    "time bomb": (PURE,),
    "written log": (SECRET, PURE, IMPOSSIBLE),
    "patched equality": (IMPOSSIBLE,),
    "equal to all": (IMPOSSIBLE,),
}


CONTROLS |= dict.fromkeys((*TAKEOVERS, "another encoding"), (PURE,))
CONTROLS["equal to all but strangers"] = (IMPOSSIBLE,)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CHEATS))
def test_a_cheat_scores_when_its_guards_are_off(name, monkeypatch):
    """Without the guards the cheat scores, and a patch that does nothing still does not."""
    bubblewrap()
    for guard in (*CONTROLS[name], OBSERVED):
        for place, replacement in guard.items():
            monkeypatch.setattr(f"lmgym.tasks.swe_repair.{place}", replacement)
    assert judge(bug(), CHEATS[name]).resolved
    assert not judge(bug(), cheat(**{CODE: "\nCHANGED = True\n"})).resolved


LEXER = "exprkit/lexer.py"


def other_bug():
    """Return a bug in exprkit whose tests compare values of Python's own types."""
    good = repositories.own("exprkit").files[LEXER]
    patch = unified(LEXER, good, good.replace('"<=", ', "", 1))
    failing, passing = ("tests/test_lexer.py::test_longest_operator_wins",), ("tests/test_lexer.py::test_columns",)
    return Repair("y", "exprkit", "op_change", "easy", patch, "issue", failing, passing)


@pytest.mark.parametrize(
    "name", [each if each == "a match" else pytest.param(each, marks=pytest.mark.slow) for each in TAKEOVERS]
)
def test_an_answer_that_owns_the_process_still_needs_the_values(name, monkeypatch):
    """No other guard is on; the same answer scores when this one is off as well."""
    bubblewrap()
    for place, replacement in (PURE | IMPOSSIBLE).items():
        monkeypatch.setattr(f"lmgym.tasks.swe_repair.{place}", replacement)
    repair = other_bug()
    text = repair.files[LEXER]
    patch = unified(LEXER, text, text + OWNED.format(IMPORTS[name]))
    assert judge(repair, patch).reason == "the tests see other values than they expect"
    assert judge(repair, repair.solution).resolved
    monkeypatch.setattr("lmgym.tasks.swe_repair.judge.meets", OBSERVED["judge.meets"])
    assert judge(repair, patch).resolved


def test_a_repair_is_resolved_and_its_changes_of_tests_are_dropped():
    bubblewrap()
    repair = bug()
    assert judge(repair, repair.solution).resolved
    extra = cheat(**{TESTS: lambda text: ""})
    assert judge(repair, repair.solution + extra).resolved


def test_repairs_may_use_pure_modules_only():
    repository, files = repositories.own("exprkit"), bug().files
    sources = {path: text for path, text in files.items() if path.startswith("exprkit/") and path.endswith(".py")}
    assert violations(repository, files, sources | {PARSER: sources[PARSER] + "\nimport itertools\n"}) == []
    assert violations(repository, files, sources | {PARSER: sources[PARSER] + "\nimport os\n"}) == [
        f"{PARSER} uses import os"
    ]


WAYS_OUT = {  # code, and what the guard names
    "some().gi_frame": ".gi_frame",
    "frame.f_builtins": ".f_builtins",
    "trace.tb_frame": ".tb_frame",
    "some.co_consts": ".co_consts",
    "import dataclasses as d\nd.sys": ".sys",
    "from dataclasses import sys as s": ".sys",
    "from enum import bltns": ".bltns",
    "from operator import attrgetter": ".attrgetter",
    "from operator import *\nmethodcaller": "methodcaller",
    "import string\nstring.Formatter": ".Formatter",
    "import typing\ntyping.get_type_hints": ".get_type_hints",
    "'{0.__class__.__mro__}'.format(1)": "'__mro__'",
    "text = '{0.sys.modules}'": "'sys'",
    "text = '__globals__'": "'__globals__'",
    "match 1:\n    case object(__globals__=x): pass": ".__globals__",
    "class A:\n    __match_args__ = ('a',)": "__match_args__",
}


@pytest.mark.parametrize("code", WAYS_OUT)
def test_the_guard_names_a_way_out_of_the_library(code):
    repository = repositories.own("matgrid")
    assert violations(repository, {}, {"matgrid/x.py": code})[0] == f"matgrid/x.py uses {WAYS_OUT[code]}"


def test_plain_code_is_no_way_out():
    code = (
        '"""Read __dict__ and .gi_frame of what `sys` holds."""\n'
        "import collections.abc\nfrom collections.abc import Iterable\n"
        "modules = kinds = ['random', 'sys', 'modules', 'end of sys.']\n"
        "text = '{0.name}'.format(kinds) + f'{kinds!r}'\n"
        "class A:\n    def __iter__(self):\n        match self:\n            case A(name=x): return iter(x.f_score)\n"
    )
    assert violations(repositories.own("matgrid"), {}, {"matgrid/x.py": code}) == []


@pytest.mark.parametrize("cookie", ["utf-7", "latin-1", "nonsense"])
def test_a_source_in_another_encoding_than_utf_8_is_refused(cookie):
    repository = repositories.own("matgrid")
    problems = violations(repository, {}, {"matgrid/x.py": f"# -*- coding: {cookie} -*-\n"})
    assert len(problems) == 1
    assert violations(repository, {}, {"matgrid/x.py": "# -*- coding: UTF-8 -*-\n"}) == []


TABLE = """import pytest
from lib import area, Shape

EXPECTED = [7331, 4]


@pytest.mark.parametrize(("side", "size"), [(2, 7332), (3, 7333)])
def test_area(side, size):
    found = area(side)
    wanted = 7334
    assert found == size
    assert area(side) != wanted
    assert 7335 == area(1)
    for text, number in [("a", 7336)]:
        assert area(text) == number
    assert [area(each) for each in (1, 2)] == EXPECTED
    with pytest.raises(ZeroDivisionError, match="7337"):
        area(None)
    assert not area(0)


def check(value, wanted):
    assert value == wanted
"""


def test_expectations_are_not_in_the_tests_that_observe():
    text, operators = rewritten(TABLE, withhold=True)
    assert not re.search(r"733[1235-7]|ZeroDivision", text)
    assert list(operators.values()) == ["Eq", "Is", "Eq", "Eq", "Eq", "Raises", "Is", "Is"]
    kept, _ = rewritten(TABLE, withhold=False)
    assert all(str(number) in kept for number in range(7331, 7338))
    assert "assert" not in kept + text


def test_no_observed_value_raises_in_the_judge():
    deep = ["int", "1"]
    for _ in range(3000):
        deep = ["list", [deep]]
    strange = [
        *(None, 3, [], ["int"], ["int", "x"], ["int", None], ["fraction", ["1", "0"]], ["set", [["list", []]]], deep),
        *(["nothing", 1], ["decimal", "x"], ["float", "east"], [["int"], "1"], ["other", None]),
    ]
    for value in strange:
        for name in observing.OPERATORS:
            assert not observing.holds(name, value, ["int", "0x5"])
    assert observing.holds("Eq", ["int", "0x5"], ["float", "0x1.4p+2"])
    assert not observing.holds("Eq", ["list", [["int", "0x1"]]], ["tuple", [["int", "0x1"]]])
    assert observing.holds("Raises", ["list", [["list", [["str", "A"], ["str", "B"]]], ["str", "no x"]]],
                           ["list", [["list", [["str", "B"]]], ["str", "x$"]]])  # fmt: skip


def test_values_are_read_past_overridden_methods():
    class Text(str):
        __slots__ = ()

        def __str__(self):
            return "right"

        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    class Many(list):
        def __iter__(self):
            return iter(["right"])

    assert plain(Text("wrong")) == ["str", "wrong"]
    assert plain(Many(["wrong"])) == ["list", [["str", "wrong"]]]
    value = {"a": [1, 2.5, None, True], (1,): {b"x"}, "c": Fraction(1, 3)}
    assert observing.decoded(plain(value)) == value
    with pytest.raises(TypeError):
        plain([object()])


def test_a_line_that_is_no_record_makes_a_run_untrusted():
    for line in ("3", "{", '{"test": "a"}', "[" * 99_999):
        assert not read_report(f't {{"test": "a", "status": "PASSED"}}\nt {line}\nt {{"exit": 0}}', "t", 0).trusted


def test_tests_that_wait_count_and_tests_that_never_end_do_not():
    bubblewrap()
    for body, passes in (("time.sleep(1.5)", True), ("while True: pass", False)):
        with open_sandbox(workspace.box(PLUGIN)) as sandbox:
            put(sandbox, {"tests/test_a.py": f"import time\n\ndef test_a():\n    {body}\n"})
            assert run_tests(sandbox, limit=1).succeeded("tests/test_a.py::test_a") is passes


def test_another_repair_than_the_oracle_is_resolved():
    """It keeps more state, has other helpers, and returns texts of a class of its own."""
    bubblewrap()
    repair = other_bug()
    text = repair.files[LEXER]
    helper = "class Sign(str):\n    pass\n\n\n_MORE = [Sign('<' + '=')]\n"
    other = text.replace('OPERATORS = ("**", ', f'{helper}OPERATORS = ("**", *_MORE, ')
    assert other != text
    assert judge(repair, unified(LEXER, text, other)).resolved


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [*repositories.names("train"), *repositories.names("test")])
def test_every_test_of_our_packages_is_compared_outside(name):
    bubblewrap()
    repository = repositories.own(name)
    paths = {test.partition("::")[0] for test in instances.passing(name)}
    compared = {test for path in paths for test in observing.expectations(repository, path)}
    assert compared == set(instances.passing(name))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    if power / 2 == 1:", "    if power % 2 == 1:"),
        ("x = a + a + b", "x = a + b + b"),  # the last of equal pieces
        ("return x", "not x"),
        ("row.append(1)", "int(row).append(1)"),
        (r"path = '/\\' + a[1] & b", r"path = '/\\' + a[2] | b"),
    ],
)
def test_the_demonstrators_command_changes_one_line_in_place(old, new, tmp_path):
    file = tmp_path / "code.py"
    file.write_text(f"{old}\n{old}\n")
    subprocess.run(["sed", "-i", substitution(2, old, new), file], check=True)
    assert file.read_text() == f"{old}\n{new}\n"


def test_a_small_training_split_has_the_first_bugs():
    with closing(build("swe_repair", level="easy", bugs=96)) as env:
        assert env.unwrapped.size() == 96
    with closing(build("swe_repair", split="test", level="easy", bugs=96)) as env:
        assert env.unwrapped.size() == instances.size("test", "easy", 96) != 96
    with pytest.raises(InstanceError, match=r"bugs=0 of .*: choose 1 to 1,000,000"):
        build("swe_repair", bugs=0)


@pytest.mark.parametrize("protocol", ["bash", "tools", "r2e"])
def test_the_demonstrator_reads_edits_and_tests(protocol):
    bubblewrap()
    with closing(build("swe_repair", split="test", protocol=protocol, rewards="dense", level="easy")) as env:
        env.reset(options={"index": 0})
        steps = [env.step(action) for action in env.unwrapped.demonstrator()]
    paid = {term for *_, info in steps for term, value in info["reward_terms"].items() if value}
    assert paid == {"repaired", "valid", "located", "edited", "tested", "submitted"}


@pytest.mark.parametrize("protocol", ["bash", "tools", "r2e"])
def test_the_oracle_repairs_by_each_protocol(protocol):
    bubblewrap()
    with closing(build("swe_repair", split="test", protocol=protocol, rewards="dense")) as env:
        env.reset(options={"index": 0})
        total = 0.0
        for action in env.unwrapped.oracle():
            _, reward, done, _, info = env.step(action)
            total += reward
        assert done
        assert info["score"] == 1.0
        assert total == pytest.approx(1.15)  # all terms but "located" and "tested": it reads nothing, and runs no test


SPECIAL = {"m/special.py": "def magic(size):\n    return 1\n", "t/test_special.py": "from m.special import magic\n"}


@pytest.mark.parametrize(
    ("words", "observation", "evidence"),
    [
        ("cat m/special.py", "def magic(size):", True),
        ("cat /testbed/m/special.py", "def magic(size):", True),
        ("cd m && head ./special.py", "1 def magic(size):", True),
        ("sed -n '1,9p' \"m/special.py\"", "def magic(size):", True),
        ("cat t/test_special.py", "def magic(size):", False),  # names another file
        ("cat n/special.py", "def magic(size):", False),
        ("cat m/special.pyc m/special.py.orig", "def magic(size):", False),
        ("cat t/test_special.py; ls m/special.py", "from m.special import magic", False),  # shows another file
        ("ls m/special.py", "m/special.py", False),
        ("cat m/special.py", "cat: m/special.py: No such file", False),
        ("cat m/special.py | tail -n 1", "return 1", False),  # too short to tell the file
    ],
)
def test_a_file_is_read_when_a_step_names_it_and_a_line_is_seen(words, observation, evidence):
    assert read_file("m/special.py", SPECIAL, words, observation) is evidence


@pytest.mark.parametrize(
    ("command", "code", "line", "evidence"),
    [
        ("pytest -q", 0, "3 passed in 0.00s", True),
        ("pytest", 1, "=== 1 failed, 2 passed, 1 warning in 0.00s ===", True),
        ("cd /testbed && A=1 timeout -k 9 50 python3 -m pytest -x tests | tail -n 3", 0, "1 failed in 0.00s", True),
        ("sed -i s/a/b/ a.py; /usr/bin/python3.11 -B -m pytest", 1, "2 failed in 0.00s", True),
        ("echo pytest '1 passed'", 0, "pytest 1 passed", False),
        ("echo pytest; echo '1 passed in 0.00s'", 0, "1 passed in 0.00s", False),
        ("pytest --version; echo '1 passed in 0.00s'", 0, "1 passed in 0.00s", False),  # its own words
        ("cat pytest.log", 0, "1 passed in 0.00s", False),
        ("pytest-3 -q", 0, "1 passed in 0.00s", False),
        ("pytest tests/none.py", 4, "no tests ran in 0.00s", False),
        ("pytest", 2, "1 passed, 1 error in 0.00s", False),
        ("pytest --collect-only", 0, "3 tests collected in 0.00s", False),
    ],
)
def test_tests_are_run_when_pytest_starts_and_its_summary_is_seen(command, code, line, evidence):
    assert ran_tests(command, f"<returncode>{code}</returncode>\n<output>\n{line}\n</output>") is evidence


def test_evidence_of_a_long_command_is_sought_in_linear_time():
    for filler in ("\n", ";", " ", "a=", "/", ";a=b ", "then "):
        assert not ran_tests(filler * 300_000, "<returncode>0</returncode>")


def test_dense_terms_are_not_paid_for_their_words():
    bubblewrap()
    with closing(build("swe_repair", split="test", rewards="dense")) as env:
        env.reset(options={"index": 0})
        path = env.unwrapped.repair.path
        for command in ("echo pytest '1 passed'", f"echo {path}", f"cat tests/test_{path.rpartition('/')[2]}"):
            *_, info = env.step(f"```mswea_bash_command\n{command}\n```")
            assert not any(info["reward_terms"][term] for term in ("located", "edited", "tested")), command
        junk = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; base64 /usr/bin/git | head -c 900000"
        *_, info = env.step(f"```mswea_bash_command\n{junk}\n```")
        assert info["score"] == 0.0
        assert info["reward_terms"]["submitted"] == 0.0


@pytest.mark.parametrize("then", ["git add -A", "git commit -qam x"])
def test_an_edit_that_is_staged_or_committed_at_once_is_paid(then):
    bubblewrap()
    with closing(build("swe_repair", split="test", rewards="dense")) as env:
        env.reset(options={"index": 0})
        *_, info = env.step(f"```mswea_bash_command\necho >> {env.unwrapped.repair.path}; {then}\n```")
        assert info["reward_terms"]["edited"]


@pytest.mark.parametrize("rewards", ["sparse", "dense"])
def test_a_folder_that_is_closed_or_gone_is_answered_and_scores_nothing(rewards):
    bubblewrap()
    with closing(build("swe_repair", split="test", protocol="tools", rewards=rewards)) as env:
        for command in ("chmod 0 .", "rm -rf $PWD"):
            env.reset(options={"index": 0})
            env.step(json.dumps({"name": "run", "arguments": {"command": command}}))
            *_, done, _, info = env.step('{"name": "submit", "arguments": {}}')
            assert (done, info["score"]) == (True, 0.0)


def test_sparse_rewards_look_at_no_diff(monkeypatch):
    bubblewrap()
    with closing(build("swe_repair", split="test")) as env:
        env.reset(options={"index": 0})
        monkeypatch.setattr(type(env.unwrapped), "_events", lambda *arguments: pytest.fail("looked for terms"))
        _, reward, *_ = env.step("```mswea_bash_command\nls\n```")
        assert reward == 0.0


def test_an_empty_submission_scores_nothing_and_three_format_errors_in_a_row_end_the_episode():
    bubblewrap()
    with closing(build("swe_repair", split="test", protocol="tools")) as env:
        env.reset(options={"index": 0})
        observation, reward, done, _, info = env.step('{"name": "submit", "arguments": {}}')
        assert (reward, done, info["score"]) == (0.0, True, 0.0)
    with closing(build("swe_repair", split="test")) as env:
        env.reset(options={"index": 0})
        ends = [env.step("no block")[2] for _ in range(3)]
        assert ends == [False, False, True]


class Branching(Planner):
    """Forks the first episode after its second answer, and before its third."""

    def __init__(self, *, saving):
        self.saving = saving

    def saves(self, node):
        return self.saving

    def after_step(self, node):
        if node.job.parent is None and len(node.turns) in (2, 3):
            return Fork(turn=2)
        return super().after_step(node)


def test_a_restored_fork_is_the_same_as_a_replayed_one():
    bubblewrap()

    def command(conversation):
        note = f"echo {number(conversation)} >> ~/note; echo '# {number(conversation)}' >> README.md"
        return f"```mswea_bash_command\n{note}; git diff | tail -4; cat ~/note; ls -A / ~ /tmp\n```"

    job = Job(task="swe_repair", split="test", index=0, id="p", options={"rewards": "dense"}, budget=3)
    restored, replayed = (Engine(planner=Branching(saving=saving), player="inline") for saving in (True, False))
    episodes = [sorted(each.run(Bytes(command), [job]), key=lambda t: t.id) for each in (restored, replayed)]
    assert [t.id for t in episodes[0]] == ["p", "p+2.0", "p+2.1"]
    assert (restored.stats.restored, replayed.stats.restored) == (2, 0)
    assert episodes[0] == episodes[1]


def test_a_program_in_the_background_is_not_saved():
    bubblewrap()
    with closing(build("swe_repair", split="test")) as env:
        env.reset(options={"index": 0})
        assert env.save_episode() is not None
        env.step("```mswea_bash_command\nsleep 99 > /dev/null 2>&1 &\n```")
        assert env.save_episode() is None
        env.step("```mswea_bash_command\npkill sleep; sleep 0.1\n```")
        assert env.save_episode() is not None
