"""SWEBenchOfficial: fields, parsers, grades and predictions; whole episodes on images that the tests build."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from lmgym.backends.coding.patches import apply
from lmgym.backends.sandbox import open_sandbox
from lmgym.env.registry import build
from lmgym.errors import BackendError, InstanceError
from lmgym.tasks.swebench import env as environment
from lmgym.tasks.swebench import judge, log_parsers, predictions, repositories
from lmgym.tasks.swebench.grading import grade, status_of
from lmgym.tasks.swebench.instances import instance, load
from tests import components

FIXED = """def mean(values):
    return sum(values) / len(values) if values else 0.0


def largest(values):
    return max(values)
"""
BROKEN = FIXED.replace(" if values else 0.0", "")
TEST = """from stats import largest, mean


def test_mean():
    assert mean([1, 3]) == 2


def test_largest():
    assert largest([1, 3]) == 3
"""
ADDED = "\n\ndef test_mean_of_nothing():\n    assert mean([]) == 0\n"
F2P, P2P = ["test_stats.py::test_mean_of_nothing"], ["test_stats.py::test_mean", "test_stats.py::test_largest"]


def diff(tmp, before, after, name):
    """Return git's diff of one file."""
    for side, text in (("a", before), ("b", after)):
        (tmp / side).mkdir(exist_ok=True)
        (tmp / side / name).write_text(text)
    command = ["git", "diff", "--no-index", "--no-prefix", f"a/{name}", f"b/{name}"]
    text = subprocess.run(command, cwd=tmp, capture_output=True, text=True, check=False).stdout
    return text.replace(f"a/a/{name}", f"a/{name}")


def record(tmp, **fields):
    """Return an instance with the classic fields."""
    return {
        "instance_id": "Own__Stats-1",
        "repo": "own/stats",
        "base_commit": "HEAD",
        "version": "1.0",
        "patch": diff(tmp, BROKEN, FIXED, "stats.py"),
        "test_patch": diff(tmp, TEST, TEST + ADDED, "test_stats.py"),
        "problem_statement": "The mean of an empty list raises.",
        "hints_text": "",
        "created_at": "2024-01-01",
        "FAIL_TO_PASS": json.dumps(F2P),
        "PASS_TO_PASS": json.dumps(P2P),
        "environment_setup_commit": "",
        **fields,
    }


def test_classic_fields(tmp_path):
    classic = instance(record(tmp_path))
    assert classic.fail_to_pass == tuple(F2P)
    assert classic.pass_to_pass == tuple(P2P)
    assert not classic.synthetic
    assert repositories.directives("own/stats", classic.test_patch) == ["test_stats.py"]


@pytest.mark.parametrize(
    ("repo", "name", "image"),
    [
        ("django/django", "django__django-11099", "swebench/sweb.eval.x86_64.django_1776_django-11099:latest"),
        (
            "Project-MONAI/MONAI",
            "Project-MONAI__MONAI-907",
            "xingyaoww/sweb.eval.x86_64.project-monai_s_monai-907:latest",
        ),
    ],
)
def test_official_names_of_images(tmp_path, repo, name, image):
    official = instance(record(tmp_path, repo=repo, instance_id=name))
    assert official.image_name() == image
    assert official.image_name("mine/{id}:2") == f"mine/{name.lower()}:2"
    assert judge.box(official).python == "/opt/miniconda3/bin/python3"


