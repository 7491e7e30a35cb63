"""SWERepair: bugs of every family, nothing of the solution in the sandbox, and a judge that cheats do not fool."""

import random
import re
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmgym.backends.coding.files import put
from lmgym.backends.coding.steps import rendered
from lmgym.backends.sandbox import open_sandbox
from lmgym.env.coding import parse_bash, parse_r2e, parse_tools
from lmgym.env.registry import build
from lmgym.tasks.swe_repair import instances, repositories, workspace
from lmgym.tasks.swe_repair.diffs import applied, reverse, unified
from lmgym.tasks.swe_repair.hidden import hidden, visible
from lmgym.tasks.swe_repair.instances import Repair
from lmgym.tasks.swe_repair.integrity import violations
from lmgym.tasks.swe_repair.judge import judge
from lmgym.tasks.swe_repair.testing import PLUGIN, TestRun, read_report, run_tests
from tests.components import bubblewrap

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
IMPOSSIBLE = {"judge.altered": lambda *_: {}}  # tests that expect impossible values must fail
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


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CHEATS))
def test_a_cheat_scores_when_its_guards_are_off(name, monkeypatch):
    """Without the guards the cheat scores, and a patch that does nothing still does not."""
    bubblewrap()
    for guard in CONTROLS[name]:
        for place, replacement in guard.items():
            monkeypatch.setattr(f"lmgym.tasks.swe_repair.{place}", replacement)
    assert judge(bug(), CHEATS[name]).resolved
    assert not judge(bug(), cheat(**{CODE: "\nCHANGED = True\n"})).resolved


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
        assert total == pytest.approx(1.2)


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
