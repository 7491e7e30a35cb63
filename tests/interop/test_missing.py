"""Without its library an adapter says in one line what to install."""

import importlib
import sys

import pytest

from lmgym.errors import MissingExtra


@pytest.mark.parametrize(
    ("adapter", "package"),
    [("inspect", "inspect_ai"), ("openenv", "openenv"), ("pettingzoo", "pettingzoo"), ("verifiers", "verifiers")],
)
def test_adapter_without_its_library_names_the_extra(monkeypatch, adapter, package):
    for name in list(sys.modules):
        if name.partition(".")[0] == package or name == f"lmgym.interop.{adapter}":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'lmgym\[{adapter}\]'") as raised:
        importlib.import_module(f"lmgym.interop.{adapter}")
    assert "\n" not in str(raised.value)
