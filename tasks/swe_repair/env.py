"""SWERepair as an environment: a sandbox for each episode, a protocol, and the judge at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from string import Template
from typing import Any

from lmgym.backends.coding.files import put
from lmgym.backends.coding.patches import difference
from lmgym.backends.coding.steps import perform
from lmgym.backends.sandbox import Sandbox, open_sandbox
from lmgym.env.coding import AgentStep
from lmgym.env.coding_env import CodingEnv
from lmgym.env.env import Reply
from lmgym.errors import BackendError, InstanceError
from lmgym.tasks.swe_repair import SPEC, TRAIN, instances, repositories, workspace
from lmgym.tasks.swe_repair.demonstrator import commands
from lmgym.tasks.swe_repair.evidence import ran_tests, read_file
from lmgym.tasks.swe_repair.hidden import visible
from lmgym.tasks.swe_repair.instances import LEVELS, Repair
from lmgym.tasks.swe_repair.judge import Judgement, judge

TERMS = ("valid", "located", "edited", "tested", "submitted")  # each paid once
PAY = 0.05
EPISODE = ("repair", "base", "paid", "errors")  # attributes of an episode beside its sandbox


class SWERepair(CodingEnv[Sandbox]):
    """A bug in a small repository; the score is 1 if a fresh copy with the submitted diff passes its tests."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        protocol: str = "bash",
        level: str = "all",
        rewards: str = "sparse",
        bugs: int = TRAIN,
        **common: Any,
    ) -> None:
        """Choose the protocol, the kinds of bugs and the reward.

        Args:
            protocol: "bash" is mini-swe-agent's, "tools" takes JSON calls, "r2e" takes R2E-Gym's text calls.
            level: "easy" (operators; the issue names the file), "medium" (statements), "hard" (classes) or "all".
            rewards: "sparse" is 1 for a repair; "dense" adds 0.05 once for each of a valid action, the broken file
                read, it edited, tests run, and a submission that applies.
            bugs: size of the training split; with few of them a policy can be measured on what it imitated.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(protocol=protocol, **common)
        self.check_choices(level=(level, LEVELS), rewards=(rewards, ("sparse", "dense")))
        if not 1 <= bugs <= TRAIN:
            raise InstanceError(f"bugs={bugs} of {self.task.id}: choose 1 to {TRAIN:,}")
        self.level, self.rewards, self.bugs = level, rewards, bugs
        self.prompt = Template(files(__package__).joinpath(f"prompt_{protocol}.md").read_text(encoding="utf-8"))
        self.repair: Repair | None = None

    def size(self) -> int:
        """Return the number of instances of the level."""
        return instances.size(self.split, self.level, self.bugs)

    def begin(self, index: int) -> Reply:
        """Put the broken repository into a fresh sandbox."""
        self.close()
        self.repair = instances.find(self.split, self.level, index)
        self.sandbox = open_sandbox(workspace.box())
        put(self.sandbox, visible(self.repair.files))
        self.base = workspace.commit(self.sandbox)
        self.paid: set[str] = set()
        return Reply(self.prompt.substitute(issue=self.repair.problem_statement).strip())

    def perform(self, step: AgentStep) -> tuple[bool, str, str | None]:
        """Do a step in the sandbox."""
        return perform(self.begun(self.sandbox), step.kind, step.arguments)

    def submit(self, patch: str | None) -> Reply:
        """Judge a submission."""
        patch = difference(self.begun(self.sandbox), self.base) if patch is None else patch
        verdict: Judgement = judge(self.begun(self.repair), patch)
        score = float(verdict.resolved)
        reward = self._reward({"submitted"} if verdict.applied else set(), score)
        return Reply(f"Submitted: {verdict.reason}.", done=True, score=score, reward=reward)

    def respond(self, step: AgentStep, reply: Reply) -> Reply:
        """Reward a step by the dense terms."""
        if self.rewards == "sparse":
            return reply
        return replace(reply, reward=self._reward(self._events(step, reply)))

    def give_up(self, text: str) -> Reply:
        """Return the last reply, with a reward in the form of the others."""
        return replace(super().give_up(text), reward=self._reward(set()))

    def save(self) -> dict[str, Any] | None:
        """Return the sandbox's files and what is counted; None while programs run in the background."""
        sandbox = self.begun(self.sandbox)
        if sandbox.programs():
            return None
        try:
            files = sandbox.save()
        except OSError:  # more than the disk has
            return None
        return {"files": files, **{name: getattr(self, name) for name in EPISODE}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the saved files into a fresh sandbox."""
        self.close()
        self.sandbox = open_sandbox(workspace.box())
        try:
            self.sandbox.restore(state["files"])
        except OSError as error:
            raise BackendError(f"files cannot be restored in the sandbox: {error.strerror or error}") from error
        for name in EPISODE:
            setattr(self, name, state[name])

    def fingerprint(self) -> str:
        """Return the instance's id."""
        return self.begun(self.repair).instance_id

    def oracle(self) -> Iterator[str]:
        """Apply the reverse of the bug, and submit."""
        return self.solution(self.begun(self.repair).solution, save="git diff")

    def demonstrator(self) -> Iterator[str]:
        """Read the broken function, change it in place, run the tests, and submit; the oracle where lines move."""
        repair = self.begun(self.repair)
        good = repositories.named(repair.repository).files[repair.path]
        lines = commands(repair.path, repair.files[repair.path], good)
        return self.oracle() if lines is None else self.typed(lines, save="git diff")

    def _events(self, step: AgentStep, reply: Reply) -> set[str]:
        """Return the dense terms that a step earns."""
        if not reply.valid:
            return set()
        repair = self.begun(self.repair)
        events = {"valid"}
        words = " ".join(step.arguments.values())
        if "located" not in self.paid and read_file(repair.path, visible(repair.files), words, reply.text):
            events.add("located")
        if "edited" not in self.paid and repair.path in self._changed():
            events.add("edited")
        if step.kind == "run" and ran_tests(step.arguments["command"], reply.text):
            events.add("tested")
        return events

    def _changed(self) -> list[str]:
        """Return the paths that differ from the first commit; none where that cannot be read."""
        try:
            return self.begun(self.sandbox).run(f"git diff --name-only {self.base} --").text.splitlines()
        except OSError:  # the folder is gone or closed
            return []

    def _reward(self, events: set[str], score: float = 0.0) -> float | dict[str, float]:
        if self.rewards == "sparse":
            return score
        fresh = events - self.paid
        self.paid |= fresh
        return {"repaired": score, **{term: PAY * (term in fresh) for term in TERMS}}
