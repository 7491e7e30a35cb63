from __future__ import annotations

from types import MappingProxyType

import pytest
import torch

from lmgym.env import registry
from tests.train import tt
from tests.train.chain import SPEC


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Toy models are slower on several threads, and bits depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def chain(monkeypatch):
    """The tasks `test/Chain-v0` and `test/TwoTurns-v0`."""
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC, tt.SPEC.id: tt.SPEC})
    monkeypatch.setattr(registry, "specs", lambda: known)
