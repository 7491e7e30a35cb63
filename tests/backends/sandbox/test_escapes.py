"""Attacks on a sandbox: none gets out or past a limit, and the sandbox goes on afterwards.

Each attack prints what it achieved; `HELD` in the output means that the protection did its work.
"""

import io
import os
import socket
import subprocess
import tarfile
from dataclasses import replace

import pytest

from lmgym.backends.sandbox import cgroup, daemon, images, open_sandbox
from tests import components
from tests.backends.sandbox.conftest import BOX, ENGINES

pytestmark = pytest.mark.slow

LIBC = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"


def call(number, *arguments):
    """Return a program that makes a system call and prints HELD if the kernel refuses it."""
    words = ", ".join(str(each) for each in (number, *arguments))
    return f"{LIBC}print('HELD' if libc.syscall({words}) == -1 else 'ESCAPED', ctypes.get_errno())"


def refused(body):
    """Return a program that prints HELD if `body` raises OSError."""
    inner = "\n".join(f"    {line}" for line in body.splitlines())
    outcome = "except OSError as error:\n    print('HELD', error)\nelse:\n    print('ESCAPED')"
    return f"import os, socket\ntry:\n{inner}\n{outcome}"


def silent(name):
    """Return a program that prints HELD if a file of /proc is refused or says nothing."""
    return refused(f"if not open('/proc/{name}', 'rb').read():\n    raise OSError('empty')")


PROGRAMS = {  # Python; x86-64's numbers of system calls
    "mount": call(165, "b'none'", "b'/tmp'", "b'tmpfs'", 0, 0),
    "unmount": call(166, "b'/proc'", 0),
    "unshare user": call(272, 0x10000000),
    "unshare mounts": call(272, 0x20000),
    "clone3": call(435, 0, 88),
    "setns": call(308, 0, 0),
    "pivot_root": call(155, "b'/tmp'", "b'/tmp'"),
    "chroot": call(161, "b'/tmp'"),
    "ptrace": call(101, 16, 1, 0, 0),
    "process_vm_readv": call(310, 1, 0, 0, 0, 0, 0),
    "keyctl": call(250, 0, -3, 1),
    "add_key": call(248, "b'user'", "b'x'", "b'y'", 1, -3),
    "bpf": call(321, 0, 0, 0),
    "io_uring": call(425, 8, "ctypes.create_string_buffer(120)"),
    "perf_event_open": call(298, 0, 0, -1, -1, 0),
    "userfaultfd": call(323, 1),
    "reboot": call(169, 0xFEE1DEAD, 672274793, 0, 0),
    "module": call(313, 0, "b''", 0),
    "kernel log": call(103, 3, "ctypes.create_string_buffer(9)", 8),
    "handles": call(304, -100, 0, 0),
    "host name": call(170, "b'x'", 1),
    "clock": call(227, 0, "ctypes.create_string_buffer(16)"),
    "swap": call(167, "b'/tmp/x'", 0),
    "io ports": call(172, 3),
    "type into a terminal": f"{LIBC}import pty\nm, s = pty.openpty()\nlibc.setsid()\nlibc.ioctl(s, 0x540E, 0)\n"
    "print('HELD' if libc.ioctl(s, 0x5412, b'x') == -1 else 'ESCAPED')",
    "type with high bits": f"{LIBC}import pty\nm, s = pty.openpty()\nlibc.setsid()\nlibc.ioctl(s, 0x540E, 0)\n"
    "print('HELD' if libc.syscall(16, s, ctypes.c_ulong(0x100005412), b'x') == -1 else 'ESCAPED')",
    "device node": refused("os.mknod('/tmp/mem', 0o20666, os.makedev(1, 1))"),
    "root": refused("os.setuid(0)"),
    "foreign owner": refused("open('/tmp/o', 'w').close()\nos.chown('/tmp/o', 0, 0)"),
    "vsock": refused("socket.socket(40, 1)"),
    "packets": refused("socket.socket(17, 3)"),
    "raw sockets": refused("socket.socket(2, 3, 1)"),
    "kernel crypto": refused("socket.socket(38, 5)"),
    "TCP": refused("socket.create_connection(('192.0.2.1', 80), 2)"),
    "metadata address": refused("socket.create_connection(('169.254.169.254', 80), 2)"),
    "DNS": refused("socket.getaddrinfo('example.org', 80)"),
    "limits of process 1": "import resource as r\nfor what in (r.RLIMIT_NOFILE, r.RLIMIT_NPROC, r.RLIMIT_AS):\n"
    "    try:\n        r.prlimit(1, what, r.prlimit(1, what))\n    except PermissionError:\n        print('HELD')\n"
    "    else:\n        print('ESCAPED')",
    "priority of process 1": refused("os.setpriority(os.PRIO_PROCESS, 1, 19)"),
    "priority of all processes": refused("os.setpriority(os.PRIO_USER, 0, 19)"),
    "scheduler of process 1": refused("os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))"),
    "attributes of process 1": call(314, 1, "(ctypes.c_uint32 * 12)(48, 5)", 0),
    "processors of process 1": refused("os.sched_setaffinity(1, os.sched_getaffinity(0))"),
    "disk priority of process 1": call(251, 1, 1, 3 << 13),
    "disk priority of all processes": call(251, 3, 1000, 3 << 13),
    "memory priority of process 1": "for name in ('oom_score_adj', 'oom_adj', 'task/1/oom_score_adj', 'autogroup'):\n"
    "    try:\n        open(f'/proc/1/{name}', 'w').write('9')\n    except OSError:\n        print('HELD')\n"
    "    else:\n        print('ESCAPED')",
    "host's symbols": silent("kallsyms"),
    "host's allocations": silent("vmallocinfo"),
    "host's page types": silent("pagetypeinfo"),
    "host's pages": silent("kpageflags"),
    "memory types": refused("open('/proc/mtrr', 'w')"),
    "alarms on the host's load": refused("open('/proc/pressure/cpu', 'r+b')"),
    "host's keys": silent("keys"),
    "container daemon": refused("s = socket.socket(1)\ns.connect('/var/run/docker.sock')"),
    "memory of process 1": refused("open('/proc/1/mem', 'rb').read(1)"),
    "descriptors of process 1": refused("open('/proc/1/fd/0')"),
    "root of process 1": refused("os.listdir('/proc/1/root/')"),
    "kernel settings": refused("open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/true')"),
    "sysrq": refused("open('/proc/sysrq-trigger', 'w').write('h')"),
    "host's shadow": refused("open('/etc/shadow').read()"),
    "host's root folder": refused("os.listdir('/root')"),
    "host's sys": refused("os.listdir('/sys/fs/cgroup')"),
    "write to the system": refused("open('/usr/bin/evil', 'w')"),
    "write to devices": refused("open('/dev/evil', 'w')"),
    "write to the root": refused("open('/evil', 'w')"),
    "limits raised": "import resource as r\ntry:\n    r.setrlimit(r.RLIMIT_FSIZE, (10**12, 10**12))\n"
    "except ValueError:\n    print('HELD')\nelse:\n    print('ESCAPED')",
    "signals to process 1": "import os\nfor n in (2, 9, 15, 19):\n    os.kill(1, n)\nprint('HELD')",
    "disk": refused("for n in range(99):\n    open(f'/tmp/big{n}', 'wb').write(bytes(1 << 20))"),
    "shared memory": refused("for n in range(99):\n    open(f'/dev/shm/big{n}', 'wb').write(bytes(1 << 20))"),
    "inodes": refused("for n in range(9999):\n    open(f'/tmp/i{n}', 'w').close()"),
    "huge file": "import signal; signal.signal(25, signal.SIG_IGN)\n"
    + refused("os.truncate(open('/tmp/h', 'w').fileno(), 1 << 40)"),
}
IMAGE = "lmgym/test:attacked"
NOT_OF_ROOT = dict.fromkeys(  # what programs may do that are root in an image
    ("root", "foreign owner", "write to the system", "write to devices", "write to the root"),
    "root may do this to its own copy of an image",
)


