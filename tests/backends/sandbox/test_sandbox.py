"""Commands, sessions and files in a sandbox."""

import os
import subprocess
import sys
import time

import pytest

from lmgym.backends.sandbox import Box, SandboxLimits, cgroup, inside, open_sandbox
from lmgym.backends.sandbox.owner import owner
from lmgym.errors import BackendError
from tests import components
from tests.backends.sandbox.conftest import BOX


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("nonesuch", 127)])
def test_exit_codes(sandbox, command, code):
    assert sandbox.run(command).code == code


def test_programs_run_without_a_shell_with_any_streams_bytes_and_lengths(sandbox):
    assert sandbox.run(["printf", "%s", "$HOME"]).stdout == b"$HOME"
    with pytest.raises(FileNotFoundError):
        sandbox.run(["nonesuch"])
    with pytest.raises(OSError, match="NUL"):
        sandbox.run("echo \0")
    apart = sandbox.run("echo a; echo b >&2; echo c", split=True)
    assert (apart.stdout, apart.stderr) == (b"a\nc\n", b"b\n")
    assert sandbox.run("echo a; echo b >&2; echo c").stdout == b"a\nb\nc\n"
    data = bytes(range(256)) * 40
    assert sandbox.run("cat", stdin=data).stdout == data
    assert sandbox.run("cat; echo end").stdout == b"end\n"
    assert sandbox.run("echo " + "x" * 300_000 + " | wc -c").text.strip() == "300001"
    result = sandbox.run("echo first; seq 100000; echo last")
    assert result.stdout.startswith(b"first\n1\n")
    assert result.stdout.endswith(b"100000\nlast\n")
    assert len(result.stdout) == BOX.limits.output
    assert len(result.stdout) + result.dropped == 11 + 588_895


def test_a_command_that_takes_too_long_is_stopped_and_programs_in_the_background_live_on(sandbox):
    result = sandbox.run("echo early; sleep 60 & sleep 60", timeout=0.3)
    assert result.timed_out
    assert result.stdout == b"early\n"
    assert sandbox.run("pgrep -c sleep").text == "0\n"
    assert sandbox.run("sleep 60 & echo started").text == "started\n"
    sandbox.run("sleep 50", timeout=0.2)
    assert sandbox.run("pgrep -af sleep").text.endswith("sleep 60\n")


def test_a_shell_keeps_its_state_and_goes_on_after_an_interrupt(sandbox):
    shell = sandbox.shell()
    shell.run("cd /tmp; export COLOUR=red; twice() { echo $(($1 * 2)); }")
    assert shell.run("echo $PWD $COLOUR; twice 4; false").text == "/tmp red\n8\n"
    assert shell.run("echo $?").text == "1\n"
    shell.run("X=1")
    result = shell.run("sleep 60", timeout=0.2)
    assert result.timed_out
    assert not result.ended
    assert shell.run("echo $X").text == "1\n"
    assert shell.run("while :; do :; done", timeout=0.2).timed_out
    assert shell.run("echo still").text == "still\n"


def test_a_shell_survives_what_it_is_told(sandbox):
    shell = sandbox.shell(split=True)
    assert shell.run("if").code != 0
    assert shell.run("cat; read line").stdout == b""
    assert shell.run("printf '\\377\\000'").stdout == b"\xff\0"
    assert shell.run("sleep 60 & jobs -p | wc -l").text == "1\n"
    assert shell.run("kill %1; wait %1; echo $?").text == "143\n"


@pytest.mark.parametrize("word", ["break", "continue", "break 2", "continue 9", "while :; do break 3; done"])
def test_a_shell_goes_on_after_a_word_for_loops_outside_of_one(sandbox, word):
    shell = sandbox.shell()
    shell.run("X=1; declare -A map=([a]=2); set -- three four")
    for _ in range(3):
        result = shell.run(f"echo before; {word}", timeout=5.0)
        assert (result.text.splitlines()[0], result.code, result.timed_out, result.ended) == ("before", 0, False, False)
    assert shell.run("echo $? $X ${map[a]} $2; (exit 7)").text == "0 1 2 four\n"
    assert shell.run("echo $?; for i in 1 2 3; do [ $i = 1 ] && continue; break; done; echo $i").text == "7\n2\n"


