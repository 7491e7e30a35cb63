"""The Docker daemon that sandboxes run on: its client, and the marks of what is ours there."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lmgym.backends.sandbox import tunnel
from lmgym.backends.sandbox.owner import alive, owner
from lmgym.errors import BackendError, MissingExtra

HOST = "LMGYM_DOCKER_HOST"  # address of the daemon; else DOCKER_HOST, else the machine's own
SANDBOX, OWNER, IMAGE = "lmgym.sandbox", "lmgym.owner", "lmgym.image"  # labels
VERSION = "1.41"  # of the interface: Docker 20.10 and later, Podman 4 and later
TIMEOUT = 120.0  # seconds of one request
QUOTAS = ("btrfs", "zfs", "windowsfilter")  # drivers of storage that limit a container's disk on any machine
WAITING = 5.0  # seconds until a daemon that is asked for the first time must answer
_CLIENTS: dict[int, Any] = {}  # by process: a forked one must not share connections
_LOCK = threading.Lock()


def client() -> Any:
    """Return this process's connection to the daemon, a `docker.APIClient`.

    The address is LMGYM_DOCKER_HOST or Docker's own DOCKER_HOST (`unix://`, `tcp://` with DOCKER_TLS_VERIFY and
    DOCKER_CERT_PATH, or `ssh://`). Raises MissingExtra where there is no daemon or no package `docker`.
    """
    with _LOCK:
        if os.getpid() not in _CLIENTS:
            _CLIENTS[os.getpid()] = _connect()
        return _CLIENTS[os.getpid()]


def _connect() -> Any:
    try:
        import docker
    except ImportError as error:
        raise MissingExtra("sandboxes in Docker need its Python package: pip install 'lmgym[swe]'") from error
    connection = None
    try:
        settings = docker.utils.kwargs_from_env(environment={**os.environ, "DOCKER_HOST": address()})
        if settings.get("base_url", "").startswith("ssh://"):
            settings = {"base_url": f"unix://{tunnel.forward(address())}"}
        url = settings.get("base_url", address())
        if url.startswith("unix://"):  # if nobody listened there, docker's package would leave its end open
            with socket.socket(socket.AF_UNIX) as end:
                end.settimeout(WAITING)
                end.connect(url.removeprefix("unix://"))
        connection = docker.APIClient(**settings, version=VERSION, timeout=WAITING)
        connection.trust_env = False  # else REQUESTS_CA_BUNDLE would take the place of the daemon's authority
        connection.ping()
        connection.timeout = TIMEOUT
    except (docker.errors.DockerException, OSError) as error:
        if connection is not None:
            connection.close()
        raise MissingExtra(f"no Docker daemon answers at {address()}: {_first_line(error)}") from error
    return connection


def address() -> str:
    """Return the daemon's address."""
    return os.environ.get(HOST) or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def forget() -> None:
    """Close this process's connection; the next call of `client` makes another."""
    with _LOCK:
        connection = _CLIENTS.pop(os.getpid(), None)
    if connection is not None:
        connection.close()


def unavailable() -> str:
    """Return why no sandbox can run in Docker here, and what to do; "" if one can."""
    try:
        client()
    except MissingExtra as error:
        return str(error)
    return ""


def description() -> str:
    """Return the daemon's version and address, and what it does not protect."""
    with requests("describe itself") as connection:
        facts = connection.info()
    parts = [f"{facts['ServerVersion']} at {address()}"]
    if not facts.get("PidsLimit", True) or not facts.get("MemoryLimit", True):
        parts.append("no limits on memory or processes: its kernel has no control groups for them")
    if not any("userns" in each or "rootless" in each for each in facts.get("SecurityOptions") or ()):
        parts.append("root in a container is the machine's root, without capabilities")
    return "; ".join([*parts, *disk_limits(facts)])


def disk_limits(facts: Mapping[str, Any]) -> list[str]:
    """Return what a daemon's facts say against a limit on the disk of boxes with an image; nothing if it holds."""
    driver, status = facts.get("Driver"), {row[0]: row[1] for row in facts.get("DriverStatus") or ()}
    if driver in QUOTAS:
        return []
    if driver in ("overlay2", "overlay") and status.get("Backing Filesystem") == "xfs":
        return ["a limit on all files of a box with an image only if XFS is mounted with pquota"]
    return [f"no limit on all files of a box with an image: {driver} has no quotas, overlay2 on XFS with pquota has"]


@contextlib.contextmanager
def requests(purpose: str) -> Iterator[Any]:
    """Give the connection for some requests; what they raise becomes a BackendError that names the purpose."""
    connection = client()
    import docker
    import requests as http

    try:
        yield connection
    except (docker.errors.DockerException, http.RequestException, OSError) as error:
        raise BackendError(f"Docker does not {purpose}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "explanation", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def labels() -> dict[str, str]:
    """Return the labels of a container of this process."""
    return {SANDBOX: machine(), OWNER: f"{_namespace()}/{owner()}"}


@cache
def machine() -> str:
    """Return a name of this machine, which no other client of the daemon shares."""
    identity = Path("/etc/machine-id")
    text = (identity.read_text() if identity.exists() else "") + os.uname().nodename
    return blake2b(text.encode(), digest_size=8).hexdigest()


@cache
def _namespace() -> str:
    """Return a name of the process numbers that owners are told by: those of one boot and one namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


def abandoned(marks: Mapping[str, str]) -> bool:
    """Return True if the owner that labels name is a process of this machine, and gone."""
    if marks.get(SANDBOX) != machine():
        return False
    namespace, _, mark = marks.get(OWNER, "").rpartition("/")
    if namespace == _namespace():
        return not alive(mark)
    return namespace.partition("/")[0] != _namespace().partition("/")[0]  # of an earlier boot


def sweep() -> int:
    """Remove the containers whose owner is gone; return their number."""
    count = 0
    with requests("list its containers") as connection:
        for row in connection.containers(all=True, filters={"label": SANDBOX}):
            if abandoned(row["Labels"]):
                remove(row["Id"])
                count += 1
    return count


sweep_once = cache(sweep)  # on the first call in this process


def remove(container: str) -> None:
    """Kill and remove a container, if it is there."""
    import docker

    with requests("remove a container") as connection, contextlib.suppress(docker.errors.NotFound):
        try:
            connection.remove_container(container, force=True, v=True)
        except docker.errors.APIError as error:
            if error.status_code != 409:  # removed at this moment
                raise
            with contextlib.suppress(docker.errors.APIError):
                connection.wait(container, condition="removed", timeout=30)