@pytest.fixture(scope="module", params=["bubblewrap", "docker", "image", "root in an image"])
def shared(request, tmp_path_factory):
    """A sandbox of each engine, and in Docker two with an image as well."""
    if "image" not in request.param:
        ENGINES[request.param]()
        with open_sandbox(BOX, engine=request.param) as sandbox:
            yield sandbox
        return
    ENGINES["docker"]()
    folder = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(f"FROM {images.base()}\nRUN chown 1000:1000 /work\n")
    images.build(folder, IMAGE)
    try:
        with open_sandbox(replace(BOX, image=IMAGE, root="root" in request.param)) as sandbox:
            yield sandbox
    finally:
        images.delete(IMAGE)


def user(box):
    """Return the user of a box's programs."""
    return 0 if box.root else 1000


def skip_without_disk_limit(sandbox, attack):
    """Skip an attack on the disk of a box with an image where Docker's storage does not limit it."""
    if not sandbox.box.image or attack not in ("disk", "inodes"):
        return
    with daemon.requests("describe a container") as connection:
        limit = connection.inspect_container(sandbox._channel._id)["HostConfig"].get("StorageOpt")
        reasons = daemon.disk_limits(connection.info())
    if attack == "inodes":
        pytest.skip("no Docker daemon limits the number of files of a box with an image")
    if not limit:
        pytest.skip("no Docker daemon with quotas: " + "; ".join(reasons))


