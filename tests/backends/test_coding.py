"""Steps of coding agents in a sandbox."""

import pytest

from lmgym.backends.coding.patches import difference
from lmgym.backends.coding.steps import perform
from lmgym.backends.sandbox import Box, open_sandbox
from tests import components


@pytest.fixture(scope="module")
def sandbox():
    components.bubblewrap()
    with open_sandbox() as sandbox:
        sandbox.run("echo needle > a; mkdir closed; echo needle > closed/b; chmod 0 closed/b")
        yield sandbox


@pytest.mark.parametrize(
    ("pattern", "path", "valid", "words"),
    [
        ("needle", ".", True, ["a:1:needle", "closed/b: Permission denied"]),
        ("needle", "a", True, ["1:needle"]),
        ("straw", "a", True, ["No match."]),
        ("needle", "closed", False, ["Permission denied"]),
        ("needle", "none", False, ["No such file"]),
        ("(", "a", False, ["grep:"]),
    ],
)
def test_a_search_with_hits_is_valid_beside_files_that_cannot_be_read(sandbox, pattern, path, valid, words):
    outcome, text, _ = perform(sandbox, "search", {"pattern": pattern, "path": path})
    assert outcome is valid
    assert all(word in text for word in words)


def test_an_edit_keeps_bytes_that_are_no_utf_8(sandbox):
    sandbox.write("latin.py", b"# caf\xe9\nx = 2\n")
    assert perform(sandbox, "edit", {"path": "latin.py", "old": "x = 2", "new": "x = 'é'"})[0]
    assert sandbox.read("latin.py") == "# caf\udce9\nx = 'é'\n".encode("utf-8", "surrogateescape")
    for old in ("caf\ufffd", "\ud800"):  # as the file is shown; half a character
        assert not perform(sandbox, "edit", {"path": "latin.py", "old": old, "new": ""})[0]


@pytest.mark.parametrize("command", ["rm -rf .git", "chmod 0 .", "rm -rf $PWD"])
def test_there_is_no_difference_where_the_repository_cannot_be_read(command):
    components.bubblewrap()
    with open_sandbox(Box(folder="/work/repository")) as sandbox:
        sandbox.run("mkdir -p repository && cd repository && git init -q && echo 1 > a && git add a", folder="/work")
        sandbox.run("git -c user.name=a -c user.email=a commit -qm a; echo 2 > a")
        assert "+2" in difference(sandbox, "HEAD")
        sandbox.run(command)
        assert difference(sandbox, "HEAD") == ""
