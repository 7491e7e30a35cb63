"""Terminal as an environment: a sandbox from a task folder, a protocol, and the folder's tests at the end."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from lmgym.backends.coding.steps import instructions, perform
from lmgym.backends.sandbox import Sandbox
from lmgym.env.coding import AgentStep, call
from lmgym.env.coding_env import CodingEnv
from lmgym.env.env import Reply
from lmgym.errors import InstanceError
from lmgym.tasks.terminal import SPEC, folders, workspace
from lmgym.tasks.terminal.container import TestOutcome
from lmgym.tasks.terminal.folders import TaskFolder

SOLUTION = "~/solution"
FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
OFFLINE = "\n\nThere is no network in this sandbox."  # said where task.toml allows one
ENDINGS = {
    "bash": f"When the job is done, run the command `{FINISH}`.",
    "tools": "When the job is done, call submit().",
    "r2e": "When the job is done, call finish().",
}


class Terminal(CodingEnv[Sandbox]):
    """A job in a shell; the score is the reward that the task's tests write after the last action."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        protocol: str = "bash",
        data: str | os.PathLike[str] | None = None,
        engine: str = "",
        base: str = "",
        network: str = "none",
        **common: Any,
    ) -> None:
        """Choose the protocol and, for the split official, the data.

        Args:
            protocol: "bash" is mini-swe-agent's, "tools" takes JSON calls, "r2e" takes R2E-Gym's text calls.
            data: the folder of task folders of the split official; None: that of TERMINAL_DATA.
            engine: "bubblewrap", "docker", or "": Docker for tasks that name an image, else as LMGYM_SANDBOX says.
            base: a local image in the place of the one that a Dockerfile starts from, in Docker.
            network: "task" gives a network to tasks whose task.toml allows it; "none" gives it to no task. In
                bubblewrap it is this machine's own, its local services included; in Docker it is the bridge.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(protocol=protocol, **common)
        if engine not in ("", "bubblewrap", "docker"):
            raise InstanceError(f"engine is bubblewrap or docker; got {engine!r}")
        self.check_choices(network=(network, ("none", "task")))
        self.data, self.engine, self.base, self.network = data, engine, base, network
        self.prompt = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        self.folder: TaskFolder | None = None

    def size(self) -> int:
        """Return the number of task folders of the split."""
        return len(self._paths())

    def title(self, index: int) -> str | None:
        """Return the name of an official task folder."""
        return self._paths()[index].name if self.split == "official" else None

    def index_of(self, title: str) -> int | None:
        """Return the index of the official task folder of this name."""
        names = [path.name for path in self._paths()]
        return names.index(title) if title in names else None

    def begin(self, index: int) -> Reply:
        """Build the task's environment in a fresh sandbox."""
        self.close()
        self.folder = folders.read(self._paths()[index])
        online = self.network == "task" and self.folder.internet
        self.sandbox = workspace.start(self.folder, engine=self.engine, base=self.base, network=online)
        protocol = instructions(self.protocol, folder=self.sandbox.box.folder, seconds=self.folder.seconds)
        instruction = self.folder.instruction.strip() + OFFLINE * (self.folder.internet and not online)
        texts = {"instruction": instruction, "protocol": protocol, "ending": ENDINGS[self.protocol]}
        return Reply(self.prompt.substitute(texts).strip())

    def perform(self, step: AgentStep) -> tuple[bool, str, str | None]:
        """Do a step in the sandbox."""
        return perform(self.begun(self.sandbox), step.kind, step.arguments)

    def submit(self, patch: str | None) -> Reply:
        """Run the tests."""
        return self._end()

    def give_up(self, text: str) -> Reply:
        """Run the tests all the same."""
        return self._end(text, valid=False)

    def score_if_cut(self) -> float:
        """Run the tests, as at every end of an episode."""
        return self._test().reward

    def fingerprint(self) -> str:
        """Return the name of the task folder."""
        return self.begun(self.folder).name

    def oracle(self) -> Iterator[str]:
        """Run the task's solution, and submit."""
        solution = self.begun(self.folder).path / "solution"
        if not (solution / "solve.sh").is_file():
            raise InstanceError(f"{self.task.id}: task {solution.parent.name} has no oracle: no solution/solve.sh")
        commands = [_written(path, solution) for path in sorted(solution.rglob("*")) if path.is_file()]
        for command in (*commands, f"bash {SOLUTION}/solve.sh"):
            yield call(self.protocol, AgentStep("run", {"command": command}))
        end = AgentStep("run", {"command": FINISH}) if self.protocol == "bash" else AgentStep("submit", {})
        yield call(self.protocol, end)

    def _paths(self) -> list[Path]:
        return folders.official(self.data) if self.split == "official" else folders.own(self.split)

    def _end(self, text: str = "", *, valid: bool = True) -> Reply:
        verdict = self._test()
        text = f"{text}\n" * bool(text) + f"Tested: {verdict.reason}."
        return Reply(text, valid=valid, done=True, score=verdict.reward, reward=verdict.reward)

    def _test(self) -> TestOutcome:
        """Run the tests; the sandbox is closed with it."""
        sandbox, folder = self.begun(self.sandbox), self.begun(self.folder)
        self.sandbox = None
        return workspace.test(sandbox, folder)


def _written(path: Path, folder: Path) -> str:
    """Return the command that writes a file of the solution."""
    target = f"{SOLUTION}/{path.relative_to(folder).as_posix()}"
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.endswith("\n") and "END_OF_FILE" not in text and "```" not in text and "\0" not in text:
        body = f"cat > {target} <<'END_OF_FILE'\n{text}END_OF_FILE"
    else:
        body = f"base64 -d > {target} <<'END_OF_FILE'\n{base64.encodebytes(data).decode()}END_OF_FILE"
    return f"mkdir -p $(dirname {target})\n{body}"
