"""Terminal: task folders are checked on reading, carried into a sandbox, and judged by tests nobody could touch."""

import os
import socket
from contextlib import closing, nullcontext

import pytest

from lmgym.backends.sandbox import cgroup, daemon, images
from lmgym.env.registry import build
from lmgym.errors import InstanceError, ReplayError
from lmgym.rollout.trust import check_harmless
from lmgym.tasks.terminal import dockerfile, folders, workspace
from lmgym.types import Trajectory
from tests.components import bubblewrap, docker

REWARD = "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt\n"
TOML = "[agent]\ntimeout_sec = 20\n[verifier]\ntimeout_sec = 20\n"
DOCKERFILE = "FROM debian\nWORKDIR /app\n"


def folder(root, name="job", **files):
    """Write a task folder; a file's "/" and "." are written "__" and "_dot_"."""
    texts = {
        "instruction_dot_md": "Do it.",
        "task_dot_toml": TOML,
        "environment__Dockerfile": DOCKERFILE,
        "tests__test_dot_sh": REWARD,
        **files,
    }
    for key, text in texts.items():
        path = root / name / key.replace("__", "/").replace("_dot_", ".")
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root / name


def block(command):
    return f"```mswea_bash_command\n{command}\n```"


def played(path, *commands):
    """Run commands in a task's sandbox and return the verdict of its tests."""
    task = folders.read(path)
    sandbox = workspace.start(task)
    for command in commands:
        sandbox.run(command)
    return workspace.test(sandbox, task)


def groups():
    """Return the control groups of this process's sandboxes."""
    name = f"{cgroup.PREFIX}{os.getpid()}-*"
    return {path for parent in cgroup.parents().values() for path in parent.glob(name)}


