"""Start a sandbox."""

from __future__ import annotations

from lmgym.backends.sandbox import bubblewrap, cgroup
from lmgym.backends.sandbox.limits import Box
from lmgym.backends.sandbox.sandbox import Sandbox


def open_sandbox(box: Box | None = None) -> Sandbox:
    """Start a sandbox in bubblewrap; the first one also removes the control groups that dead processes left.

    Raises MissingExtra if bubblewrap cannot run here, BackendError if it fails.
    """
    box = box or Box()
    cgroup.sweep_once()
    return Sandbox(bubblewrap.Bubblewrap(box), box)
