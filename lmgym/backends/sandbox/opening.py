"""Choose the engine that runs a sandbox."""

from __future__ import annotations

import os

from lmgym.backends.sandbox import bubblewrap, cgroup
from lmgym.backends.sandbox.limits import Box
from lmgym.backends.sandbox.sandbox import Sandbox
from lmgym.errors import BackendError

VARIABLE = "LMGYM_SANDBOX"
ENGINES = ("bubblewrap", "docker")


def open_sandbox(box: Box | None = None, *, engine: str | None = None) -> Sandbox:
    """Start a sandbox.

    `engine` is "bubblewrap", "docker", or the address of a Docker daemon ("unix://", "tcp://" or "ssh://"); by default
    what $LMGYM_SANDBOX says, else bubblewrap. Raises MissingExtra if the engine is not there, BackendError if it fails.
    """
    box = box or Box()
    name = engine or os.environ.get(VARIABLE) or ENGINES[0]
    if name != "bubblewrap":
        raise BackendError(f"unknown sandbox engine {name!r}; choose {' or '.join(ENGINES)}")
    cgroup.sweep()
    return Sandbox(bubblewrap.Bubblewrap(box), box)