@pytest.mark.parametrize("attack", PROGRAMS)
def test_a_program_is_held(sandbox, attack):
    if sandbox.box.root and attack in NOT_OF_ROOT:
        pytest.skip(NOT_OF_ROOT[attack])
    skip_without_disk_limit(sandbox, attack)
    result = sandbox.run(["python3", "-c", PROGRAMS[attack]], timeout=20)
    assert "HELD" in result.text
    assert "ESCAPED" not in result.text
    sandbox.run("rm -rf /tmp/* /dev/shm/*")
    assert sandbox.run("echo on").text == "on\n"


@pytest.mark.parametrize(
    "bomb",
    [
        ":(){ :|:& };:; sleep 9",
        "python3 -c 'x = bytearray(900 << 20)'; echo code $?",
        "for i in $(seq 30); do python3 -c 'x = bytearray(30 << 20); import time; time.sleep(9)' & done; wait",
        "setsid sh -c 'sleep 77 & sleep 77' & sleep 9",
        "yes",
        "kill -9 -1",
        "printf '\\033]0;title\\007\\033[2J\\000\\001'",
    ],
)
def test_a_bomb_is_held(sandbox, bomb):
    result = sandbox.run(bomb, timeout=20 if "900 <<" in bomb else 1.5)
    assert len(result.stdout) <= sandbox.box.limits.output
    if "900 <<" in bomb:
        assert "code 137" in result.text
    sandbox.kill()
    assert sandbox.run("pgrep -c sleep; echo on").text == "0\non\n"


def test_a_program_may_still_set_its_own_limits_and_priority(sandbox):
    program = (
        "import os, resource as r\n"
        "r.prlimit(0, r.RLIMIT_NOFILE, (64, 64))\n"
        "os.setpriority(os.PRIO_PROCESS, 0, 10)\n"
        "os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
        "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))\n"
        "print(os.nice(1), r.getrlimit(r.RLIMIT_NOFILE))"
    )
    assert sandbox.run(["python3", "-c", program]).text == "11 (64, 64)\n"
    assert sandbox.run("ulimit -n 99; nice -n 12 nice; ulimit -n").text.split()[-1] == "99"


def test_what_root_writes_stays_in_its_container(sandbox):
    if not sandbox.box.root:
        pytest.skip("programs are not root")
    places = ("/usr/bin/evil", "/dev/evil", "/evil")
    with open_sandbox(sandbox.box) as writer, open_sandbox(sandbox.box) as other:
        assert writer.run(["touch", *places]).code == 0
        assert not any(os.path.exists(place) for place in places)
        assert other.run(["cat", *places]).text.count("No such file") == len(places)


FILES_IN_MEMORY = """import os
open('/proc/self/oom_score_adj', 'w').write(open('/proc/1/oom_score_adj').read())
for _ in range(30):
    file = os.memfd_create('x')
    for _ in range(15 << 4):
        os.write(file, bytes(1 << 16))
print('ESCAPED')
"""


def test_a_program_cannot_have_the_agent_killed_for_its_memory():
    """A policy that could end its own sandbox would take a lost episode out of its mean."""
    components.bubblewrap()
    with open_sandbox(BOX, engine="bubblewrap") as sandbox:
        assert sandbox.run(["python3", "-ISc", FILES_IN_MEMORY], timeout=20).code == 137
        assert sandbox.run("echo on").text == "on\n"


def test_abstract_sockets_setuid_programs_and_core_dumps_do_nothing(sandbox):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0lmgym-{os.getpid()}")
        server.listen()
        program = refused(f"s = socket.socket(1)\ns.connect('\\0lmgym-{os.getpid()}')")
        assert "HELD" in sandbox.run(["python3", "-c", program]).text
    assert sandbox.run("cp /usr/bin/id i; chmod u+s i; ./i -u; ulimit -c").text == f"{user(sandbox.box)}\n0\n"
    assert "NoNewPrivs:\t1" in sandbox.run("cat /proc/self/status").text


def test_links_lead_nowhere_on_the_host(sandbox):
    sandbox.run("ln -s /etc/shadow s; ln -s ../../../../../root r; mkfifo p; ln -s /dev/zero z")
    for path in ("s", "r/.bashrc", "p", "z", "../../../../etc/shadow"):
        with pytest.raises(OSError, match="."):
            sandbox.read(path)
    with pytest.raises(OSError, match="."):
        sandbox.write("r/x", b"")
    sandbox.run("rm s r p z")


def test_a_hard_link_takes_no_file_of_the_system_along(sandbox):
    if sandbox.box.root:
        pytest.skip("all files of an image are its root's own")
    sandbox.run("ln /etc/passwd h1; ln /usr/bin/id h2; ln -L /etc/alternatives/awk h3; ln /opt/python/bin/python3 h4")
    for path in ("h1", "h2", "h3", "h4"):
        with pytest.raises(FileNotFoundError):
            sandbox.read(path)


