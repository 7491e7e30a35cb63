"""SWERepair as an environment: a sandbox for each episode, a protocol, and the judge at the end."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

from lmgym.backends.coding.files import put
from lmgym.backends.coding.patches import difference
from lmgym.backends.coding.steps import perform, submitted
from lmgym.backends.sandbox import Result, Sandbox, open_sandbox
from lmgym.env.coding import PARSERS, AgentStep, call, schemas
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.swe_repair import SPEC, TRAIN, instances, workspace
from lmgym.tasks.swe_repair.hidden import visible
from lmgym.tasks.swe_repair.instances import LEVELS, Repair
from lmgym.tasks.swe_repair.judge import Judgement, judge
from lmgym.types import FIRST_SEAT

MOST_ERRORS = 3  # format errors in a row that end the episode, as in mini-swe-agent
TERMS = ("valid", "located", "edited", "tested", "submitted")  # each paid once
PAY = 0.05
SUBMISSION = "/tmp/patch.txt"


class SWERepair(TextEnv):
    """A bug in a small repository; the score is 1 if a fresh copy with the submitted diff passes its tests."""

    SPEC = SPEC

    def __init__(self, *, protocol: str = "bash", level: str = "all", rewards: str = "sparse", **common: Any) -> None:
        """Choose the protocol, the kinds of bugs and the reward.

        Args:
            protocol: "bash" is mini-swe-agent's, "tools" takes JSON calls, "r2e" takes R2E-Gym's text calls.
            level: "easy" (operators; the issue names the file), "medium" (statements), "hard" (classes) or "all".
            rewards: "sparse" is 1 for a repair; "dense" adds 0.05 once for each of a valid action, the broken file
                opened, it edited, tests run, and a submission that is not empty.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(**common)
        for name, value, allowed in (
            ("protocol", protocol, tuple(PARSERS)),
            ("level", level, LEVELS),
            ("rewards", rewards, ("sparse", "dense")),
        ):
            if value not in allowed:
                raise InstanceError(f"{name} is one of {', '.join(allowed)}; got {value!r}")
        self.protocol, self.level, self.rewards = protocol, level, rewards
        self.prompt = Template(files(__package__).joinpath(f"prompt_{protocol}.md").read_text(encoding="utf-8"))
        self.sandbox: Sandbox | None = None
        self.repair: Repair | None = None

    def size(self) -> int:
        """Return the number of instances of the level."""
        return instances.size(self.split, self.level, TRAIN)

    def begin(self, index: int) -> Reply:
        """Put the broken repository into a fresh sandbox."""
        self.close()
        self.repair = instances.find(self.split, self.level, index)
        self.sandbox = open_sandbox(workspace.box())
        put(self.sandbox, visible(self.repair.files))
        self.base = workspace.commit(self.sandbox)
        self.errors = 0
        self.paid: set[str] = set()
        return Reply(self.prompt.substitute(issue=self.repair.problem_statement).strip())

    def act(self, action: str) -> Reply:
        """Play one step."""
        sandbox, repair = self._playing()
        step = PARSERS[self.protocol](action)
        if step.kind == "submit":
            return self._end(difference(sandbox, self.base))
        valid, text, result = perform(sandbox, step.kind, step.arguments)
        self.errors = 0 if step.kind != "error" else self.errors + 1
        if self.errors >= MOST_ERRORS:
            return Reply(text, valid=False, done=True, score=0.0, reward=self._reward(set()))
        if self.protocol == "bash" and result is not None and (patch := submitted(result)) is not None:
            return self._end(patch)
        return Reply(text, valid=valid, reward=self._reward(self._events(step, valid, text, result, repair)))

    def fingerprint(self) -> str:
        """Return the instance's id."""
        return self._playing()[1].instance_id

    def oracle(self) -> Iterator[str]:
        """Apply the reverse of the bug, and submit."""
        repair = self._playing()[1]
        command = f"git apply <<'END_OF_PATCH'\n{repair.solution}END_OF_PATCH\n"
        yield call(self.protocol, AgentStep("run", {"command": command}))
        if self.protocol == "bash":
            yield call("bash", AgentStep("run", {"command": f"git diff > {SUBMISSION}"}))
            finish = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat {SUBMISSION}"
            yield call("bash", AgentStep("run", {"command": finish}))
        else:
            yield call(self.protocol, AgentStep("submit", {}))

    def tools(self, seat: str = FIRST_SEAT) -> list[dict[str, Any]]:
        """Return the schemas of the tools, in their protocol."""
        return schemas() if self.protocol == "tools" else []

    def close(self) -> None:
        """Remove the sandbox."""
        if self.sandbox is not None:
            self.sandbox.close()
        self.sandbox = None

    def _end(self, patch: str) -> Reply:
        """Judge a submission."""
        verdict: Judgement = judge(self._playing()[1], patch)
        score = float(verdict.resolved)
        reward = self._reward({"submitted"} if patch.strip() else set(), score)
        return Reply(f"Submitted: {verdict.reason}.", done=True, score=score, reward=reward)

    def _events(self, step: AgentStep, valid: bool, text: str, result: Result | None, repair: Repair) -> set[str]:
        """Return the dense terms that a step earns."""
        if not valid:
            return set()
        events = {"valid"}
        words = " ".join(step.arguments.values())
        if repair.path in words or repair.path.rpartition("/")[2] in words:
            events.add("located")
        if "edited" not in self.paid and repair.path in self._playing()[0].run("git diff --name-only").text:
            events.add("edited")
        if "pytest" in words and result is not None and (" passed" in text or " failed" in text):
            events.add("tested")
        return events

    def _reward(self, events: set[str], score: float = 0.0) -> float | dict[str, float]:
        if self.rewards == "sparse":
            return score
        fresh = events - self.paid
        self.paid |= fresh
        return {"repaired": score, **{term: PAY * (term in fresh) for term in TERMS}}

    def _playing(self) -> tuple[Sandbox, Repair]:
        if self.sandbox is None or self.repair is None:
            raise InstanceError(f"{self.task.id}: call reset() first")
        return self.sandbox, self.repair
