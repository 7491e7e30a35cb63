"""Steps of coding agents in a sandbox."""

import pytest

from lmgym.backends.coding.steps import perform
from lmgym.backends.sandbox import open_sandbox
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