def members(*rows):
    """Return a tar archive of members, each a name, a type and the name that a link has."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind, link in rows:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = kind, link, 0o4755
            member.size = int(kind == tarfile.REGTYPE)
            archive.addfile(member, io.BytesIO(b"x"))
    return buffer.getvalue()


FILE, SOFT, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
ARCHIVES = {  # 0 is the working folder
    "absolute path": members(("/etc/evil", FILE, "")),
    "absolute path behind the number": members(("0//etc/../../evil", FILE, "")),
    "way up": members(("0/../../etc/evil", FILE, "")),
    "number of no folder": members(("9/evil", FILE, "")),
    "negative number": members(("-1/evil", FILE, "")),
    "folder itself": members(("0/", FILE, "")),
    "behind a link": members(("0/link", SOFT, "/tmp"), ("0/link/evil", FILE, "")),
    "behind a link to the root": members(("0/link", SOFT, "/"), ("0/link/tmp/evil", FILE, "")),
    "over a link": members(("0/link", SOFT, "/tmp/evil"), ("0/link", FILE, "")),
    "folder over a link": members(("0/link", SOFT, "/tmp"), ("0/link", FOLDER, ""), ("0/link/evil", FILE, "")),
    "hard link to a path": members(("0/evil", HARD, "/etc/passwd")),
    "hard link up": members(("0/evil", HARD, "0/../../etc/passwd")),
    "hard link behind a link": members(("0/link", SOFT, "/etc"), ("0/evil", HARD, "0/link/passwd")),
    "no archive": b"nonsense" * 100,
    "nothing": b"",
    "cut": members(("0/a", FILE, ""))[:600],
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_no_member_of_an_archive_leaves_the_writable_folders(sandbox, name):
    with pytest.raises(OSError, match="."):
        sandbox.restore(ARCHIVES[name])
    assert sandbox.run("find / -xdev -name 'evil*' 2>/dev/null; find . /tmp -name 'evil*'; echo on").text == "on\n"
    sandbox.run("rm -rf ./* /tmp/*")


def test_devices_of_an_archive_are_left_out_and_setuid_gives_nothing(sandbox):
    sandbox.restore(members(("0/disk", tarfile.BLKTYPE, ""), ("0/memory", tarfile.CHRTYPE, ""), ("0/file", FILE, "")))
    assert sandbox.run("ls; stat -c %u file").text == f"file\n{user(sandbox.box)}\n"
    sandbox.run("rm -f file")


def test_a_sparse_file_does_not_swell_the_archive(sandbox):
    sandbox.run("for i in 1 2 3; do truncate -s 15M sparse$i; done")
    with pytest.raises(OSError, match="sparse"):
        sandbox.save()
    sandbox.run("rm sparse*")
    assert sandbox.run("echo on").text == "on\n"


def test_control_without_the_sandboxs_network_namespace_a_socket_is_reached():
    """Control: the host's own bubblewrap with the network shared reaches an abstract socket."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0lmgym-control-{os.getpid()}")
        server.listen()
        program = refused(f"s = socket.socket(1)\ns.connect('\\0lmgym-control-{os.getpid()}')")
        words = ["bwrap", "--unshare-all", "--share-net", "--ro-bind", "/", "/", "--dev", "/dev", "/usr/bin/python3"]
        done = subprocess.run([*words, "-c", program], capture_output=True, text=True, check=False)
        assert "ESCAPED" in done.stdout


@pytest.mark.parametrize("attack", ["add_key", "vsock", "kernel crypto", "unshare user"])
def test_control_without_the_filter_the_kernel_answers_otherwise(attack):
    """Control: in plain bubblewrap, without the filter of system calls, the refusal is gone or another one."""
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "/usr/bin/python3"]
    done = subprocess.run([*words, "-c", PROGRAMS[attack]], capture_output=True, text=True, check=False)
    assert "ESCAPED" in done.stdout or "HELD 1" not in done.stdout


def test_groups_of_the_dead_are_swept():
    cgroup.sweep()  # what other tests left
    for parent in cgroup.parents().values():
        (parent / "lmgym-4000000-1-0").mkdir(exist_ok=True)
    assert cgroup.sweep() == len(set(cgroup.parents().values()))
    assert not any((parent / "lmgym-4000000-1-0").exists() for parent in cgroup.parents().values())


def test_groups_below_another_parent_are_swept():
    """The owner may have run in a group of its own, which this process does not."""
    cgroup.sweep()
    folders = {parent / "another" for parent in cgroup.parents().values()}
    for folder in folders:
        (folder / "lmgym-4000000-1-0").mkdir(parents=True)
    try:
        assert cgroup.sweep() == len(folders)
    finally:
        for folder in folders:
            folder.rmdir()
