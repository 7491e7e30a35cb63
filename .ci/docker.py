"""Start dockerd in namespaces of its own: `docker.py FOLDER RUNTIME [HOST:PORT]`; `.ci/docker` calls it.

It stays as the parent of the namespaces' first process and takes that with it. The listening socket, if any, is made
before the network namespace and handed over, as an activated socket.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Enter the namespaces, run dockerd as their first process's child, and return its exit status."""
    folder, runtime = Path(sys.argv[1]), Path(sys.argv[2])
    listener = listen(sys.argv[3]) if len(sys.argv) > 3 else None
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    first = os.fork()
    if not first:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os._exit(init(folder, runtime, listener))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGTERM))
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def listen(address: str) -> socket.socket:
    """Return a socket that listens on HOST:PORT."""
    host, _, port = address.rpartition(":")
    return socket.create_server((host, int(port)))


def init(folder: Path, runtime: Path, listener: socket.socket | None) -> int:
    """Mount what the daemon needs, run it, and collect orphans meanwhile."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    for options in ("loop,pquota", "loop"):  # not every kernel has XFS with quotas
        if not subprocess.run(["mount", "-o", options, folder / "disk", folder / "data"], check=False).returncode:
            break
    daemon = os.fork()
    if not daemon:
        become(folder, runtime, listener)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(daemon, signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == daemon:
            return max(os.waitstatus_to_exitcode(status), 0)


def become(folder: Path, runtime: Path, listener: socket.socket | None) -> None:
    """Turn into dockerd."""
    (runtime / "daemon.json").write_text("{}")  # not /etc/docker/daemon.json, which is another daemon's
    options = [
        f"--data-root={folder}/data/docker",
        f"--exec-root={runtime}/exec",
        f"--pidfile={runtime}/dockerd.pid",
        f"--cgroup-parent=/{folder.name}",
        *("--storage-driver=overlay2", "--bridge=none", "--iptables=false", "--ip6tables=false"),
        *("--live-restore=false", f"--config-file={runtime}/daemon.json", "--host", f"unix://{runtime}/docker.sock"),
    ]
    if listener is not None:
        os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)  # it may have been 3 before
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
        certificates = os.environ["LMGYM_DOCKER_CERTIFICATES"]
        options += ["--host=fd://", "--tlsverify"]
        for option, file in (("--tlscacert", "ca.pem"), ("--tlscert", "cert.pem"), ("--tlskey", "key.pem")):
            options.append(f"{option}={certificates}/{file}")
    os.execvp("dockerd", ["dockerd", *options])


if __name__ == "__main__":
    sys.exit(main())
