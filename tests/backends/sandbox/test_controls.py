"""Controls: an attack that a sandbox withstands succeeds once its one protection is switched off.

The rest of the sandbox stays as the outer bound: the same namespaces, limits, user and disk, and for Docker those of
the tests' own daemon as well. Nothing is tried on the bare machine. The last test names the attacks without a control.
"""

import contextlib
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from lmgym.backends.sandbox import bubblewrap, cgroup, daemon, docker, images, inside, open_sandbox
from tests.backends.sandbox.conftest import BOX, ENGINES
from tests.backends.sandbox.test_escapes import PROGRAMS, call, refused

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def weakened(monkeypatch, engine, change, box=BOX):
    """Open a sandbox whose bubblewrap order or container configuration was changed."""
    ENGINES[engine]()
    with monkeypatch.context() as patch:
        if engine == "bubblewrap":
            order = bubblewrap._order

            def changed(*arguments):
                made = order(*arguments)
                change(made)
                return made

            patch.setattr(bubblewrap, "_order", changed)
        else:
            configuration = docker._configuration

            def changed(*arguments):
                made = configuration(*arguments)
                change(made)
                return made

            patch.setattr(docker, "_configuration", changed)
        sandbox = open_sandbox(box, engine=engine)
    with sandbox:
        yield sandbox


def without(*words):
    """Return a change that removes an argument of bubblewrap, with its value."""

    def change(order):
        arguments = order["arguments"]
        if words[0] == "--seccomp":
            place = arguments.index("--seccomp")
        else:
            place = next(n for n in range(len(arguments)) if tuple(arguments[n : n + len(words)]) == words)
        del arguments[place : place + 2]

    return change


def host(**settings):
    """Return a change of a container's HostConfig; None removes a setting."""

    def change(configuration):
        for name, value in settings.items():
            configuration["HostConfig"][name] = value

    return change


def root(*capabilities, **settings):
    """Return a change that makes programs root with some capabilities."""

    def change(configuration):
        configuration["User"] = "0:0"
        configuration["HostConfig"]["CapAdd"] = list(capabilities)
        configuration["HostConfig"].update(settings)

    return change


def no_filter(configuration):
    """Run a container without a filter of system calls."""
    configuration["HostConfig"]["SecurityOpt"] = ["no-new-privileges", "seccomp=unconfined"]


def nothing(order):
    """Change nothing: the protection is switched off elsewhere."""


def larger(key, factor):
    """Return a change of a number in bubblewrap's order."""

    def change(order):
        order[key] *= factor

    return change


def tmpfs(name):
    """Return a change that removes a limit of a container's disks."""

    def change(configuration):
        disks = configuration["HostConfig"]["Tmpfs"]
        for folder, options in disks.items():
            disks[folder] = ",".join(each for each in options.split(",") if not each.startswith(f"{name}="))

    return change


def dumpable(configuration):
    """Let process 1 be dumped."""
    place = next(n for n, each in enumerate(configuration["Entrypoint"]) if "PR_SET_DUMPABLE, 0" in each)
    text = configuration["Entrypoint"][place]
    configuration["Entrypoint"][place] = text.replace("PR_SET_DUMPABLE, 0", "PR_SET_DUMPABLE, 1")


def dumpable_in_bubblewrap(order):
    """Let process 1 be dumped."""
    order["Entrypoint"] = order["arguments"]
    dumpable(order)


def without_filter_and_limit_of_namespaces(order):
    """Switch off both protections from further namespaces."""
    without("--seccomp")(order)
    order["arguments"].remove("--disable-userns")


def privileged(*capabilities):
    """Return a change that switches off the filter, and the limits of the user: two protections of one attack."""

    def change(configuration):
        root(*capabilities)(configuration)
        no_filter(configuration)

    return change


