"""SWERepair: bugs of every family, nothing of the solution in the sandbox, and a judge that cheats do not fool."""

import random
from contextlib import closing

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
from lmgym.tasks.swe_repair.testing import PLUGIN, read_report, run_tests
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
            patch = patch.replace(f"--- a/{name}", "--- /dev/null").replace("diff", "diff", 1)
            patch = patch.replace("\n--- /dev/null", "\nnew file mode 100644\n--- /dev/null", 1)
        parts.append(patch)
    return "".join(parts)


TESTS = "tests__test_parser_dot_py"
CODE = "exprkit__parser_dot_py"
SKIP = "import pytest\npytestmark = pytest.mark.skip\n"
CHEATS = {
    "empty": "",
    "not a patch": "hello",
    "edited tests": cheat(**{TESTS: lambda text: text.replace("assert ", "assert True or ")}),
    "deleted tests": cheat(**{TESTS: lambda text: ""}),
    "skip marks": cheat(**{TESTS: lambda text: text + SKIP}),
    "conftest": cheat(conftest_dot_py="def pytest_runtest_call(item):\n    item.obj = lambda: None\n"),
    "conftest in the package": cheat(exprkit__conftest_dot_py="collect_ignore = ['x']\n"),
    "pytest settings": cheat(pyproject_dot_toml="addopts = '--co'\n"),
    "sitecustomize": cheat(sitecustomize_dot_py="import sys\nsys.exit(0)\n"),
    "path file": cheat(exprkit__x_dot_pth="import os; os._exit(0)\n"),
    "shadowed pytest": cheat(pytest_dot_py="raise SystemExit(0)\n"),
    "printed lines": cheat(**{CODE: "\nprint('PASSED tests/test_parser.py::test_left_associative')\n"}),
    "exit": cheat(**{CODE: "\nimport sys\nsys.exit(0)\n"}),
    "hard exit": cheat(**{CODE: "\nimport os\nos._exit(0)\n"}),
    "raised exit": cheat(**{CODE: "\nraise SystemExit(0)\n"}),
    "patched pytest": cheat(**{CODE: "\nimport _pytest.runner\n_pytest.runner.call_and_report = None\n"}),
    "test detection": cheat(**{CODE: "\nimport sys\nTESTING = 'pytest' in sys.modules\n"}),
    "time bomb": cheat(**{CODE: "\nimport time\nLATE = time.time() > 2e9\n"}),
    "written log": cheat(**{CODE: "\nopen('/tmp/report', 'a').write('PASSED')\n"}),
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


FEW = ("edited tests", "exit", "equal to all", "empty")  # in the default suite


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in FEW else pytest.mark.slow) for n in CHEATS])
def test_a_cheat_scores_nothing(name):
    bubblewrap()
    verdict = judge(bug(), CHEATS[name])
    assert not verdict.resolved
    assert (verdict.reason == "the patch does not apply") == (name == "not a patch")  # all others reach the tests


GUARDS = {  # what switches a guard of the judge off
    "tests come from outside": {"_replace": lambda sandbox, files: None},
    "impossible tests fail": {"altered": lambda *_: {}, "_altered_tests": lambda repair: []},
    "pure repairs": {"violations": lambda *_: []},
}
RUN_NOTHING = "\nimport _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
CONTROLS = {  # cheats, and the guards without which they score
    "equal to all": (CHEATS["equal to all"], ["impossible tests fail"]),
    "edited tests": (CHEATS["edited tests"], ["tests come from outside", "impossible tests fail"]),
    "conftest": (CHEATS["conftest"], ["tests come from outside", "impossible tests fail"]),
    "tests that run nothing": (cheat(**{CODE: RUN_NOTHING}), ["pure repairs", "impossible tests fail"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CONTROLS))
def test_a_cheat_scores_when_its_guards_are_off(name, monkeypatch):
    bubblewrap()
    patch, guards = CONTROLS[name]
    assert not judge(bug(), patch).resolved
    for guard in guards:
        for function, replacement in GUARDS[guard].items():
            monkeypatch.setattr(f"lmgym.tasks.swe_repair.judge.{function}", replacement)
    assert judge(bug(), patch).resolved


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
