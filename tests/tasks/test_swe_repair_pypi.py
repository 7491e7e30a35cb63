"""SWERepair's split pypi: libraries from pinned archives in the form of our packages, and nothing of them elsewhere."""

import sys
from contextlib import closing

import pytest

from lmgym.backends.coding.files import put
from lmgym.backends.sandbox import open_sandbox
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.swe_repair import SPEC, instances, pypi, repositories, workspace
from lmgym.tasks.swe_repair.altering import altered
from lmgym.tasks.swe_repair.diffs import unified
from lmgym.tasks.swe_repair.hidden import hidden, visible
from lmgym.tasks.swe_repair.instances import Repair
from lmgym.tasks.swe_repair.judge import judge
from lmgym.tasks.swe_repair.repositories import Repository
from tests.components import bubblewrap

PACKED = ("whl", "egg", "zip", "tar.gz")
REPAIRS = instances._fixed("pypi", "all")
FIRST = "inflection"  # the smallest library
NAMES = [pytest.param(name, marks=pytest.mark.slow) for name in pypi.BY_NAME]  # pip may have to fetch them


def library(name):
    """Return a library, or skip the test where pip reaches no index; another archive than the pinned one fails it."""
    bubblewrap()
    try:
        return repositories.named(name)
    except InstanceError as error:
        if "No matching distribution" not in str(error):
            raise
        pytest.skip(f"no archive of PyPI at hand: {error}")


def of(name):
    return [repair for repair in REPAIRS if repair.repository == name]


def test_at_least_five_libraries_are_played_and_never_trained_on():
    assert {repair.repository for repair in REPAIRS} == set(pypi.BY_NAME)
    assert len(pypi.BY_NAME) >= 5
    assert SPEC.held_out == ("pypi",)
    assert not set(repositories.names("train")) & set(pypi.BY_NAME)
    assert {repair.level for repair in REPAIRS} == {"easy", "medium", "hard"}


@pytest.mark.parametrize("name", NAMES)
def test_a_library_has_the_form_of_our_packages(name):
    repository = library(name)
    files = repository.files
    assert any(path.startswith("LICENSE") for path in files)
    assert any(path.startswith("README") for path in files)
    assert all(path.startswith((f"{repository.source}/", "tests/")) or "/" not in path for path in files)
    assert repository.modules()
    assert len(instances.passing(name)) >= 100
    rest = visible(files)
    counts = [sum(text.count("def test_") for path, text in each.items() if path.startswith("tests/"))
              for each in (files, rest)]  # fmt: skip
    assert 0.5 * counts[0] < counts[1] < 0.85 * counts[0]
    assert {path for path in files if files[path] != rest[path]} <= {path for path in files if "tests/" in path}
    for path, text in rest.items():
        if path.endswith(".py"):
            compile(text, path, "exec")
    for repair in of(name):
        assert repair.path in repository.modules()
        assert repair.files != files
        assert repair.fail_to_pass
        assert repair.pass_to_pass


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_nowhere_in_the_sandbox(name):
    source = library(name).source
    gone, broken = max(((lost(repair), repair) for repair in of(name)), key=lambda pair: len(pair[0]))
    assert len(gone) > 25  # so that no other file has this line by chance
    with open_sandbox(workspace.box()) as sandbox:
        put(sandbox, visible(broken.files))
        workspace.commit(sandbox)
        assert sandbox.run("git log --all --format=%H | wc -l").text.strip() == "1"
        assert sandbox.run("git reflog").text == ""
        assert sandbox.run("git fsck --unreachable --no-reflogs --lost-found").text == ""
        objects = sandbox.run(
            "git cat-file --batch-all-objects --batch-check | cut -d' ' -f1 | xargs -n1 git cat-file -p > /tmp/objects"
        )
        assert objects.code == 0
        sandbox.write("/tmp/line", gone.encode())
        for places in ("/testbed /tmp /home /dev/shm /var --exclude=line", "/opt /usr --include=*.py"):
            found = sandbox.run(f"grep -srlF -f /tmp/line {places}")
            assert found.text == ""
            assert not found.timed_out
        names = ("setuptools*.whl", *(f"{source}-*.{end}" for end in PACKED))
        packed = " -o ".join([f"-path '*/{source}/*.pyc'", *(f"-name '{name}'" for name in names)])
        assert sandbox.run(f"find /opt /usr /testbed \\( {packed} \\)").text == ""
        for python in ("python3", "/usr/bin/python3"):
            loaded = f"import {source}"
            missing = f"No module named '{source}'"
            assert missing not in sandbox.run([python, "-c", loaded]).text
            assert missing in sandbox.run([python, "-c", loaded], folder="/").text


