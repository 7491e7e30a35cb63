from __future__ import annotations

from types import MappingProxyType

import pytest

from lmgym.env import registry
from tests.threads import one_thread
from tests.train import tt
from tests.train.chain import SPEC


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(autouse=True)
def chain(monkeypatch):
    """The tasks `test/Chain-v0` and `test/TwoTurns-v0`."""
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC, tt.SPEC.id: tt.SPEC})
    monkeypatch.setattr(registry, "specs", lambda: known)
