"""`lmgym doctor`: which packages, programs and data are installed, which tasks need the rest, and how to get it."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from lmgym import __version__
from lmgym.backends import stockfish
from lmgym.backends.browser import process
from lmgym.backends.desktop.packages import check_installed
from lmgym.backends.sandbox import bubblewrap, daemon
from lmgym.env.registry import build, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, MissingExtra

USES = {  # what an extra is for, besides the tasks that name it
    "train": "training, local models",
    "smollm2": "the policy smollm2",
    "eval": "endpoints",
    "anthropic": "anthropic: endpoints",
    "litellm": "litellm: endpoints",
    "board": "leaderboard commands",
    "serve": "lmgym serve",
    "remote": "remote tasks",
}
LEAST_DISK = 5  # GiB


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that lmgym can use on this machine."""

    name: str
    status: Literal["ok", "missing", "info"]
    detail: str  # what was found, or what is missing
    needed_by: str = ""  # tasks and commands
    fix: str = ""  # how to get it


def doctor() -> list[Check]:
    """Check the packages of every extra, programs, official data, GPU, threads and disk; nothing is changed."""
    return [
        Check(name="lmgym", status="info", detail=f"{__version__}, Python {platform.python_version()}"),
        _threads(),
        _disk(),
        _gpu(),
        *_extras(),
        _chromium(),
        _program("bwrap", package="bubblewrap", needed_by="lmgym verify, which replays entries in a sandbox"),
        _sandbox(),
        _docker(),
        _desktop(),
        _stockfish(),
        *_official_data(),
    ]


def _tasks() -> list[TaskSpec]:
    return [spec for spec in specs().values() if not spec.part_of]


def _threads() -> Check:
    usable = len(os.sched_getaffinity(0))
    limit = os.environ.get("OMP_NUM_THREADS")
    detail = f"{usable} of {os.cpu_count()} CPU threads" + (f", OMP_NUM_THREADS={limit}" if limit else "")
    return Check(name="threads", status="info", detail=detail)


def _disk() -> Check:
    gibibytes = shutil.disk_usage(Path.cwd()).free / 2**30
    detail = f"{gibibytes:.1f} GiB free at {Path.cwd()}"
    if gibibytes >= LEAST_DISK:
        return Check(name="disk", status="ok", detail=detail)
    return Check(name="disk", status="missing", detail=detail, needed_by="runs", fix=f"free {LEAST_DISK} GiB")


def _gpu() -> Check:
    if find_spec("torch") is None:
        return Check(name="GPU", status="info", detail="unknown without torch")
    import torch

    if not torch.cuda.is_available():
        return Check(
            name="GPU", status="info", detail="none that torch can use; training and local models run on the CPU"
        )
    return Check(name="GPU", status="ok", detail=f"{torch.cuda.get_device_name(0)}, {torch.cuda.device_count()} in all")


def _extras() -> Iterator[Check]:
    """Yield a check for each extra that a task or a command needs."""
    packages: dict[str, list[str]] = {}
    for requirement in requires("lmgym") or ():
        if match := re.match(r'([\w.-]+).*extra == "(\w+)"', requirement):
            packages.setdefault(match[2], []).append(match[1])
    for extra, names in packages.items():
        users = [spec.name for spec in _tasks() if extra in spec.extras]
        needed_by = ", ".join([*dict.fromkeys(users), *([USES[extra]] if extra in USES else [])])
        if not needed_by:  # extras of the interop and of developers
            continue
        absent = [name for name in names if name != "lmgym" and not _installed(name)]
        if absent:
            yield Check(
                name=f"extra {extra}",
                status="missing",
                detail=f"not installed: {', '.join(absent)}",
                needed_by=needed_by,
                fix=f"pip install 'lmgym[{extra}]'",
            )
        else:
            yield Check(name=f"extra {extra}", status="ok", detail=", ".join(names), needed_by=needed_by)


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _chromium() -> Check:
    users = _users("web")
    try:
        return Check(name="Chromium", status="ok", detail=process.executable(), needed_by=users)
    except MissingExtra as error:
        fix = f"apt-get install chromium, or set ${process.EXECUTABLE}"
        return Check(name="Chromium", status="missing", detail=str(error), needed_by=users, fix=fix)


def _program(name: str, *, package: str, needed_by: str) -> Check:
    path = shutil.which(name)
    if path:
        return Check(name=package, status="ok", detail=path, needed_by=needed_by)
    return Check(
        name=package,
        status="missing",
        detail=f"{name} is not on the PATH",
        needed_by=needed_by,
        fix=f"apt-get install {package}",
    )


def _sandbox() -> Check:
    needed_by = _users("swe")
    if reason := bubblewrap.unavailable():
        fix = "apt-get install bubblewrap libseccomp2, on a machine that allows user namespaces"
        return Check(name="sandbox", status="missing", detail=reason, needed_by=needed_by, fix=fix)
    detail = "; ".join(["bubblewrap", *bubblewrap.missing()])
    return Check(name="sandbox", status="ok", detail=detail, needed_by=needed_by)


def _docker() -> Check:
    needed_by = "sandboxes that start from an image, LMGYM_SANDBOX=docker"
    if reason := daemon.unavailable():
        fix = f"apt-get install docker.io and pip install 'lmgym[swe]', or set ${daemon.HOST}"
        return Check(name="Docker", status="missing", detail=reason, needed_by=needed_by, fix=fix)
    return Check(name="Docker", status="ok", detail=daemon.description(), needed_by=needed_by)


def _desktop() -> Check:
    try:
        check_installed()
    except MissingExtra as error:
        needs, _, fix = str(error).partition(": ")
        return Check(name="desktop", status="missing", detail=needs, needed_by=_users("gui"), fix=fix)
    return Check(name="desktop", status="ok", detail="programs and packages", needed_by=_users("gui"))


def _stockfish() -> Check:
    try:
        return Check(name="Stockfish", status="ok", detail=stockfish.executable(), needed_by="chess")
    except MissingExtra as error:
        detail, fix = str(error), f"apt-get install stockfish, or set ${stockfish.EXECUTABLE}"
        return Check(name="Stockfish", status="missing", detail=detail, needed_by="chess", fix=fix)


def _users(extra: str) -> str:
    """Return the names of the tasks that need an extra."""
    return ", ".join(dict.fromkeys(spec.name for spec in _tasks() if extra in spec.extras))


def _official_data() -> Iterator[Check]:
    """Yield a check for each task whose instances come from official data, by counting them."""
    for spec in _tasks():
        unsized = [split for split, size in spec.splits.items() if not size]
        if not unsized or spec.remote:
            continue
        name, fix = f"data of {spec.id}", f"see the card of {spec.id}"
        try:
            env = build(spec, split=unsized[0])
            size = env.unwrapped.size()
            env.close()
        except (InstanceError, MissingExtra) as error:
            yield Check(name=name, status="missing", detail=str(error), needed_by=spec.name, fix=fix)
            continue
        status: Literal["ok", "missing"] = "ok" if size else "missing"
        yield Check(
            name=name,
            status=status,
            detail=f"{size} {unsized[0]} instances",
            needed_by=spec.name,
            fix="" if size else fix,
        )
