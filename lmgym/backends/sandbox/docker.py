"""The engine Docker: one container a sandbox, whose first process is the agent, on a local or a remote daemon."""

from __future__ import annotations

import contextlib
import json
import struct
import time
from typing import Any

from lmgym.backends.sandbox import daemon, hostfiles, images, inside, seccomp
from lmgym.backends.sandbox.limits import Box
from lmgym.errors import BackendError

SLACK = 8  # processes of the sandbox itself
ULIMITS = {"nofile": 1024, "core": 0, "memlock": 1 << 20}
USER = "1000:1000"
PYTHON = f"{hostfiles.PYTHON}/bin/python3"
ROOT_NEEDS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]  # what installing packages takes
# Of /proc. With a writable /proc/1, root could have the agent killed first when memory is short.
READ_ONLY = ("1", "asound", "bus", "dynamic_debug", "fs", "irq", "mtrr", "pressure", "sys", "sysrq-trigger")
ERRORS = 2  # the stream of a frame
KEPT = 1 << 12  # bytes kept of the agent's errors


class Docker:
    """An agent as the first process of a container."""

    _response: Any
    _socket: Any

    def __init__(self, box: Box) -> None:
        image = images.of_box(box)
        self._frame, self._errors = 0, bytearray()  # bytes left of the present frame
        self._id = ""
        self._response = self._socket = None
        with daemon.requests("start a container") as connection:
            try:
                self._id = _create(connection, _configuration(box, image))
                streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                self._response = connection.attach_socket(self._id, params=streams)
                self._socket = getattr(self._response, "_sock", self._response)
                connection.start(self._id)
            except BaseException:
                self.close()
                raise

    def write(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self._socket.settimeout(daemon.TIMEOUT)
            self._socket.sendall(data)
        except OSError as error:
            raise BackendError(self._complaint()) from error

    def read(self, size: int, deadline: float) -> bytes:
        """Return exactly `size` bytes of the agent's standard output."""
        data = bytearray()
        while len(data) < size:
            if not self._frame:
                stream, length = struct.unpack(">BxxxI", self._exactly(8, deadline))
                if stream == ERRORS:
                    self._errors += self._exactly(length, deadline)
                    del self._errors[:-KEPT]
                    continue
                self._frame = length
            piece = self._exactly(min(size - len(data), self._frame), deadline)
            self._frame -= len(piece)
            data += piece
        return bytes(data)

    def _exactly(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
                piece = self._socket.recv(size - len(data))
            except TimeoutError as error:
                raise BackendError("the sandbox did not answer in time") from error
            except OSError as error:
                raise BackendError(self._complaint()) from error
            if not piece:
                raise BackendError(self._complaint())
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Kill and remove the container; one that a dead daemon left is swept at the next start."""
        container, self._id = self._id, ""
        if container:
            for end in (getattr(self._response, "_response", None), self._response, self._socket):
                with contextlib.suppress(OSError):
                    if end is not None:
                        end.close()
            with contextlib.suppress(BackendError):
                daemon.remove(container)

    def _complaint(self) -> str:
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return f"the sandbox's container is gone: {lines[-1] if lines else 'killed, or its daemon was'}"


def _create(connection: Any, configuration: dict[str, Any]) -> str:
    """Create a container; without a limit of its disk where Docker's storage has no quotas. Return its id."""
    import docker

    try:
        return str(connection.create_container_from_config(configuration)["Id"])
    except docker.errors.APIError as error:
        if not configuration["HostConfig"].pop("StorageOpt", None) or "storage" not in str(error.explanation):
            raise
    return str(connection.create_container_from_config(configuration)["Id"])


def _configuration(box: Box, image: str) -> dict[str, Any]:
    """Return the body of the request that creates a container."""
    return {
        "Image": image,
        "Entrypoint": inside.command(box, box.python if box.image else PYTHON),
        "Cmd": [],
        "User": "0:0" if box.root else USER,
        "WorkingDir": "/",
        "Hostname": "sandbox",
        "Labels": daemon.labels(),
        "OpenStdin": True,
        "StdinOnce": True,  # the agent ends with its owner's connection
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": _host_configuration(box),
    }


def _host_configuration(box: Box) -> dict[str, Any]:
    limits = box.limits
    memory = limits.memory + limits.disk  # a tmpfs counts as memory
    return {
        "AutoRemove": True,
        "NetworkMode": "bridge" if box.network else "none",
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": limits.processes + SLACK,
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in ULIMITS.items()],
        "ReadonlyRootfs": not box.image,
        "StorageOpt": {"size": str(limits.disk)} if box.image else {},
        "Tmpfs": {folder: _tmpfs(box, folder) for folder in (["/dev/shm"] if box.image else inside.writable(box))},
        "CapDrop": ["ALL"],
        "CapAdd": ROOT_NEEDS if box.root else [],
        "SecurityOpt": ["no-new-privileges", f"seccomp={json.dumps(seccomp.profile())}"],
        "MaskedPaths": [*(f"/proc/{name}" for name in (*inside.MASKED, "acpi", "scsi")), "/sys"],
        "ReadonlyPaths": [f"/proc/{name}" for name in READ_ONLY],
        "LogConfig": {"Type": "none"},
        "IpcMode": "private",
        "OomScoreAdj": 500,
    }


def _tmpfs(box: Box, folder: str) -> str:
    owner = 0 if box.root else 1000
    mode = "1777" if folder in ("/tmp", "/dev/shm") else "0755"
    limits = f"size={box.limits.disk},nr_inodes={box.limits.files + 2}"
    return f"rw,exec,nosuid,nodev,{limits},mode={mode},uid={owner},gid={owner}"