def lost(repair):
    """Return the longest line of the good version that the broken one nowhere has."""
    text = "".join(visible(repair.files).values())
    lines = [line[1:].strip() for line in repair.patch.splitlines() if line[:1] == "-" and line[:3] != "---"]
    return max((line for line in lines if line not in text), key=len, default="")


@pytest.mark.parametrize("name", NAMES)
def test_oracle_and_empty_patch(name):
    library(name)
    repair = of(name)[0]
    assert judge(repair, repair.solution).reason == "resolved"
    assert not judge(repair, "").resolved
    text = repair.files[repair.path]
    assert judge(repair, unified(repair.path, text, f"{text}\nCHANGED = True\n")).reason == "tests fail"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", list(pypi.BY_NAME))
def test_every_instance_is_resolved_by_its_solution_alone(name):
    library(name)
    for repair in of(name):
        assert judge(repair, repair.solution).resolved, repair.instance_id
        assert not judge(repair, "").resolved


@pytest.mark.slow
def test_an_episode_of_the_split():
    library(FIRST)
    index = REPAIRS.index(of(FIRST)[0])
    with closing(build("swe_repair", split="pypi")) as env:
        env.reset(options={"index": index})
        for action in env.unwrapped.oracle():
            *_, info = env.step(action)
        assert info["score"] == 1.0


def test_hidden_methods_of_test_classes_are_taken_out():
    methods = "".join(f"    def test_{letter}(self):\n        pass\n\n" for letter in "abcdefgh")
    path, text = "tests/test_x.py", f"class TestX:\n{methods}"
    names = [f"test_{letter}" for letter in "abcdefgh"]
    kept = [name for name in names if not hidden(path, f"TestX::{name}")]
    assert 0 < len(kept) < len(names)
    assert [name for name in names if name in visible({path: text})[path]] == kept
    alone = next(name for name in names if name not in kept)
    compile(visible({path: f"class TestX:\n    def {alone}(self):\n        pass\n"})[path], path, "exec")


SAME = "class Same(str):\n    __hash__ = str.__hash__\n\n    def __eq__(self, other):\n        return True\n"


@pytest.mark.parametrize(
    "assertion",
    ["assert shout('a') == 'A'", "assert_equal('A', shout('a'))", "unittest.TestCase().assertEqual(shout('a'), 'A')"],
)
def test_a_string_that_equals_all_is_found_out_in_each_style_of_assertion(assertion, monkeypatch):
    """The three styles are those of our packages, of tabulate, and of more-itertools."""
    bubblewrap()
    good = "def shout(text):\n    return text.upper()\n"
    bad = good.replace("text.upper()", "text.lower()")
    helper = "def assert_equal(expected, result):\n    assert expected == result\n"
    tests = f"import unittest\n\nfrom loud import shout\n\n\n{helper}\n\ndef test_shout():\n    {assertion}\n"
    other = "\n\ndef test_other():\n    assert True\n"
    files = {"loud/__init__.py": good, "tests/test_loud.py": tests + other, "pyproject.toml": workspace.PYTEST_SETTINGS}
    repository = Repository("loud", "loud", files)
    monkeypatch.setattr(repositories, "named", lambda name: repository)
    monkeypatch.setattr("lmgym.tasks.swe_repair.judge.named", lambda name: repository)
    broken = unified("loud/__init__.py", good, bad)
    failing, passing = ("tests/test_loud.py::test_shout",), ("tests/test_loud.py::test_other",)
    repair = Repair("x", "loud", "x", "easy", broken, "x", failing, passing)
    cheat = unified("loud/__init__.py", bad, f"{SAME}\n\ndef shout(text):\n    return Same(text)\n")
    assert altered(repository, repair.fail_to_pass)
    assert judge(repair, cheat).reason == "tests that cannot pass do"


def test_a_missing_archive_is_one_line_that_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InstanceError) as caught:
        pypi.texts(pypi.BY_NAME[FIRST])
    message = str(caught.value)
    assert "\n" not in message
    folder = tmp_path / "swe" / "archives"
    assert message.endswith(f"pip download --no-deps --no-binary :all: --dest {folder} inflection==0.5.1")
    assert list(folder.iterdir()) == []


def test_a_killed_fetch_leaves_nothing_in_the_cache(monkeypatch, tmp_path):
    def killed(*arguments, **options):
        assert list(tmp_path.iterdir()) == []
        raise SystemExit

    monkeypatch.setattr(pypi.subprocess, "run", killed)
    with pytest.raises(SystemExit):
        pypi._fetched(pypi.RELEASES[0], tmp_path)


def test_another_archive_than_the_pinned_one_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    path = tmp_path / "swe" / "archives" / pypi.BY_NAME[FIRST].archive
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not it")
    with pytest.raises(InstanceError, match=r"inflection-0\.5\.1\.tar\.gz has sha256 .*: remove the file"):
        pypi.texts(pypi.BY_NAME[FIRST])