MEMORY_OF_1 = refused("open('/proc/1/mem', 'rb')")  # reading at 0 fails, there is nothing
AGENT = (  # attacks on the agent, which is of the programs' own user
    "limits of process 1",
    "priority of process 1",
    "priority of all processes",
    "scheduler of process 1",
    "attributes of process 1",
    "processors of process 1",
    "disk priority of process 1",
    "disk priority of all processes",
)
CONTROLS = [  # attack, engine, program, protection switched off
    *(
        (attack, engine, PROGRAMS[attack], change)
        for attack in ("add_key", "keyctl", "vsock", "io_uring", "userfaultfd", *AGENT)
        for engine, change in (("bubblewrap", without("--seccomp")), ("docker", no_filter))
    ),
    ("disk", "bubblewrap", PROGRAMS["disk"], larger("disk", 8)),
    ("disk", "docker", PROGRAMS["disk"], tmpfs("size")),
    ("shared memory", "docker", PROGRAMS["shared memory"], tmpfs("size")),
    ("inodes", "bubblewrap", PROGRAMS["inodes"], larger("inodes", 8)),
    ("inodes", "docker", PROGRAMS["inodes"], tmpfs("nr_inodes")),
    ("descriptors of process 1", "bubblewrap", PROGRAMS["descriptors of process 1"], dumpable_in_bubblewrap),
    ("descriptors of process 1", "docker", PROGRAMS["descriptors of process 1"], dumpable),
    ("memory of process 1", "bubblewrap", MEMORY_OF_1, dumpable_in_bubblewrap),
    ("memory of process 1", "docker", MEMORY_OF_1, dumpable),
    ("root of process 1", "docker", PROGRAMS["root of process 1"], dumpable),
    ("unshare user", "bubblewrap", PROGRAMS["unshare user"], without_filter_and_limit_of_namespaces),
    ("unshare user", "docker", PROGRAMS["unshare user"], no_filter),
    ("write to devices", "bubblewrap", PROGRAMS["write to devices"], without("--remount-ro", "/dev")),
    ("write to the root", "bubblewrap", PROGRAMS["write to the root"], without("--remount-ro", "/")),
    ("write to devices", "docker", PROGRAMS["write to devices"], root()),
    ("write to the root", "docker", PROGRAMS["write to the root"], root(ReadonlyRootfs=False)),
    ("write to the system", "docker", PROGRAMS["write to the system"], root(ReadonlyRootfs=False)),
    ("raw sockets", "docker", PROGRAMS["raw sockets"], root("NET_RAW")),
    ("device node", "docker", PROGRAMS["device node"], root("MKNOD")),
    ("foreign owner", "docker", PROGRAMS["foreign owner"].replace("0, 0)", "5, 5)"), root("CHOWN")),
    ("root", "docker", PROGRAMS["root"].replace("0)", "7)"), root("SETUID")),
    ("unmount", "docker", call(166, "b'/dev/shm'", 2), privileged("SYS_ADMIN")),
    *(
        (attack, "docker", PROGRAMS[attack], privileged(capability))
        for attack, capability in {
            "mount": "SYS_ADMIN",
            "unshare mounts": "SYS_ADMIN",
            "host name": "SYS_ADMIN",
            "chroot": "SYS_CHROOT",
            "packets": "NET_RAW",
            "kernel log": "SYSLOG",
            "type into a terminal": "SYS_ADMIN",
            "type with high bits": "SYS_ADMIN",
        }.items()
    ),
    ("host's sys", "docker", PROGRAMS["host's sys"], host(MaskedPaths=[])),
    *(
        (attack, "docker", PROGRAMS[attack], root(**{paths: []}))
        for attack, paths in {
            "memory priority of process 1": "ReadonlyPaths",
            "host's allocations": "MaskedPaths",
        }.items()
    ),
]


@pytest.mark.parametrize(
    ("attack", "engine", "program", "change"), CONTROLS, ids=[f"{row[0]}-{row[1]}" for row in CONTROLS]
)
def test_an_attack_succeeds_without_its_protection(monkeypatch, attack, engine, program, change):
    with weakened(monkeypatch, engine, change) as sandbox:
        result = sandbox.run(["python3", "-c", program], timeout=30)
        assert "ESCAPED" in result.text, result.text
        sandbox.kill()
        assert sandbox.run("echo on").text == "on\n"
    with open_sandbox(BOX, engine=engine) as sandbox:
        held = sandbox.run(["python3", "-c", program], timeout=30).text
        assert "HELD" in held
        assert "ESCAPED" not in held