def test_every_own_task_has_all_parts():
    names = {path.name for path in folders.OWN.iterdir()}
    assert names == {*folders.TRAIN, *folders.TEST}
    assert len(names) == 10
    for path in (*folders.own("train"), *folders.own("test")):
        task = folders.read(path)
        assert not task.internet
        assert (path / "solution/solve.sh").is_file()
        assert dockerfile.parse(task.dockerfile, task.name).folder == "/app"


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["bash", "tools", "r2e"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_solutions_pass_and_nothing_done_fails(split, protocol):
    bubblewrap()
    with closing(build("terminal", split=split, protocol=protocol)) as env:
        for index in range(env.unwrapped.size()):
            env.reset(options={"index": index})
            for action in env.unwrapped.oracle():
                *_, done, _, info = env.step(action)
            assert done
            assert info["score"] == 1.0
            env.reset(options={"index": index})
            assert env.unwrapped.cut()["score"] == 0.0


def test_the_tests_are_nowhere_in_the_agents_sandbox():
    bubblewrap()
    with closing(build("terminal", split="train")) as env:
        env.reset(options={"index": 0})
        observation, *_ = env.step(
            block("ls /tests /solution /logs; grep -rl 'Compare the decoded' /app /home /opt/tools /tmp /var")
        )
        assert "check.py" not in observation["text"]
        assert observation["text"].count("cannot access") == 3


CHECK = "test -f /app/done && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
WRITE = "mkdir -p /tmp/verifier; echo 1 > /tmp/verifier/reward.txt"
CHEATS = {
    "reward written before": f"{WRITE}; chmod 444 /tmp/verifier/reward.txt",
    "folder of the reward made unwritable": f"{WRITE}; chmod 500 /tmp/verifier",
    "link in its place": "echo 1 > /tmp/r; ln -s /tmp/r /tmp/verifier",
    "program in the background": f"(while sleep 0.01; do {WRITE}; done) &",
    "shell settings": "cd; echo 'touch /app/done' > .bashrc; cp .bashrc .profile; cp .bashrc .bash_profile",
    "python of the user": """d=$(python3 -m site --user-site); mkdir -p $d
echo 'open("/app/done", "w")' > $d/usercustomize.py""",
}


@pytest.mark.parametrize(
    ("command", "reward"),
    [*((cheat, 0.0) for cheat in CHEATS.values()), ("touch done", 1.0)],
    ids=[*CHEATS, "the task itself"],
)
def test_doing_the_task_earns_the_reward_and_a_cheat_nothing(tmp_path, command, reward):
    bubblewrap()
    script = f"python3 -c 'import sys'\n{CHECK}"
    assert played(folder(tmp_path, tests__test_dot_sh=script), command).reward == reward


FORGERY = """open('/logs/verifier/reward.json', 'w').write('{"reward": 1}')\n"""
PROGRAMS = {  # of a task whose tests run them
    "reward": FORGERY,
    "reward, then output that is no text": f"{FORGERY}import os\nos.write(1, b'\\xff')\n",
    "reward in a folder that nobody may change": f"{FORGERY}import os\nos.chmod('/tmp/verifier', 0o500)\n",
    "reward in another folder": "import os\nos.rename('/tmp/verifier', '/tmp/other')\nos.mkdir('/tmp/verifier')\n"
    + FORGERY,
    "reward behind a link": "import os\nos.rename('/tmp/verifier', '/tmp/other')\n"
    f"os.symlink('other', '/tmp/verifier')\n{FORGERY}",
    "reward in a closed /tmp": f"{FORGERY}import os\nos.chmod('/tmp', 0)\n",
    "reward, and the check killed": f"{FORGERY}import os\nos.kill(os.getppid(), 9)\n",
    "out of range": FORGERY.replace("1", "5"),
    "results of the check": """source, names = open('/tests/check.py').read(), {}
exec(source[:source.index('def main')], names)
print(*(right for _, right in names['CASES']) if 'CASES' in names else names['expected']([]), sep='\\n')
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("name", "path"), [("rpn-calculator", "rpn.py"), ("slow-intervals", "bookings.py")])
def test_a_program_under_test_cannot_write_its_reward_or_read_the_results(name, path, program):
    bubblewrap()
    verdict = played(folders.OWN / name, f"cat > {path} <<'END'\n{PROGRAMS[program]}END\n")
    assert verdict.reward == 0.0


def test_no_check_holds_what_the_program_under_test_must_print():
    for name in ("rpn-calculator", "slow-intervals"):
        names = {}
        source = (folders.OWN / name / "tests" / "check.py").read_text()
        exec(source[: source.index("def main")], names)
        assert not {"CASES", "expected"} & names.keys()


LINKS = {
    "page-report": ("report.csv", "/tests/expected.csv"),
    "decode-records": ("readings.jsonl", "../tests/expected.jsonl"),
    "effective-config": ("effective.json", "/proc/self/root/tests/expected.json"),
    "redact-letters": ("redacted", "/tests/redacted"),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_to_the_expected_answer_is_no_answer(name):
    """It leads nowhere until the tests stand beside it."""
    bubblewrap()
    link, target = LINKS[name]
    assert played(folders.OWN / name, f"ln -s {target} {link}").reward == 0.0
    assert played(folders.OWN / name, f"ln -s {target} ~/way; ln -s ~/way {link}").reward == 0.0


@pytest.mark.parametrize(
    ("script", "reward", "reason"),
    [
        ("echo 0.25 > /logs/verifier/reward.txt", 0.25, "reward 0.25"),
        ('echo \'{"reward": 1, "style": 0.2}\' > /logs/verifier/reward.json', 1.0, "resolved"),
        ("echo '{\"style\": 0.5}' > /logs/verifier/reward.json", 0.5, "reward 0.5"),
        ("true", 0.0, "the tests leave no reward"),
        ("echo good > /logs/verifier/reward.txt", 0.0, "the tests leave no reward"),
        ('echo \'{"a": 1, "b": 1}\' > /logs/verifier/reward.json', 0.0, "the tests leave no reward"),
        ("echo 1 > /logs/verifier/reward.txt; kill -9 $$", 0.0, "the tests were killed"),
        ("echo 1 > /logs/verifier/reward.txt; sleep 30", 0.0, "the tests do not end"),
    ],
)
def test_rewards(tmp_path, script, reward, reason):
    bubblewrap()
    toml = TOML.replace("timeout_sec = 20", "timeout_sec = 1.5")
    verdict = played(folder(tmp_path, tests__test_dot_sh=script, task_dot_toml=toml))
    assert (verdict.reward, verdict.reason) == (reward, reason)


@pytest.mark.parametrize("name", ["reward.txt", "reward.json"])
@pytest.mark.parametrize("text", ["5", "nan", "-1", "9" * 999, "[" * 99_999])
def test_a_reward_outside_of_its_range_is_answered_and_earns_nothing(tmp_path, name, text):
    """A program of the agent may have written it, so it must not end the run."""
    bubblewrap()
    folder(tmp_path, tests__test_dot_sh=f"echo '{text}' > /logs/verifier/{name}")
    with closing(build("terminal", split="official", data=tmp_path, protocol="tools")) as env:
        env.reset(options={"index": 0})
        observation, reward, done, _, info = env.step('{"name": "submit", "arguments": {}}')
    assert (reward, done, info["score"]) == (0.0, True, 0.0)
    assert "reward" in observation["text"]
    assert len(observation["text"]) < 200


BROKEN = {
    "no instruction": ({"instruction_dot_md": None}, "has no instruction.md"),
    "no settings": ({"task_dot_toml": None}, "has no task.toml"),
    "no tests": ({"tests__test_dot_sh": None}, "has no tests/test.sh"),
    "no environment": ({"environment__Dockerfile": None}, "has no environment/Dockerfile"),
    "invalid settings": ({"task_dot_toml": "[agent\n"}, "not valid TOML"),
    "no text": ({"instruction_dot_md": b"\xff\xfe"}, "cannot be read"),
    "text for a number": ({"task_dot_toml": "[agent]\ntimeout_sec = 'long'\n"}, "agent.timeout_sec = 'long'"),
    "no time": ({"task_dot_toml": "[verifier]\ntimeout_sec = 0\n"}, "seconds are positive"),
    "not a size": ({"task_dot_toml": "[environment]\nmemory = 'much'\n"}, "write a size such as 2G"),
    "not a table": ({"task_dot_toml": "agent = 3\n"}, "agent = 3"),
    "variable of the host": ({"task_dot_toml": "[verifier.env]\nKEY = '${KEY}'\n"}, "needs a value of the host"),
    "nested without end": ({"task_dot_toml": "a = " + "[" * 9999}, "nested too deeply"),
    "no number": ({"task_dot_toml": "[agent]\ntimeout_sec = nan\n"}, "agent.timeout_sec = nan"),
    "negative time": ({"task_dot_toml": "[verifier]\ntimeout_sec = -1\n"}, "seconds are positive"),
    "negative memory": ({"task_dot_toml": "[environment]\nmemory_mb = -3\n"}, "environment.memory_mb = -3"),
    "endless disk": ({"task_dot_toml": "[environment]\nstorage = '9999999T'\n"}, "write a size such as 2G"),
    "no variable": ({"task_dot_toml": "[verifier.env]\n'A=B' = 'x'\n"}, "verifier.env 'A=B'"),
    "NUL in a variable": ({"task_dot_toml": '[verifier.env]\nA = "x\\u0000"\n'}, "is no environment variable"),
    "empty instruction": ({"instruction_dot_md": " \n"}, "instruction.md is empty"),
    "several containers": ({"environment__docker-compose_dot_yaml": ""}, "docker-compose.yaml is not supported"),
    "several steps": ({"steps__one__instruction_dot_md": ""}, "steps is not supported"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_corrupt_folder_is_refused_in_one_line(tmp_path, name):
    files, message = BROKEN[name]
    with pytest.raises(InstanceError) as caught:
        folders.read(folder(tmp_path, **files))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_in_both_spellings(tmp_path):
    toml = "[environment]\nmemory = '2G'\nstorage_mb = 10\ndocker_image = 'x/y:1'\nallow_internet = false\n"
    task = folders.read(folder(tmp_path, task_dot_toml=toml, environment__Dockerfile=None))
    assert (task.memory, task.disk, task.image, task.internet) == (2 << 30, 10 << 20, "x/y:1", False)
    assert (task.seconds, task.test_seconds) == (600.0, 600.0)


def test_a_dockerfile_is_read(tmp_path):
    text = (
        "# comment\nARG N=3\nFROM debian:12\nARG M=4\nENV A=1 B='two words'\nENV C ${A}x\\$\nWORKDIR /srv\n"
        'COPY a.txt sub/ ./\nCOPY ["a.txt", "/srv/b.txt"]\nRUN echo one && \\\n    # between\n    echo two\n'
        'RUN ["echo", "x"]\nLABEL x=y\nCMD ["bash"]\n'
    )
    path = folder(tmp_path, environment__Dockerfile=text, environment__a_dot_txt="a", environment__sub__c_dot_txt="c")
    read = dockerfile.parse(path / "environment/Dockerfile", "job")
    assert read.folder == "/srv"
    assert read.environment == {"A": "1", "B": "two words", "C": "1x$"}
    first, second, run, words = read.steps
    assert [*first.files] == ["/srv/a.txt", "/srv/c.txt"]
    assert [*second.files] == ["/srv/b.txt"]
    assert run.command == "echo one &&     echo two"
    assert run.environment["M"] == "4"
    assert words.command == ["echo", "x"]


REFUSED = {
    "two stages": ("FROM a AS x\nFROM b\nWORKDIR /app\n", "a build of several stages"),
    "unknown instruction": ("FROM a\nWORKDIR /app\nADD https://x/y /app\n", "cannot have ADD"),
    "another user": ("FROM a\nWORKDIR /app\nUSER root\n", "cannot have USER"),
    "two folders": ("FROM a\nWORKDIR /app\nWORKDIR /srv\n", "a second WORKDIR"),
    "no folder": ("FROM a\n", "no WORKDIR"),
    "no image": ("WORKDIR /app\n", "has no FROM"),
    "mount": ("FROM a\nWORKDIR /app\nRUN --mount=type=cache,target=/x true\n", "cannot have RUN --mount"),
    "system file": ("FROM a\nWORKDIR /app\nCOPY Dockerfile /etc/passwd\n", "COPY to /etc/passwd"),
    "from a stage": ("FROM a\nWORKDIR /app\nCOPY --from=x /a /app\n", "COPY --from=x"),
    "missing file": ("FROM a\nWORKDIR /app\nCOPY nothing.txt .\n", "names no file"),
    "outside": ("FROM a\nWORKDIR /app\nCOPY ../task.toml .\n", "leaves the build's folder"),
    "link out": ("FROM a\nWORKDIR /app\nCOPY link .\n", "leaves the build's folder"),
    "open quote": ("FROM a\nWORKDIR /app\nCOPY 'a b .\n", "No closing quotation"),
    "open quote in ENV": ("FROM a\nWORKDIR /app\nENV A='b\n", "No closing quotation"),
    "nothing in ENV": ("FROM a\nWORKDIR /app\nENV\n", "no name of a variable"),
    "no name in ENV": ("FROM a\nWORKDIR /app\nENV =x\n", "no name of a variable"),
    "nothing in ARG": ("FROM a\nWORKDIR /app\nARG\n", "no name of a variable"),
    "nothing to run": ("FROM a\nWORKDIR /app\nRUN []\n", "a RUN without a command"),
    "no pattern": ("FROM a\nWORKDIR /app\nCOPY a**b .\n", "is no pattern"),
    "folder of the system": ("FROM a\nWORKDIR /proc/self\n", "WORKDIR /proc/self"),
    "way to the system": ("FROM a\nWORKDIR /app/../etc\n", "WORKDIR /etc"),
    "way out of the folder": ("FROM a\nWORKDIR /app\nCOPY Dockerfile /app/../etc/x\n", "COPY to /etc/x"),
    "long folder": (f"FROM a\nWORKDIR /{'x' * 300}\n", "a WORKDIR that is no path"),
    "NUL in a folder": ("FROM a\nWORKDIR /a\0b\n", "a WORKDIR that is no path"),
    "no JSON": ("FROM a\nWORKDIR /app\nRUN [bash, x]\n", "a list that is no JSON"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_carried_is_refused_in_one_line(tmp_path, name):
    text, message = REFUSED[name]
    path = folder(tmp_path, environment__Dockerfile=text)
    (path / "environment/link").symlink_to("/etc/hostname")
    with pytest.raises(InstanceError) as caught:
        dockerfile.parse(path / "environment/Dockerfile", "job")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


FAILING = {
    "command": (f"{DOCKERFILE}RUN echo start\\nmore; echo no such thing >&2; exit 3\n", "", "RUN echo start"),
    "full disk": (f"{DOCKERFILE}RUN for i in 1 2 3 4; do head -c 900000 /dev/zero > $i; done\n", "", "No space left"),
    "full disk in COPY": (f"{DOCKERFILE}COPY big .\n", "big", "No space left on device"),
    "endless": (f"{DOCKERFILE}RUN sleep 30\n", "", "takes longer than"),
}


@pytest.mark.parametrize("name", list(FAILING))
def test_a_failing_build_is_one_line_and_leaves_nothing(tmp_path, name, monkeypatch):
    bubblewrap()
    monkeypatch.setattr(workspace, "BUILD_SECONDS", 2.0)
    text, extra, message = FAILING[name]
    toml = f"{TOML}[environment]\nstorage_mb = 1\n"
    path = folder(tmp_path, environment__Dockerfile=text, task_dot_toml=toml)
    if extra:
        (path / "environment" / extra).write_bytes(bytes(3 << 20))
    before = groups()
    with closing(build("terminal", split="official", data=tmp_path)) as env:
        with pytest.raises(InstanceError) as caught:
            env.reset(options={"index": 0})
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert groups() == before


def test_an_agent_that_fills_its_disk_is_judged(tmp_path):
    bubblewrap()
    toml = f"{TOML}[environment]\nstorage_mb = 1\n"
    path = folder(tmp_path, task_dot_toml=toml, tests__test_dot_sh=CHECK)
    assert played(path, "touch done; head -c 9000000 /dev/zero > big; true").reward == 1.0
    verdict = played(path, "touch done; truncate -s 1000000 hole other")
    assert verdict.reward == 0.0
    assert "cannot be tested" in verdict.reason


def test_official_folders_are_found_by_path(tmp_path, monkeypatch):
    for name in ("b/hash/second", "first"):
        folder(tmp_path, name)
    monkeypatch.setenv("TERMINAL_DATA", str(tmp_path))
    with closing(build("terminal", split="official")) as env:
        assert [env.unwrapped.title(index) for index in range(env.unwrapped.size())] == ["first", "second"]
        assert env.unwrapped.index_of("second") == 1
    with closing(build("terminal", split="official", data=tmp_path / "none")) as env, pytest.raises(InstanceError):
        env.reset(options={"index": 0})
    monkeypatch.delenv("TERMINAL_DATA")
    with closing(build("terminal", split="official")) as env, pytest.raises(InstanceError, match="set TERMINAL_DATA"):
        env.reset(options={"index": 0})


def test_a_solution_of_several_files_is_played(tmp_path):
    bubblewrap()
    files = {
        "solution__solve_dot_sh": "cp ~/solution/parts/data.bin /app/done\n",
        "solution__parts__data_dot_bin": b"\x00\xff```",
        "tests__test_dot_sh": CHECK,
    }
    folder(tmp_path, **files)
    for protocol in ("bash", "tools", "r2e"):
        with closing(build("terminal", split="official", data=tmp_path, protocol=protocol)) as env:
            env.reset(options={"index": 0})
            for action in env.unwrapped.oracle():
                *_, info = env.step(action)
            assert info["score"] == 1.0


@pytest.mark.parametrize(("split", "index"), [("train", 2), ("test", 4)])
def test_own_tasks_play_in_docker(split, index):
    docker()
    with closing(build("terminal", split=split, engine="docker", protocol="tools")) as env:
        env.reset(options={"index": index})
        for action in env.unwrapped.oracle():
            observation, *_, info = env.step(action)
        assert (info["score"], observation["text"]) == (1.0, "Tested: resolved.")
        env.reset(options={"index": index})
        observation, *_ = env.step('{"name": "run", "arguments": {"command": "ls /tests /logs; id -u"}}')
        assert observation["text"].count("cannot access") == 2
        assert env.unwrapped.cut()["score"] == 0.0


def test_a_base_image_of_ones_own_and_a_prebuilt_image(tmp_path):
    docker()

    words = (
        "FROM nowhere/at-all:1\nWORKDIR /srv\nRUN echo built > /srv/made && mkdir -p /root\nADD extra.txt /etc/extra\n"
    )
    check = "grep -q more /etc/extra && test -f /srv/done && test -f made && echo 1 > /logs/verifier/reward.txt\n"
    path = folder(tmp_path, environment__Dockerfile=words, environment__extra_dot_txt="more", tests__test_dot_sh=check)
    task = folders.read(path)
    sandbox = workspace.start(task, engine="docker", base=images.base())
    name = sandbox.box.image
    try:
        assert sandbox.box.folder == "/srv"
        sandbox.run("touch done")
        assert workspace.test(sandbox, task).reward == 1.0
        toml = f"{TOML}[environment]\ndocker_image = '{name}'\n"
        ready = folders.read(folder(tmp_path, "ready", task_dot_toml=toml, environment__Dockerfile=None))
        with workspace.start(ready) as sandbox:
            assert sandbox.run("cat made").text == "built\n"
    finally:
        images.delete(name)


@pytest.mark.parametrize(
    ("words", "message"),
    [("FROM nowhere/at-all:1\n", "fails"), ("FROM base\nRUN exit 7\n", "fails"), ("NONSENSE\n", "fails")],
)
def test_a_dockerfile_that_fails_in_docker_is_one_line(tmp_path, words, message):
    docker()
    from lmgym.backends.sandbox import daemon, images

    base = images.base() if "base" in words else ""
    before = {row["Id"] for row in daemon.client().images()}
    with pytest.raises(InstanceError, match=message) as caught:
        workspace.start(folders.read(folder(tmp_path, environment__Dockerfile=words)), engine="docker", base=base)
    assert "\n" not in str(caught.value)
    assert {row["Id"] for row in daemon.client().images()} == before


def test_a_missing_prebuilt_image_is_one_line(tmp_path):
    docker()
    toml = f"{TOML}[environment]\ndocker_image = 'none/such:1'\n"
    with pytest.raises(InstanceError, match="no image 'none/such:1'"):
        workspace.start(folders.read(folder(tmp_path, task_dot_toml=toml, environment__Dockerfile=None)))


ONLINE = f"{TOML}[environment]\nallow_internet = true\n"
OFFLINE = f"{TOML}[environment]\nallow_internet = false\n"


@pytest.fixture
def port():
    """A port of this machine that answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("toml", "network", "reached"),
    [(ONLINE, "task", True), (TOML, "task", True), (OFFLINE, "task", False), (ONLINE, "none", False)],
)
def test_a_network_takes_the_tasks_leave_and_the_users(tmp_path, port, toml, network, reached):
    """Harbor's default is a network. The tests of the task have what its agent has."""
    bubblewrap()
    connects = f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null"
    folder(tmp_path, task_dot_toml=toml, tests__test_dot_sh=f"{connects} || exit 0\n{REWARD}")
    with closing(build("terminal", split="official", data=str(tmp_path), network=network)) as env:
        observation, _ = env.reset(options={"index": 0})
        assert ("There is no network" in observation["text"]) == (toml is not OFFLINE and not reached)
        reply = env.step(block(f"{connects} && echo reached"))[0]["text"]
        assert ("reached\n" in reply) == reached
        assert env.unwrapped.cut()["score"] == float(reached)


def test_a_strangers_record_gets_no_network():
    with closing(build("terminal", split="train", network="task")) as env:
        assert env.unwrapped.network == "task"
    for network, refused in (("task", True), ("none", False)):
        record = Trajectory(
            id="x", root="x", task="lmgym/Terminal-v0", split="train", index=0, options={"network": network}
        )
        with pytest.raises(ReplayError, match="network='task'") if refused else nullcontext():
            check_harmless(record)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "mode"), [(True, "bridge"), (False, "none")])
def test_a_network_in_docker_is_the_bridge(tmp_path, network, mode):
    """The tests' own daemon has no bridge, so this asks it for the setting."""
    docker()
    task = folders.read(folder(tmp_path, task_dot_toml=ONLINE))
    with workspace.start(task, engine="docker", base=images.base(), network=network):
        label = f"{daemon.OWNER}={daemon.labels()[daemon.OWNER]}"
        with daemon.requests("look at a container") as connection:
            rows = connection.containers(filters={"label": label})
            assert [connection.inspect_container(row["Id"])["HostConfig"]["NetworkMode"] for row in rows] == [mode]
