"""Test commands of the repositories of SWE-bench, for instances that bring no evaluation script.

The facts (test commands, ways to install, names of parsers) are those of SWE-bench's harness, version 4 (MIT).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

PYTEST = "pytest -rA"
TEST_FILE = re.compile(r"^diff --git a/.* b/(.*)$", re.MULTILINE)
NO_TESTS = (".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
START, END, CODE = ">>>>> Start Test Output", ">>>>> End Test Output", ">>>>> Test Exit Code:"


@dataclass(frozen=True)
class TestCommand:
    """A repository's way to install and test."""

    __test__ = False  # pytest looks for classes of this name

    command: str = PYTEST
    parser: str = "pytest"
    install: str = "python -m pip install -e ."


SWE_BENCH = {
    "astropy/astropy": TestCommand(
        "pytest -rA -vv -o console_output_style=classic --tb=no", "pytest_v2", "python -m pip install -e .[test]"
    ),
    "django/django": TestCommand("./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1", "django"),
    "matplotlib/matplotlib": TestCommand(parser="matplotlib"),
    "mwaskom/seaborn": TestCommand("pytest --no-header -rA", "seaborn", "python -m pip install -e .[dev]"),
    "pallets/flask": TestCommand(),
    "psf/requests": TestCommand(parser="pytest_options", install="python -m pip install ."),
    "pydata/xarray": TestCommand(),
    "pylint-dev/pylint": TestCommand(parser="pytest_options"),
    "pytest-dev/pytest": TestCommand(),
    "scikit-learn/scikit-learn": TestCommand(
        parser="pytest_v2", install="python -m pip install -v --no-use-pep517 --no-build-isolation -e ."
    ),
    "sphinx-doc/sphinx": TestCommand("tox --current-env -epy39 -v --", "pytest_v2", "python -m pip install -e .[test]"),
    "sympy/sympy": TestCommand(
        "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose", "sympy"
    ),
}
SYNTHETIC = TestCommand("pytest --disable-warnings --color=no --tb=no --verbose", install="true")  # SWE-smith


def suite(repo: str, version: str, *, synthetic: bool = False) -> TestCommand:
    """Return how a repository tests; pytest for those that are not known."""
    if synthetic:
        return SYNTHETIC
    if repo == "django/django" and version in ("1.7", "1.8", "1.9"):
        return TestCommand("./tests/runtests.py --verbosity 2", "django")
    return SWE_BENCH.get(repo, TestCommand())


def directives(repo: str, test_patch: str) -> list[str]:
    """Return the arguments of the test command: the files of the test patch, as the repository names them."""
    paths = [path for path in TEST_FILE.findall(test_patch) if not path.endswith(NO_TESTS)]
    if repo == "django/django":
        return [path.removesuffix(".py").removeprefix("tests/").replace("/", ".") for path in paths]
    return paths


def script(suite: TestCommand, *, base: str, test_patch: str, tests: list[str], files: list[str]) -> str:
    """Return a shell script that puts the test files in their places, runs the tests and prints the markers.

    `tests` are the arguments of the test command, `files` the paths of tests that are taken from the commit `base`.
    """
    restore = f"git checkout {shlex.quote(base)} -- {shlex.join(files)}" if files else "true"
    apply = f"git apply -v - <<'EOF_OF_TESTS'\n{test_patch.rstrip()}\nEOF_OF_TESTS" if test_patch.strip() else "true"
    return "\n".join(
        (
            "source /opt/miniconda3/bin/activate testbed 2>/dev/null || true",
            "cd /testbed",
            "git config --global --add safe.directory /testbed",
            f"{suite.install} >/dev/null 2>&1 || true",
            restore,
            apply,
            f"echo '{START}'",
            f"{suite.command} {shlex.join(tests)}".rstrip(),
            "code=$?",
            f"echo '{END}'",
            f'echo "{CODE} $code"',
            restore,
            "",
        )
    )