LISTENER = """
import socket
servers = [socket.create_server(('127.0.0.1', 7777)), socket.socket(socket.AF_UNIX)]
servers[1].bind('\\0lmgym-control')
servers[1].listen()
print('ready', flush=True)
while True:
    servers[0].accept(), servers[1].accept()
"""
CALLERS = {
    "TCP": refused("socket.create_connection(('127.0.0.1', 7777), 2)"),
    "abstract socket": refused("s = socket.socket(1)\ns.connect('\\0lmgym-control')"),
}


def shared_network(configuration):
    """Put a container into the network of its daemon, which has a loopback device and nothing else."""
    configuration["HostConfig"]["NetworkMode"] = "host"
    del configuration["Hostname"]


@pytest.mark.parametrize("attack", CALLERS)
@pytest.mark.parametrize("engine", ["bubblewrap", "docker"])
def test_a_listener_is_reached_in_a_shared_network(monkeypatch, engine, attack):
    if engine == "bubblewrap":
        listener = subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE)
        assert listener.stdout.readline() == b"ready\n"

        def change(order):
            order["arguments"].insert(1, "--share-net")  # after --unshare-all
    else:
        change = shared_network
    try:
        with weakened(monkeypatch, engine, change) as sandbox:
            if engine == "docker":
                sandbox.write("server.py", LISTENER.encode())
                sandbox.run("python3 server.py > log & until grep -q ready log; do sleep 0.05; done")
            with weakened(monkeypatch, engine, change) as other:
                assert "ESCAPED" in other.run(["python3", "-c", CALLERS[attack]]).text
            with open_sandbox(BOX, engine=engine) as other:
                assert "HELD" in other.run(["python3", "-c", CALLERS[attack]]).text
    finally:
        if engine == "bubblewrap":
            listener.kill()
            listener.wait()
            listener.stdout.close()


MEMORY = "x = bytearray(400 << 20)\nprint('ESCAPED')"
FORKS = """
import os, signal, time
children = []
try:
    for n in range(150):
        pid = os.fork()
        if not pid:
            time.sleep(20)
            os._exit(0)
        children.append(pid)
    print('ESCAPED')
except OSError as error:
    print('HELD', error)
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""


def no_group_limit(name):
    """Return control groups' limits without those of a controller."""
    values = cgroup._values
    return lambda memory, processes: [row for row in values(memory, processes) if not row[0].startswith(name)]


def test_memory_is_had_without_its_limit(monkeypatch, engine):
    with open_sandbox(BOX, engine=engine) as sandbox:
        assert sandbox.run(["python3", "-c", MEMORY]).code == 137
    monkeypatch.setattr(cgroup, "_values", no_group_limit("memory"))
    with weakened(monkeypatch, engine, host(Memory=0, MemorySwap=0) if engine == "docker" else nothing) as box:
        assert box.run(["python3", "-c", MEMORY]).text == "ESCAPED\n"


def test_processes_are_had_without_their_limit(monkeypatch, engine):
    """In bubblewrap two limits hold them, the control group's and that of the sandbox's user: both are switched off."""
    with open_sandbox(BOX, engine=engine) as sandbox:
        assert "HELD" in sandbox.run(["python3", "-c", FORKS]).text
    monkeypatch.setattr(cgroup, "_values", no_group_limit("pids"))
    command = inside.command
    weaker = {"processes": None}
    monkeypatch.setattr(inside, "command", lambda box, python, **more: command(box, python, **more | weaker))
    with weakened(monkeypatch, engine, host(PidsLimit=None) if engine == "docker" else nothing) as sandbox:
        assert sandbox.run(["python3", "-c", FORKS]).text == "ESCAPED\n"


