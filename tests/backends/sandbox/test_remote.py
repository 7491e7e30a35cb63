"""Docker on another endpoint: a second daemon, reached over TLS and by ssh."""

import gc
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from lmgym.backends.sandbox import Box, daemon, open_sandbox
from lmgym.errors import BackendError, MissingExtra
from tests.components import docker

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]
SCRIPT = Path(__file__).parents[3] / ".ci" / "docker"
SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile {folder}/sshd.pid
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PasswordAuthentication no
UsePAM no
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, **options)


@pytest.fixture(scope="module")
def certificates():
    """A folder for the server and one for the client: certificates of one authority."""
    docker()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sign = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
            "-keyout", "ca.key", "-out", "ca.pem", cwd=folder)  # fmt: skip
        for who, names in (("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")):
            (folder / "names").write_text(names)
            (folder / who).mkdir()
            run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={who}", "-keyout", f"{who}/key.pem",
                "-out", "request", cwd=folder)  # fmt: skip
            run("openssl", "x509", "-req", "-in", "request", *sign, "-out", f"{who}/cert.pem", cwd=folder)
            shutil.copy(folder / "ca.pem", folder / who)
        yield folder


@pytest.fixture(scope="module")
def second(certificates):
    """A second daemon of our own, which listens on loopback with TLS; its port."""
    port = free_port()
    environment = {
        **os.environ,
        "LMGYM_DOCKER_DIR": f"{certificates}/docker-second",
        "LMGYM_DOCKER_DISK": "2G",
        "LMGYM_DOCKER_LISTEN": f"127.0.0.1:{port}",
        "LMGYM_DOCKER_CERTIFICATES": str(certificates / "server"),
    }
    try:
        run(SCRIPT, "start", env=environment)
        yield port
    finally:
        run(SCRIPT, "remove", env=environment)


@pytest.fixture
def elsewhere(monkeypatch):
    """A function that points this process to another daemon."""

    def point(address, **variables):
        monkeypatch.setenv(daemon.HOST, address)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        daemon.forget()

    yield point
    daemon.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the package docker leaves sockets that did not connect
        gc.collect()


def play():
    """Use a sandbox, its trees included."""
    tree = Path(__file__).parent
    with open_sandbox(Box(trees={"/data": tree}), engine="docker") as sandbox:
        assert sandbox.run("cat", stdin=bytes(range(256)) * 5_000).stdout[-1] == 255
        assert "Docker on another endpoint" in sandbox.run("cat /data/test_remote.py").text
        assert sandbox.run("sleep 30", timeout=0.3).timed_out
        shell = sandbox.shell()
        shell.run("X=7")
        assert shell.run("echo $X").text == "7\n"
        state = sandbox.save()
        sandbox.restore(state)
        with daemon.requests("list containers") as connection:
            return [row["Id"] for row in connection.containers(filters={"label": daemon.SANDBOX})]


def test_a_daemon_is_reached_over_tls(second, certificates, elsewhere):
    elsewhere(f"tcp://127.0.0.1:{second}", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(certificates / "client"))
    before = set(play())
    assert len(before) == 1
    with daemon.requests("list containers") as connection:
        assert not connection.containers(all=True)


def test_strangers_are_refused(second, certificates, elsewhere):
    (certificates / "nobody").mkdir()
    for name in ("ca.pem", "cert.pem", "key.pem"):
        shutil.copy(certificates / "client" / name, certificates / "nobody")
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=client", "-keyout",
        "key.pem", "-out", "cert.pem", cwd=certificates / "nobody")  # fmt: skip
    elsewhere(f"tcp://127.0.0.1:{second}", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(certificates / "nobody"))
    with pytest.raises(MissingExtra, match="no Docker daemon answers at tcp://"):
        open_sandbox(engine="docker")


def test_a_daemon_is_reached_by_ssh(second, certificates, elsewhere, monkeypatch, tmp_path):
    if not Path("/usr/sbin/sshd").exists():
        pytest.skip("no ssh server: apt-get install openssh-server")
    port = free_port()
    for name in ("host", "key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name))
    (tmp_path / "sshd").write_text(SSHD.format(port=port, folder=tmp_path))
    known = (tmp_path / "host.pub").read_text().split()[:2]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {' '.join(known)}\n")
    (tmp_path / "ssh").write_text(  # a client with this test's keys, and none of this user's
        f'#!/bin/sh\nexec /usr/bin/ssh -F none -i {tmp_path}/key -o UserKnownHostsFile={tmp_path}/known "$@"\n'
    )
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(tmp_path / "sshd")], stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        elsewhere(f"ssh://root@127.0.0.1:{port}/run/docker-second/docker.sock")
        assert len(play()) == 1
        elsewhere(f"ssh://root@127.0.0.1:{port}/run/nonesuch.sock")
        with pytest.raises(MissingExtra, match="no Docker daemon answers at ssh://"):
            open_sandbox(engine="docker")
    finally:
        server.terminate()
        server.wait()


def test_a_killed_daemon_is_a_broken_backend(second, certificates, elsewhere):
    """The last test of this daemon: it is killed in the middle of a command."""
    elsewhere("unix:///run/docker-second/docker.sock")
    sandbox = open_sandbox(engine="docker")
    number = Path("/run/docker-second/pid").read_text().strip()
    with subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {number}"]), pytest.raises(BackendError, match="."):
        sandbox.run("sleep 30")
    sandbox.close()
    with pytest.raises((BackendError, MissingExtra)):
        open_sandbox(engine="docker")
