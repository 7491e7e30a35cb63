"""Install the tests' tasks as a plug-in package, for this process and its children."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from lmgym.env import registry


@contextmanager
def installed(module: ModuleType, folder: Path) -> Iterator[Path]:
    """Put a package whose entry point is `module` into `folder`, on the import path while the block runs."""
    name = module.__name__.rpartition(".")[2]
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{registry.PLUGINS}]\n{name} = {module.__name__}\n")
    sys.path.insert(0, str(folder))
    registry.specs.cache_clear()
    yield folder
    sys.path.remove(str(folder))
    registry.specs.cache_clear()