def test_a_shell_that_ends_starts_anew(sandbox):
    shell = sandbox.shell()
    shell.run("cd /tmp")
    result = shell.run("exit 3")
    assert (result.code, result.ended) == (3, True)
    assert shell.run("pwd").text == "/work\n"
    assert shell.run("kill -9 $$").code == 137
    assert shell.run("(sleep 0.1; kill -9 $$) &").code == 0
    sandbox.run("sleep 0.3")
    assert shell.run("echo back").text == "back\n"


def test_a_shells_words_do_not_end_a_command(sandbox):
    shell = sandbox.shell()
    line = r"printf '%s 0\0' $(printf '%032d' 0)"
    by_path = f"for each in /proc/$$/fd/*; do {line} > $each; done"
    by_number = f"for each in $(seq 3 255); do {line} >&$each; done"
    shell.run(f"echo before; {{ {by_path}; {by_number}; }} 2>/dev/null; set; env; (exit 5)")
    for number in range(3):
        assert shell.run(f"echo {number}; (exit {number})").code == number


def test_a_python_keeps_its_state(sandbox):
    python = sandbox.python()
    assert python.run("x = 20\ndef f():\n    return x + 1").stdout == b""
    assert python.run("x += 1\nf()").text == "22\n"
    failed = python.run("1 / 0")
    assert failed.code == 1
    assert "ZeroDivisionError" in failed.text
    assert "<input-3>" in failed.text
    assert "_session" not in failed.text
    assert python.run("while True:\n    pass", timeout=0.2).timed_out
    assert python.run("print(x)").text == "21\n"
    assert python.run("input()").code == 1
    assert python.run("raise SystemExit(4)").code == 4
    assert "NameError" in python.run("x").text


def test_files(sandbox):
    sandbox.write("deep/er/data.bin", b"\0\1", mode=0o755)
    assert sandbox.read("/work/deep/er/data.bin") == b"\0\1"
    assert sandbox.run("stat -c %a deep/er/data.bin").text == "755\n"
    with pytest.raises(FileNotFoundError):
        sandbox.read("nonesuch")
    with pytest.raises(OSError, match="regular"):
        sandbox.read("/dev/zero")
    with pytest.raises(OSError, match="more than 1 bytes"):
        sandbox.read("deep/er/data.bin", limit=1)
    with pytest.raises(OSError, match="Read-only"):
        sandbox.write("/usr/bin/python", b"")


@pytest.mark.parametrize("path", ["nul\0", "surrogate\ud800", "a/" * 5000 + "f", "long" * 100_000])
def test_a_path_that_cannot_be_is_an_error_of_the_file(sandbox, path):
    with pytest.raises(OSError, match="."):
        sandbox.read(path)
    with pytest.raises(OSError, match="."):
        sandbox.write(path, b"")
    with pytest.raises(OSError, match="."):
        sandbox.run("true", folder=path)
    with pytest.raises(OSError, match="."):
        sandbox.run(["true", "nul\0"])
    assert sandbox.run("echo on").text == "on\n"


def test_a_sandbox_that_does_not_start_leaves_nothing(monkeypatch):
    """The agent ends before its first word."""
    components.bubblewrap()
    command = inside.command
    monkeypatch.setattr(inside, "command", lambda *box, **more: [*command(*box, **more)[:-1], "no sources"])
    before = None
    for _ in range(2):  # the first imports and caches
        before = _open()
        with pytest.raises(BackendError, match="."):
            open_sandbox(BOX, engine="bubblewrap")
    assert _open() == before


def _open():
    """Return the descriptors and control groups of this process, and its number of children."""
    groups = [path for parent in cgroup.parents().values() for path in parent.glob(f"{cgroup.PREFIX}{owner()}-*")]
    children = subprocess.run(["pgrep", "-cP", str(os.getpid())], capture_output=True, check=False).stdout
    return sorted(os.listdir("/proc/self/fd")), groups, children