def test_fields_of_version_5_and_of_swe_smith(tmp_path):
    five = instance(
        record(tmp_path, image="x/y", eval_script="true", log_parser="parse_log_django", eval_type="fail_only")
    )
    assert (five.image_name(), five.eval_script, five.log_parser, five.fail_only) == (
        "x/y",
        "true",
        "parse_log_django",
        True,
    )
    for row in (smith(tmp_path), smith(tmp_path, test_patch=None), smith(tmp_path, test_patch="")):
        assert instance(row).synthetic
        assert instance(row).image_name() == "smith/x"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"patch": None}, "the field patch is missing"),
        ({"FAIL_TO_PASS": "[not json"}, "FAIL_TO_PASS is no JSON list"),
        ({"PASS_TO_PASS": 3}, "PASS_TO_PASS is no list"),
        ({"PASS_TO_PASS": '"test"'}, "PASS_TO_PASS is no list"),
        ({"PASS_TO_PASS": [["a"]]}, r"PASS_TO_PASS holds \['a'\], which is no test"),
        ({"PASS_TO_PASS": "[" * 99_999}, "PASS_TO_PASS is no JSON list"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS is missing or empty"),
        ({"instance_id": "a\nb"}, "the field instance_id is no id"),
        ({"instance_id": ""}, "the field instance_id is no id"),
        ({"base_commit": ["x"]}, "the field base_commit is no text"),
        ({"problem_statement": "\ud800"}, "the field problem_statement has a lone surrogate"),
    ],
)
def test_bad_records_are_refused_in_one_line(tmp_path, fields, message):
    with pytest.raises(InstanceError, match=message) as caught:
        instance(record(tmp_path, **fields))
    assert "\n" not in str(caught.value)


def test_an_unknown_log_parser_is_refused_before_a_container_starts(tmp_path):
    row = record(tmp_path, eval_script="true", log_parser="parse_log_none")
    (tmp_path / "one.jsonl").write_text(json.dumps(row))
    env = build("swebench", split="test", data=tmp_path / "one.jsonl")
    with closing(env), pytest.raises(InstanceError, match="no log parser 'parse_log_none'"):
        env.reset(options={"index": 0})


def test_instances_are_read_from_files(tmp_path, monkeypatch):
    rows = [record(tmp_path), record(tmp_path, instance_id="own__stats-2")]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "x.json").write_text(json.dumps(rows))
    (tmp_path / "folder").mkdir()
    shutil.copy(tmp_path / "x.jsonl", tmp_path / "folder" / "test.jsonl")
    for name in ("x.jsonl", "x.json", "folder"):
        assert [each.instance_id for each in load(tmp_path / name, "test")] == ["Own__Stats-1", "own__stats-2"]
    monkeypatch.setenv("SWEBENCH_DATA", str(tmp_path / "x.jsonl"))
    with closing(build("swebench", split="test")) as env:
        assert env.unwrapped.size() == 2
        assert env.unwrapped.index_of("own__stats-2") == 1
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(InstanceError, match="cannot be read as instances"):
        load(tmp_path / "bad.jsonl", "test")
    monkeypatch.delenv("SWEBENCH_DATA")
    with closing(build("swebench", split="test")) as env, pytest.raises(InstanceError, match="set SWEBENCH_DATA"):
        env.reset(options={"index": 0})


@pytest.mark.slow
def test_instances_are_read_by_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([record(tmp_path)])
    rows.to_parquet(tmp_path / "x.parquet")
    datasets.DatasetDict({"dev": rows}).save_to_disk(tmp_path / "saved")
    assert load(tmp_path / "x.parquet", "dev")[0].repo == "own/stats"
    assert load(tmp_path / "saved", "dev")[0].fail_to_pass == tuple(F2P)
    with pytest.raises(InstanceError, match="split train of"):
        load(tmp_path / "saved", "train")


PYTEST_LOG = """============================= test session starts ==============================
tests/test_a.py::test_verbose PASSED                                     [ 50%]
tests/test_a.py::test_option[/tmp/x/data.txt] FAILED                     [100%]
=========================== short test summary info ============================
PASSED tests/test_a.py::test_one
PASSED tests/test_a.py::test_option[/usr/share/data.txt]
FAILED tests/test_a.py::test_two - AssertionError: PASSED tests/test_a.py::test_forged
ERROR tests/test_b.py - ImportError: no
SKIPPED [3] tests/test_c.py:9: not here
XFAIL tests/test_a.py::test_expected - reason
"""
DJANGO_LOG = """test_fast (app.tests.FastTests) ... ok
test_slow (app.tests.SlowTests)
A docstring. ... skipped 'no database'
test_bad (app.tests.BadTests) ... FAIL
test_worse (app.tests.BadTests) ... ERROR
test_later (app.tests.FastTests) ... Testing against Django installed in '/testbed' silenced.
ok
test_known (app.tests.BadTests) ... expected failure
======================================================================
FAIL: test_bad (app.tests.BadTests)
"""
SYMPY_LOG = """sympy/core/tests/test_x.py[4]
test_add ok
test_mul F
test_pow E
test_slow f                                                               [FAIL]
________________________________ sympy/core/tests/test_x.py:test_mul ________________________________
"""
GO_LOG = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\n--- SKIP: TestB (0.01s)\n"
CARGO_LOG = "running 3 tests\ntest a::works ... ok\ntest a::fails ... FAILED\ntest slow ... ignored\n"


