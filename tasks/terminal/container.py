"""A task folder in Docker: its image is built or taken as it is, and the tests run in the agent's container."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from lmgym.backends.sandbox import Box, Result, Sandbox, open_sandbox
from lmgym.errors import InstanceError
from lmgym.tasks.terminal.folders import OWN, TaskFolder

TESTS, VERDICT = "/tests", "/logs/verifier"
LARGEST = 1 << 20  # bytes of a reward file
HOME = "/home/agent"  # in the image of this machine's files, which has no /root
REPOSITORY = "lmgym/terminal"
CUT_LINKS = f"""find . "${{HOME:-.}}" /tmp -type l -exec sh -c 'for link; do
    case $(readlink -f -- "$link") in {TESTS}|{TESTS}/*|/logs|/logs/*) rm -f -- "$link";; esac
done' sh {{}} +"""  # an answer that is a link to the expected one is none


@dataclass(frozen=True)
class TestOutcome:
    """Reward of a task's tests."""

    __test__ = False  # pytest looks for classes of this name
    reward: float
    reason: str  # in a few words


def start(task: TaskFolder, *, base: str = "", network: bool = False) -> Sandbox:
    """Start a container of a task's image, in which programs are root, without a network unless asked.

    `base` takes the place of the image that the Dockerfile starts from; our own tasks start from the files of this
    machine. Raises InstanceError if the Dockerfile fails or an image is missing.
    """
    from lmgym.backends.sandbox import images

    own = task.path.parent == OWN and not base
    base = images.base() if own else base
    name = task.image if not task.dockerfile.is_file() else _built(task, base, network)
    box = Box(
        image=name,
        folder=_working_folder(name),
        root=True,
        limits=task.limits,
        network=network,
        environment={"HOME": HOME} if own else {},
    )
    return open_sandbox(box)


def _built(task: TaskFolder, base: str, network: bool) -> str:
    """Return the name of a task's image; it is built when its files are new."""
    from lmgym.backends.sandbox import images

    folder = task.path / "environment"
    state = blake2b(base.encode(), digest_size=8)
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        state.update(f"\0{path.relative_to(folder)}\0{path.stat().st_mode & 0o111}\0".encode())
        state.update(blake2b(path.read_bytes()).digest())
    slug = re.sub(r"[^a-z0-9_.-]+", "-", task.name.lower()).strip("-.") or "task"
    name = f"{REPOSITORY}:{slug[:80]}-{state.hexdigest()}"
    if not images.exists(name):
        images.build(folder, name, base_image=base, network=network)
    return name


def _working_folder(image: str) -> str:
    """Return the folder that an image's commands start in."""
    from lmgym.backends.sandbox import daemon, images

    if not images.exists(image):
        raise InstanceError(f"no image {image!r}: build it, or pull it with `docker pull {image}`")
    with daemon.requests("look at an image") as connection:
        return str(connection.inspect_image(image)["Config"].get("WorkingDir") or "/")


def test(sandbox: Sandbox, task: TaskFolder) -> TestOutcome:
    """Copy a task's tests into the agent's container, run them, and close it."""
    folder = task.path / "tests"
    with sandbox:
        try:
            sandbox.kill()
            sandbox.run(["rm", "-rf", TESTS, VERDICT], folder="/")
            sandbox.run(["mkdir", "-p", TESTS, VERDICT], folder="/")
            for path in sorted(each for each in folder.rglob("*") if each.is_file()):
                sandbox.write(f"{TESTS}/{path.relative_to(folder).as_posix()}", path.read_bytes(), mode=0o755)
            sandbox.run(CUT_LINKS)
            command = ["bash", f"{TESTS}/test.sh"]
            done = sandbox.run(command, timeout=task.test_seconds, environment=task.test_environment)
            sandbox.kill()
        except OSError as error:
            return TestOutcome(0.0, f"the tests cannot run: {error.strerror or error}")
        return outcome(sandbox, done, VERDICT)


def outcome(sandbox: Sandbox, done: Result, folder: str) -> TestOutcome:
    """Return the reward that tests left in a folder: one number of reward.json or, if there is none, reward.txt.

    This is Harbor's order. A reward that is not in [0, 1] earns 0: a program under test may have written it.
    """
    if done.timed_out or done.code > 128:
        return TestOutcome(0.0, "the tests do not end" if done.timed_out else "the tests were killed")
    for name in ("reward.json", "reward.txt"):
        try:
            text = sandbox.read(f"{folder}/{name}", limit=LARGEST).decode("utf-8", "replace")
        except OSError:
            continue
        try:
            value: Any = json.loads(text) if name.endswith("json") else float(text)
            if isinstance(value, dict):
                value = value.get("reward", *value.values()) if len(value) == 1 else value.get("reward")
            reward = float(value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            break
        if not 0.0 <= reward <= 1.0:
            return TestOutcome(0.0, f"{name} is {text[:60]!r}; a reward is one number in [0, 1]")
        return TestOutcome(reward, "resolved" if reward == 1.0 else f"reward {reward:g}")
    return TestOutcome(0.0, "the tests leave no reward")
