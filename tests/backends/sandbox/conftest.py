"""A sandbox for the tests."""

import pytest

from lmgym.backends.sandbox import Box, SandboxLimits, open_sandbox
from tests.components import bubblewrap

BOX = Box(
    limits=SandboxLimits(seconds=20.0, memory=256 << 20, processes=48, disk=16 << 20, files=2_000, output=1 << 16)
)


@pytest.fixture(scope="module")
def bwrap():
    bubblewrap()


@pytest.fixture(scope="module")
def shared(bwrap):
    with open_sandbox(BOX) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared):
    """The module's sandbox, its programs ended; files stay, so each test uses names of its own."""
    yield shared
    shared.kill()
