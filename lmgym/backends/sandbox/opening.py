"""Start a sandbox."""

from __future__ import annotations

import os
from functools import cache
from typing import Literal

from lmgym.backends.sandbox import bubblewrap, cgroup, daemon
from lmgym.backends.sandbox.docker import Docker
from lmgym.backends.sandbox.limits import Box
from lmgym.backends.sandbox.sandbox import Sandbox
from lmgym.backends.sandbox.warm import WarmPool
from lmgym.errors import InstanceError

ENGINE = "LMGYM_SANDBOX"  # which engine, unless the call or the box says: bubblewrap or docker
WARM = "LMGYM_SANDBOX_WARM"  # sandboxes of the same box that stand ready in Docker; 0 by default
Engine = Literal["bubblewrap", "docker"]
ENGINES = ("bubblewrap", "docker")


def engine_of(box: Box, engine: str | None = None) -> str:
    """Return the engine of a box: the one named, Docker for an image, that of LMGYM_SANDBOX, or bubblewrap."""
    name = engine or ("docker" if box.image else os.environ.get(ENGINE) or "bubblewrap")
    if name not in ENGINES:
        raise InstanceError(f"unknown sandbox engine {name!r}; choose {' or '.join(ENGINES)}")
    if box.image and name != "docker":
        raise InstanceError(f"image {box.image!r} needs the engine docker; got {name}")
    return name


def open_sandbox(box: Box | None = None, *, engine: Engine | None = None) -> Sandbox:
    """Start a sandbox; the first one of an engine also removes what dead processes left.

    Raises MissingExtra if the engine cannot run here, InstanceError if the box's image does not exist, BackendError if
    it fails.
    """
    box = box or Box()
    if engine_of(box, engine) == "docker":
        daemon.sweep_once()
        size = _warm_size()
        return _pool(os.getpid(), size).take(box) if size else _start_docker(box)
    cgroup.sweep_once()
    return Sandbox(bubblewrap.Bubblewrap(box), box)


def _start_docker(box: Box) -> Sandbox:
    return Sandbox(Docker(box), box)


def _warm_size() -> int:
    text = os.environ.get(WARM) or "0"
    if not text.isdigit():
        raise InstanceError(f"{WARM} is a number of sandboxes; got {text!r}")
    return int(text)


@cache
def _pool(process: int, size: int) -> WarmPool:
    """Return this process's pool."""
    return WarmPool(_start_docker, size)