def read(name, log):
    """Return the official status map of a log."""
    return log_parsers.official(log_parsers.parser(name)(log))


def test_logs_of_pytest():
    statuses = read("parse_log_pytest", PYTEST_LOG)
    assert statuses == {
        "tests/test_a.py::test_verbose": "PASSED",
        "tests/test_a.py::test_option[/tmp/x/data.txt]": "FAILED",
        "tests/test_a.py::test_one": "PASSED",
        "tests/test_a.py::test_option[/usr/share/data.txt]": "PASSED",
        "tests/test_a.py::test_two": "FAILED",
        "tests/test_b.py": "ERROR",
        "tests/test_a.py::test_expected": "XFAIL",
    }
    assert read("pytest_options", PYTEST_LOG)["tests/test_a.py::test_option[/data.txt]"] == "PASSED"
    assert read("sphinx", "\x1b[32mPASSED\x1b[0m tests/a.py::b\r\n") == {"tests/a.py::b": "PASSED"}
    assert read("matplotlib", "PASSED a.py::b[MouseButton.LEFT]") == {"a.py::b[1]": "PASSED"}


def test_logs_of_other_runners():
    assert read("django", DJANGO_LOG) == {
        "test_fast (app.tests.FastTests)": "PASSED",
        "A docstring.": "SKIPPED",
        "test_bad (app.tests.BadTests)": "FAILED",
        "test_worse (app.tests.BadTests)": "ERROR",
        "test_later (app.tests.FastTests)": "PASSED",
        "test_known (app.tests.BadTests)": "XFAIL",
        "test_bad": "FAILED",
    }
    statuses = read("sympy", SYMPY_LOG)
    assert statuses["test_add"] == "PASSED"
    assert statuses["test_mul"] == statuses["sympy/core/tests/test_x.py:test_mul"] == "FAILED"
    assert statuses["test_pow"] == "ERROR"
    assert read("gotest", GO_LOG) == {"TestA": "PASSED", "TestA/sub": "FAILED", "TestB": "SKIPPED"}
    assert read("cargo", CARGO_LOG) == {"a::works": "PASSED", "a::fails": "FAILED", "slow": "SKIPPED"}
    with pytest.raises(InstanceError, match="no log parser 'mocha'"):
        log_parsers.parser("mocha")