def test_output_is_kept_without_its_limit():
    big = replace(BOX, limits=replace(BOX.limits, output=8 << 20))
    for box, size in ((BOX, BOX.limits.output), (big, 4 << 20)):
        with open_sandbox(box, engine="bubblewrap") as sandbox:
            assert len(sandbox.run("head -c 4M /dev/zero").stdout) == size


def test_setuid_programs_work_without_no_new_privileges(monkeypatch, tmp_path):
    """An image carries a setuid program; its root has no more rights in the container than to change its user."""
    ENGINES["docker"]()
    name = "lmgym/test:setuid"
    copy = "RUN mkdir /opt/mark && cp /usr/bin/id /opt/mark/id && chmod 4755 /opt/mark/id"
    (tmp_path / "Dockerfile").write_text(f"FROM {images.base()}\n{copy}\n")
    images.build(tmp_path, name)
    box = replace(BOX, image=name, folder="/tmp", python="/opt/python/bin/python3")

    def privileges(configuration):
        configuration["HostConfig"]["SecurityOpt"] = configuration["HostConfig"]["SecurityOpt"][1:]
        configuration["HostConfig"]["CapAdd"] = ["SETUID"]

    try:
        with weakened(monkeypatch, "docker", privileges, box) as sandbox:
            assert sandbox.run("/opt/mark/id -u").text == "0\n"
        with open_sandbox(box) as sandbox:
            assert sandbox.run("/opt/mark/id -u").text == "1000\n"
    finally:
        images.delete(name)


def test_a_container_outlives_its_owner_without_its_tie_to_the_connection():
    ENGINES["docker"]()
    program = (
        "import os, sys\nfrom lmgym.backends.sandbox import docker, open_sandbox\nmade = docker._configuration\n"
        "docker._configuration = lambda *a: {**made(*a), 'StdinOnce': False}\n"
        "box = open_sandbox(engine='docker')\nprint(box._channel._id, flush=True)\nbox.run('sleep 987')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        container = owner.stdout.readline().strip()
        owner.send_signal(signal.SIGKILL)
    time.sleep(1.0)
    with daemon.requests("look at a container") as connection:
        assert connection.inspect_container(container)["State"]["Running"]
        assert daemon.sweep() == 1  # the second protection
        assert container not in {row["Id"] for row in connection.containers(all=True)}


NO_CONTROL = {
    **dict.fromkeys(
        ("reboot", "module", "clock", "swap", "kernel settings", "sysrq", "io ports"),
        "succeeds against the kernel that all share: no outer bound would hold it",
    ),
    **dict.fromkeys(
        ("clone3", "setns", "pivot_root", "process_vm_readv", "bpf", "perf_event_open", "handles"),
        "the attack shows a refused call; with arguments that do something it would take several protections away",
    ),
    **dict.fromkeys(
        ("ptrace", "signals to process 1"), "stops or ends process 1, and the sandbox with it: nobody is left to tell"
    ),
    "kernel crypto": "not every kernel has these sockets",
    "huge file": "held by the size of the disk and by the limit of a file, both switched off only on a disk of 1 TiB",
    **dict.fromkeys(
        ("metadata address", "DNS"), "the network that is tried has no such server; TCP shows the same protection"
    ),
    "container daemon": "no sandbox has the file; a control would hand a daemon to an attacker",
    **dict.fromkeys(
        ("host's shadow", "host's root folder"), "absent from the sandbox: there is no protection to switch off"
    ),
    **dict.fromkeys(
        ("host's symbols", "host's keys", "host's page types", "host's pages", "memory types"),
        "not every kernel has these files, or shows them to this user",
    ),
    "alarms on the host's load": "not every kernel accounts for its load",
    "limits raised": "takes a capability which this machine's root may lack itself",
}


def test_every_attack_has_a_control_or_a_reason():
    controlled = {row[0] for row in CONTROLS} | set(CALLERS)
    assert set(PROGRAMS) - controlled == set(NO_CONTROL)
