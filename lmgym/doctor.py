"""`lmgym doctor`: which packages, programs and data are installed, which tasks need the rest, and how to get it."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from lmgym import __version__
from lmgym.backends import stockfish
from lmgym.backends.browser import process
from lmgym.backends.desktop.packages import check_installed
from lmgym.backends.sandbox import Box, bubblewrap, daemon
from lmgym.backends.sandbox.opening import ENGINE, ENGINES, engine_of
from lmgym.env.registry import build, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, MissingExtra

USES = {  # what an extra is for, besides the tasks that name it
    "train": "training, local models",
    "smollm2": "the policy smollm2",
    "eval": "endpoints",
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
    chromium = f"apt-get install chromium, or set ${process.EXECUTABLE}"
    return [
        Check(name="lmgym", status="info", detail=f"{__version__}, Python {platform.python_version()}"),
        _threads(),
        _disk(),
        _gpu(),
        *_extras(),
        _program("Chromium", process.executable, needed_by=_users("web"), fix=chromium),
        _bubblewrap(),
        _sandbox(),
        _docker(),
        _desktop(),
        _program(
            "Stockfish",
            stockfish.executable,
            needed_by="chess",
            fix=f"apt-get install stockfish, or set ${stockfish.EXECUTABLE}",
        ),
        *_official_data(),
    ]


def _needed(name: str, missing: str, detail: str, *, needed_by: str, fix: str) -> Check:
    """Return a check with the reason why something is `missing`, or with its detail if there is no reason."""
    if missing:
        return Check(name=name, status="missing", detail=missing, needed_by=needed_by, fix=fix)
    return Check(name=name, status="ok", detail=detail, needed_by=needed_by)


def _program(name: str, find: Callable[[], str], *, needed_by: str, fix: str) -> Check:
    try:
        return _needed(name, "", find(), needed_by=needed_by, fix=fix)
    except MissingExtra as error:
        return _needed(name, str(error), "", needed_by=needed_by, fix=fix)


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
        missing = f"not installed: {', '.join(absent)}" if absent else ""
        fix = f"pip install 'lmgym[{extra}]'"
        yield _needed(f"extra {extra}", missing, ", ".join(names), needed_by=needed_by, fix=fix)


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _bubblewrap() -> Check:
    path, users = shutil.which("bwrap"), "lmgym verify, which replays entries in a sandbox"
    missing = "" if path else "bwrap is not on the PATH"
    return _needed("bubblewrap", missing, path or "", needed_by=users, fix="apt-get install bubblewrap")


def _sandbox() -> Check:
    users = ", ".join(dict.fromkeys(spec.name for spec in _tasks() if spec.sandboxed))
    try:
        engine_of(Box())
    except InstanceError as error:
        fix = f"unset {ENGINE}, or set it to {' or '.join(ENGINES)}"
        return _needed("sandbox", f"{ENGINE}: {error}", "", needed_by=users, fix=fix)
    reason = bubblewrap.unavailable()
    detail = "" if reason else "; ".join(["bubblewrap", *bubblewrap.missing()])
    fix = "apt-get install bubblewrap libseccomp2, on a machine that allows user namespaces"
    return _needed("sandbox", reason, detail, needed_by=users, fix=fix)


def _docker() -> Check:
    reason = daemon.unavailable()
    users = "sandboxes that start from an image, LMGYM_SANDBOX=docker"
    fix = f"apt-get install docker.io and pip install 'lmgym[swe]', or set ${daemon.HOST}"
    return _needed("Docker", reason, "" if reason else daemon.description(), needed_by=users, fix=fix)


def _desktop() -> Check:
    missing = fix = ""
    try:
        check_installed()
    except MissingExtra as error:
        missing, _, fix = str(error).partition(": ")
    return _needed("desktop", missing, "programs and packages", needed_by=_users("gui"), fix=fix)


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
            with closing(build(spec, split=unsized[0])) as env:
                size = env.unwrapped.size()
        except (InstanceError, MissingExtra) as error:
            yield _needed(name, str(error), "", needed_by=spec.name, fix=fix)
            continue
        detail = f"{size} {unsized[0]} instances"
        yield _needed(name, "" if size else detail, detail, needed_by=spec.name, fix=fix)
