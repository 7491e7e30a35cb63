"""Sandboxes for the tests, on each engine."""

import pytest

from lmgym.backends.sandbox import Box, SandboxLimits, open_sandbox
from tests import components

BOX = Box(
    limits=SandboxLimits(seconds=20.0, memory=256 << 20, processes=48, disk=16 << 20, files=2_000, output=1 << 16)
)
ENGINES = {"bubblewrap": components.bubblewrap, "docker": components.docker}


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.slow)])
def engine(request):
    """The name of an engine that runs here."""
    ENGINES[request.param]()
    return request.param


@pytest.fixture(scope="module")
def shared(engine):
    with open_sandbox(BOX, engine=engine) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared):
    """The module's sandbox, its programs ended; files stay, so each test uses names of its own."""
    yield shared
    shared.kill()