def test_files_are_saved_and_restored(engine):
    with open_sandbox(BOX, engine=engine) as one, open_sandbox(BOX, engine=engine) as two:
        one.run(
            "mkdir -m 700 d; echo 1 > d/f; ln d/f hard; ln -s d/f soft; ln -s /etc/passwd o; mkfifo pipe; touch /tmp/t"
        )
        one.run("chmod 500 d; touch -d 2001-01-01 d/f; touch -h -d 2002-02-02 soft; echo later > ~/note")
        listing = "cd /; find work tmp home/agent -mindepth 1 | sort | xargs stat -c '%n %A %h %s %Y'"
        before, state = one.run(listing).text, one.save()
        one.run("chmod 700 d; rm -rf d soft; echo 2 > hard; mkdir -p a/b/c; chmod 0 a; sleep 99 &")
        for sandbox in (one, two):
            sandbox.restore(state)
            assert sandbox.run(listing).text == before
            assert sandbox.run("cat soft; pgrep -c sleep").text == "1\n0\n"


def test_running_programs_are_counted(engine):
    with open_sandbox(BOX, engine=engine) as sandbox:
        assert sandbox.programs() == 0
        sandbox.run("sleep 99 > /dev/null 2>&1 & setsid sleep 99 > /dev/null 2>&1 &")
        shell = sandbox.shell()
        shell.run("true")
        assert sandbox.programs() == 3
        sandbox.kill()
        assert sandbox.programs() == 0


def test_files_of_the_host_are_shown(engine, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "note.txt").write_text("hello")
    with open_sandbox(Box(trees={"/data": tmp_path}, folder="/testbed"), engine=engine) as sandbox:
        assert sandbox.run("pwd; cat /data/note.txt; echo > /data/x").text.startswith("/testbed\nhello")
        assert not (tmp_path / "x").exists()


def test_software_of_the_host_is_not_seen_but_for_lmgyms_python(sandbox):
    assert sandbox.run(["python3", "-c", "import numpy"]).code == 1
    assert sandbox.run("ls /opt/python/lib/python3*/site-packages").stdout == b""
    code = "import sys, ssl, sqlite3, _ctypes; print(sys.version)"
    assert sandbox.run(["python3", "-c", code]).text.strip() == sys.version
    shown = set(sandbox.run("ls /usr").text.split())
    assert shown <= {"bin", "include", "lib", "lib32", "lib64", "libexec", "libx32", "sbin", "share"}
    assert sandbox.run("find / -path /proc -prune -o -name pip -type d -print 2>/dev/null").text == ""


def test_a_closed_sandbox(engine):
    sandbox = open_sandbox(Box(limits=SandboxLimits(memory=64 << 20)), engine=engine)
    sandbox.close()
    sandbox.close()
    with pytest.raises(BackendError, match="closed"):
        sandbox.run("true")


@pytest.mark.parametrize("name", ["run", "save", "restore"])
def test_a_request_that_is_interrupted_closes_the_sandbox(engine, monkeypatch, name):
    """Otherwise the next request would read its answer."""
    with open_sandbox(BOX, engine=engine) as sandbox:
        arguments = {"run": ["echo old"], "save": [], "restore": [sandbox.save()]}[name]

        def interrupted(size, deadline):
            raise KeyboardInterrupt

        monkeypatch.setattr(sandbox._channel, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(sandbox, name)(*arguments)
        assert sandbox.closed
        with pytest.raises(BackendError, match="closed"):
            sandbox.run("echo new")


def test_the_sandbox_ends_with_its_owner(engine):
    program = (
        "import os, signal; from lmgym.backends.sandbox import open_sandbox\n"
        f"box = open_sandbox(engine='{engine}')\n"
        "box.run('sleep 986 & sleep 0.1')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    owner = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert owner.returncode == -9
    deadline = time.monotonic() + 30  # the kernel kills the sandbox after its owner, not with it
    while subprocess.run(["pgrep", "-fx", "sleep 986"], capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < deadline, "the sandbox's command outlives its owner"
        time.sleep(0.05)