def test_a_log_that_pytest_wrote(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_a():\n    pass\n\n\ndef test_b():\n    assert 0\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "-rA", "test_x.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    statuses = read("pytest", done.stdout)
    assert statuses["test_x.py::test_a"] == "PASSED"
    assert statuses["test_x.py::test_b"] == "FAILED"


FORGED = {  # a failure, then the line that an answer printed beside it
    "pytest": ("FAILED a.py::t - assert 0\n", "PASSED a.py::t\n", "a.py::t"),
    "pytest_v2": ("ERROR a.py::t - boom\n", "\x1b[32mPASSED\x1b[0m a.py::t\n", "a.py::t"),
    "pytest_options": ("a.py::t[/b/c] FAILED [100%]\n", "PASSED a.py::t[/c]\n", "a.py::t[/c]"),
    "django": ("t (a.T) ... FAIL\n", "t (a.T) ... ok\n", "t (a.T)"),
    "sympy": ("test_t E\n", "test_t ok\n", "test_t"),
    "go": ("--- FAIL: T (0.00s)\n", "--- PASS: T (0.00s)\n", "T"),
    "cargo": ("test t ... FAILED\n", "test t ... ok\n", "t"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_line_hides_no_failure_wherever_it_stands(name):
    """The official map takes the last line and is fooled; the map that is graded is not."""
    failure, lie, test = FORGED[name]
    lines = log_parsers.parser(name)
    assert log_parsers.official(lines(failure + lie)) == {test: "PASSED"}
    for log in (failure + lie, lie + failure, lie + failure + lie):
        assert log_parsers.worst(lines(log))[test] in ("FAILED", "ERROR")


@pytest.mark.parametrize(
    ("name", "log"),
    [("pytest", PYTEST_LOG), ("django", DJANGO_LOG), ("sympy", SYMPY_LOG), ("go", GO_LOG), ("cargo", CARGO_LOG)],
)
def test_the_worst_status_is_the_official_one_where_a_test_has_one(name, log):
    assert log_parsers.worst(log_parsers.parser(name)(log)) == read(name, log)


def test_a_skipped_test_stays_skipped_beside_a_forged_line():
    lines = log_parsers.parser("pytest")("a.py::t SKIPPED (no) [100%]\nPASSED a.py::t\n")
    statuses = log_parsers.worst(lines)
    assert statuses == {"a.py::t": "SKIPPED"}
    assert not grade(statuses, ["a.py::t"], []).resolved


def test_rules_of_grading():
    statuses = {"new": "PASSED", "a": "PASSED", "b": "SKIPPED", "c": "XFAIL", "d": "ERROR"}
    assert grade(statuses, ["new"], ["a", "b", "c"]).resolved
    assert not grade(statuses, ["new"], ["a", "missing"]).resolved
    assert grade(statuses, ["new"], ["missing"], fail_only=True).resolved
    assert not grade(statuses, ["b"], []).resolved  # skipped is no success
    partial = grade(statuses, ["new", "d"], ["a"])
    assert (partial.fixed, partial.kept, partial.status) == (0.5, 1.0, "RESOLVED_PARTIAL")
    assert grade(statuses, ["d"], ["a"]).status == "RESOLVED_NO"


def test_an_id_cut_within_its_brackets_stands_for_what_starts_with_it():
    statuses = {"t::x[a b-1]": "PASSED", "t::x[a b-2]": "PASSED", "t::y[a-1]": "PASSED", "t::y[a-2]": "FAILED"}
    assert status_of("t::x[a", statuses) == "PASSED"
    assert status_of("t::y[a", statuses) == ""
    assert status_of("t::x", statuses) == ""


def test_only_what_stands_between_the_markers_counts(tmp_path):
    tests = "".join(f"PASSED {name}\n" for name in (*F2P, *P2P))
    own = instance(record(tmp_path))
    log = f"+ : '{repositories.START}'\n{tests}+ : '{repositories.END}'\n"
    assert judge.graded(own, log).resolved
    assert judge.graded(own, tests).reason == "the log has no test output"
    assert judge.graded(own, f"{log}{repositories.CODE} 0\n").resolved
    fake = judge.graded(own, f"{log}{repositories.CODE} 3\n")
    assert not fake.resolved
    assert fake.reason == "the tests end with 3, and the log names no failure"


def test_predictions_go_in_and_out(tmp_path):
    patches = {"a__b-1": "diff --git\n", "a__b-2": ""}
    for name in ("all.jsonl", "preds.json"):
        predictions.write(tmp_path / name, patches, model="m")
        assert predictions.read(tmp_path / name) == patches
    assert json.loads((tmp_path / "preds.json").read_text())["a__b-1"] == {
        "instance_id": "a__b-1",
        "model_name_or_path": "m",
        "model_patch": "diff --git\n",
    }
    for name in ("all.jsonl", "preds.json", "new.jsonl", "new.json"):
        for patch in ("w", "x"):
            predictions.append(tmp_path / name, "a__b-3", patch, model="m")
        assert predictions.read(tmp_path / name) == {**(patches if "new" not in name else {}), "a__b-3": "x"}
    assert [*json.loads((tmp_path / "preds.json").read_text())] == ["a__b-1", "a__b-2", "a__b-3"]
    for text in ("{", "[" * 99_999, "3", '[{"model_patch": ""}]', "[3]"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InstanceError):
            predictions.read(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/preds.json", "lies in no folder that exists"),
        ("preds.txt", "name a .jsonl or .json file"),
        ("folder.json", "is a folder"),
        ("list.json", "holds no object by instance"),
        ("lines.json", "cannot be read as predictions"),
    ],
)
def test_a_file_that_takes_no_predictions_is_refused_before_an_episode(tmp_path, name, message):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "lines.json").write_text("{}\n{}\n")
    with pytest.raises(InstanceError, match=message):
        build("swebench", split="test", predictions=tmp_path / name)


def test_a_prediction_that_cannot_be_written_is_no_fault_of_the_policy(tmp_path):
    for name in ("preds.json", "preds.jsonl"):
        with pytest.raises(BackendError, match="cannot be added"):
            predictions.append(tmp_path / "none" / name, "a__b-1", "x", model="m")


README = "one\ntwo\nthree\n"
RUNNER = """#!/bin/sh
python3 -c 'from stats import largest; assert largest([1, 3]) == 3' && outcome=PASSED || outcome=FAILED
echo "test_stats.py::test_largest $outcome"
[ $outcome = PASSED ]
"""


def smith(tmp, **fields):
    """Return an instance as SWE-smith gives them; its bug is that `largest` returns the smallest."""
    bug = diff(tmp, FIXED, FIXED.replace("max(", "min("), "stats.py")
    tests = {"FAIL_TO_PASS": ["test_stats.py::test_largest"], "PASS_TO_PASS": []}
    row = record(tmp, **{"image_name": "smith/x", "patch": bug, **tests, **fields})
    return row if "test_patch" in fields else {name: row[name] for name in row if name != "test_patch"}


@pytest.fixture
def good_repository(monkeypatch):
    """Let judge and environment open sandboxes with a good repository and a runner of its test, without Docker."""
    components.bubblewrap()

    def opened(box):
        path = f"{judge.ROOT}/bin:/opt/python/bin:/usr/bin:/bin"
        box = replace(box, image="", root=False, environment={**box.environment, "PATH": path})
        sandbox = open_sandbox(box)
        for name, text in (("stats.py", FIXED), ("test_stats.py", TEST), ("README.md", README), ("old.pyc", "kept")):
            sandbox.write(name, text.encode())
        sandbox.write("bin/pytest", RUNNER.encode(), mode=0o755)
        done = sandbox.run(
            "git init -q && echo '*.pyc' > .gitignore && git add -A && git add -f old.pyc && git commit -qm good"
        )
        assert done.code == 0, done.text
        sandbox.run("python3 -m compileall -q .")
        return sandbox

    monkeypatch.setattr(judge, "open_sandbox", opened)
    monkeypatch.setattr(environment, "open_sandbox", opened)


CHANGED = "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n {third}\n"


@pytest.mark.parametrize("third", ["three", "thrEE"])
def test_a_patch_that_leaves_the_bug_resolves_nothing_even_where_it_needs_fuzz(good_repository, tmp_path, third):
    """The folder is restored between the ways to apply a patch; the bug must stand in what it is restored to."""
    own = instance(smith(tmp_path))
    grade = judge.judge(own, CHANGED.format(third=third), judge.box(own))
    assert (grade.status, grade.reason) == ("RESOLVED_NO", "")
    fix = diff(tmp_path, FIXED.replace("max(", "min("), FIXED, "stats.py")
    assert judge.judge(own, CHANGED.format(third=third) + fix, judge.box(own)).resolved


def test_the_judges_repository_does_not_hold_the_solution_either(good_repository, tmp_path):
    own = instance(smith(tmp_path))
    buggy = FIXED.replace("max(", "min(")
    takes = (
        "import os\nos.system('git checkout -q HEAD -- stats.py; git checkout -q HEAD~1 -- stats.py')\n"
        "text = open('stats.py').read()\nexec(text if 'max(' in text else '')\n"
    )
    patch = diff(tmp_path, buggy, f"{buggy}\n\n{takes}", "stats.py")
    assert judge.judge(own, patch, judge.box(own)).status == "RESOLVED_NO"


def test_an_agent_finds_one_commit_with_the_bug_and_no_compiled_code_of_the_good_version(good_repository, tmp_path):
    (tmp_path / "smith.jsonl").write_text(json.dumps(smith(tmp_path)))
    options = {"data": tmp_path / "smith.jsonl", "predictions": tmp_path / "preds.json", "protocol": "tools"}
    with closing(build("swebench", split="test", **options)) as env:
        env.reset(options={"index": 0})
        sandbox = env.unwrapped.sandbox
        assert sandbox.run("git log --oneline | wc -l; grep -c max stats.py").text == "1\n0\n"
        assert sandbox.run("find . -name '*.pyc'").text == "./old.pyc\n"  # a file of the repository's own
        for action in env.unwrapped.oracle():
            *_, info = env.step(action)
        assert info["score"] == 1.0
    assert "stats.py" in predictions.read(tmp_path / "preds.json")["Own__Stats-1"]


PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
DOCKERFILE = f"""FROM base
USER root
COPY site /opt/python/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages
COPY testbed /testbed
COPY pytest /usr/local/bin/pytest
WORKDIR /testbed
ENV PATH=/opt/python/bin:/usr/local/bin:/usr/bin:/bin
RUN chmod 755 /usr/local/bin/pytest && git init -q && git add -A && \\
    git -c user.name=a -c user.email=a@b commit -q -m good
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Build an image with a repository in /testbed whose code has the bug, and one whose code is good."""
    components.docker()
    from lmgym.backends.sandbox import images

    context = tmp_path_factory.mktemp("context")
    (context / "site").mkdir()
    for name in PACKAGES:
        origin = Path(find_spec(name).origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, context / "site" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, context / "site")
    for folder in Path(find_spec("pluggy").origin).parents[1].glob("pluggy-*.dist-info"):
        shutil.copytree(folder, context / "site" / folder.name)
    (context / "pytest").write_text('#!/bin/sh\nexec python3 -m pytest "$@"\n')
    (context / "testbed").mkdir()
    (context / "testbed" / "test_stats.py").write_text(TEST)
    names = {}
    for kind, text in (("broken", BROKEN), ("good", FIXED)):
        (context / "testbed" / "stats.py").write_text(text)
        (context / "Dockerfile").write_text(DOCKERFILE)
        names[kind] = f"lmgym/test-swebench-{kind}:1"
        images.build(context, names[kind], base_image=images.base())
    yield names
    for name in names.values():
        images.delete(name)


def played(tmp, row, *actions, **options):
    """Play actions, or the oracle's, and return the last info and the texts."""
    (tmp / "one.jsonl").write_text(json.dumps(row) + "\n")
    data = tmp / f"one-{len(list(tmp.iterdir()))}.jsonl"
    shutil.copy(tmp / "one.jsonl", data)
    with closing(build("swebench", split="test", data=data, python="/opt/python/bin/python3", **options)) as env:
        texts = [env.reset(options={"index": 0})[0]["text"]]
        for action in actions or env.unwrapped.oracle():
            observation, *_, info = env.step(action)
            texts.append(observation["text"])
    return info, texts


SUBMIT = '{"name": "submit", "arguments": {}}'


@pytest.mark.parametrize(("protocol", "name"), [("bash", "out.jsonl"), ("tools", "preds.json")])
def test_a_classic_instance_is_resolved(image, tmp_path, protocol, name):
    out = tmp_path / name
    options = {"protocol": protocol, "image": image["broken"], "predictions": out}
    info, texts = played(tmp_path, record(tmp_path), **options)
    assert (info["score"], texts[-1]) == (1.0, "Submitted: RESOLVED_FULL.")
    assert "stats.py" in predictions.read(out)["Own__Stats-1"]


def test_an_empty_submission_resolves_nothing(image, tmp_path):
    info, texts = played(tmp_path, record(tmp_path), SUBMIT, protocol="tools", image=image["broken"])
    assert (info["score"], texts[-1]) == (0.0, "Submitted: empty patch.")


def test_a_forged_log_resolves_nothing(image, tmp_path):
    lines = "".join(f"print('PASSED {name}')\n" for name in (*F2P, *P2P))
    patch = diff(tmp_path, BROKEN, f"{BROKEN}\n{lines}import os\nos._exit(3)\n", "stats.py")
    own = instance(record(tmp_path))
    box = judge.box(own, image=image["broken"], python="/opt/python/bin/python3")
    grade = judge.judge(own, patch, box)
    assert not grade.resolved


def test_lines_printed_after_the_true_ones_resolve_nothing(image, tmp_path):
    """Two tests pass and one fails; the answer prints at exit, below the report, that this one passed as well."""
    lies = "".join(f"print('PASSED {name}')\n" for name in F2P)
    code = "".join(f"    {line}\n" for line in lies.splitlines())
    cheat = diff(tmp_path, BROKEN, f"import atexit\n\n\n@atexit.register\ndef _():\n{code}\n\n{BROKEN}", "stats.py")
    script = (
        "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n"
        f"git apply -v - <<'EOF'\n{record(tmp_path)['test_patch']}EOF\n"
        f": '{repositories.START}'\npytest -rA test_stats.py\n: '{repositories.END}'\n"
    )
    own = instance(record(tmp_path, image=image["broken"], eval_script=script, log_parser="parse_log_pytest"))
    box = judge.box(own, image=image["broken"], python="/opt/python/bin/python3")
    with open_sandbox(box) as sandbox:
        assert apply(sandbox, cheat)
        sandbox.write(judge.SCRIPT, script.encode())
        log = sandbox.run(["bash", judge.SCRIPT]).text
    output = log.partition(repositories.START)[2].rpartition(repositories.END)[0]
    assert read("pytest", output) == dict.fromkeys([*F2P, *P2P], "PASSED")  # the official harness resolves it
    assert (grade := judge.judge(own, cheat, box)).fixed == 0.0
    assert grade.kept == 1.0


def test_version_5_and_swe_smith_are_resolved(image, tmp_path):
    script = (
        "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n"
        f"git apply -v - <<'EOF'\n{record(tmp_path)['test_patch']}EOF\n"
        f": '{repositories.START}'\npytest -rA test_stats.py\n: '{repositories.END}'\n"
    )
    five = record(tmp_path, image=image["broken"], eval_script=script, log_parser="parse_log_pytest")
    assert played(tmp_path, five, protocol="tools")[0]["score"] == 1.0
    row = smith(tmp_path, image_name=image["good"], PASS_TO_PASS=["test_stats.py::test_mean"])
    assert played(tmp_path, row, protocol="tools")[0]["score"] == 1.0
    look = '{"name": "run", "arguments": {"command": "git log --all --oneline | wc -l; grep -c max stats.py"}}'
    info, texts = played(tmp_path, row, look, SUBMIT, protocol="tools")
    assert "<output>\n1\n0\n</output>" in texts[1]
    assert info["score"] == 0.0


def test_a_missing_image_is_one_line(image, tmp_path):
    with pytest.raises(InstanceError, match="no image 'none/such:1'") as caught:
        played(tmp_path, record(tmp_path), image="none/such:1")
    assert "\n" not in str(caught.value)


def test_a_file_of_predictions_is_graded(image, tmp_path):
    rows = [record(tmp_path), record(tmp_path, instance_id="own__stats-2")]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    predictions.write(tmp_path / "preds.json", {"Own__Stats-1": rows[0]["patch"]}, model="m")
    options = {"image": image["broken"], "python": "/opt/python/bin/python3"}
    lines = list(predictions.graded(tmp_path / "preds.json", str(tmp_path / "two.jsonl"), "test", **options))
    assert [line["resolved"] for line in lines] == [True, False]
    assert lines[1]["reason"] == "empty patch"
