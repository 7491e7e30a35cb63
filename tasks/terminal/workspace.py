"""The sandbox of a task folder: built from its Dockerfile, and tested once the agent is done."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

from lmgym.backends.coding.files import EPOCH
from lmgym.backends.sandbox import Box, Sandbox, open_sandbox
from lmgym.backends.sandbox.opening import engine_of
from lmgym.cache import cache_folders
from lmgym.errors import BackendError, InstanceError
from lmgym.tasks.terminal import container
from lmgym.tasks.terminal.container import TestOutcome
from lmgym.tasks.terminal.dockerfile import Copy, parse
from lmgym.tasks.terminal.folders import TaskFolder

BUILD_SECONDS = 600.0
VERDICT = "/tmp/verifier"  # behind /logs/verifier
ROOM = 64 << 20  # bytes that tests may write beyond the agent's disk, which may be full


def start(task: TaskFolder, *, engine: str = "", base: str = "", network: bool = False) -> Sandbox:
    """Build a task's environment in a fresh sandbox. Raises InstanceError if that fails.

    `engine` is "bubblewrap" or "docker"; "" takes Docker for a task that is an image, else what LMGYM_SANDBOX says.
    `base` takes the place of the image that the Dockerfile starts from, in Docker. `network` connects the build, the
    agent and the tests.
    """
    only_image = not task.dockerfile.is_file()
    if (engine or engine_of(Box(image=task.image if only_image else ""))) == "docker":
        return container.start(task, base=base, network=network)
    if only_image:
        raise InstanceError(f"task {task.name} is the image {task.image}, which needs Docker: lmgym doctor says how")
    build = parse(task.dockerfile, task.name)
    limits = replace(task.limits, seconds=BUILD_SECONDS)
    sandbox = open_sandbox(Box(limits=limits, folder=build.folder, environment=build.environment, network=network))
    try:
        for step in build.steps:
            if isinstance(step, Copy):
                for target, path in step.files.items():
                    sandbox.write(target, path.read_bytes(), mode=0o755 if os.access(path, os.X_OK) else 0o644)
                continue
            done = sandbox.run(step.command, environment=step.environment)
            if done.code:
                why = f"takes longer than {BUILD_SECONDS:g} s" if done.timed_out else f"fails: {_last(done.text)}"
                raise InstanceError(f"task {task.name}: RUN {_short(step.command)} {why}")
        sandbox.kill()
        sandbox.run(f"find . -exec touch -h -d @{EPOCH} {{}} +")
    except OSError as error:
        sandbox.close()
        raise InstanceError(f"task {task.name}: the environment cannot be built: {error.strerror or error}") from error
    except (InstanceError, BackendError):
        sandbox.close()
        raise
    sandbox.box = replace(sandbox.box, limits=task.limits)
    return sandbox


def test(sandbox: Sandbox, task: TaskFolder) -> TestOutcome:
    """Run a task's tests, and close the agent's sandbox."""
    return container.test(sandbox, task) if sandbox.box.image else _in_a_fresh_sandbox(sandbox, task)


def _in_a_fresh_sandbox(sandbox: Sandbox, task: TaskFolder) -> TestOutcome:
    """Close the agent's sandbox and run the task's tests on its files in a fresh one.

    The tests stand at /tests there, no link of the agent leads to them, and its programs run no more. A test script
    that does not end, is killed or leaves no reward in [0, 1] earns 0.
    """
    try:
        sandbox.kill()
        state = sandbox.save()
    except OSError as error:
        return TestOutcome(0.0, f"the files cannot be tested: {error.strerror or error}")
    finally:
        sandbox.close()
    trees = {**sandbox.box.trees, "/tests": task.path / "tests", "/logs": _logs()}
    limits = replace(task.limits, disk=task.disk + ROOM)
    with open_sandbox(replace(sandbox.box, trees=trees, limits=limits)) as fresh:
        try:
            fresh.restore(state)
            fresh.run(["rm", "-rf", VERDICT])
            fresh.run(["mkdir", "-p", VERDICT])
            fresh.run(container.CUT_LINKS)
            environment = {"PYTHONNOUSERSITE": "1", **task.test_environment}
            done = fresh.run(["bash", "/tests/test.sh"], timeout=task.test_seconds, environment=environment)
        except OSError as error:
            return TestOutcome(0.0, f"the files cannot be tested: {error.strerror or error}")
        fresh.kill()
        return container.outcome(fresh, done, VERDICT)


@cache
def _logs() -> Path:
    """Return a folder to show as /logs: it is read-only there, and `verifier` leads to a writable one."""
    folder = cache_folders("terminal")[-1] / "logs"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    link = folder / "verifier"
    if not link.is_symlink():
        fresh = folder / f".verifier-{os.getpid()}"
        fresh.symlink_to(VERDICT)
        fresh.replace(link)
    return folder


def _short(command: str | list[str]) -> str:
    text = " ".join((command if isinstance(command, str) else shlex.join(command)).split())
    return text if len(text) < 60 else f"{text[:57]}..."


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no message"
