"""The part of a coding task that all of them share: a sandbox for each episode, a protocol, and its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from lmgym.env.coding import PARSERS, AgentStep, call, schemas
from lmgym.env.env import Reply, TextEnv
from lmgym.types import FIRST_SEAT

SUBMISSION = "/tmp/patch.txt"
FINISH = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat {SUBMISSION}"
MOST_ERRORS = 3  # format errors in a row that end the episode, as in mini-swe-agent


class Closable(Protocol):
    """A sandbox, as far as it matters here."""

    def close(self) -> None:
        """Remove it."""


SandboxType = TypeVar("SandboxType", bound=Closable)


class CodingEnv(TextEnv, Generic[SandboxType]):
    """A task in which a coding agent works in `sandbox` until it submits.

    Subclasses open the sandbox in `begin`, write `perform` and `submit`, and may reward steps in `respond` and
    `give_up`.
    """

    def __init__(self, *, protocol: str = "bash", **common: Any) -> None:
        """Choose the protocol; `common` are the options of every task. Raises InstanceError for an unknown one."""
        super().__init__(**common)
        self.check_choices(protocol=(protocol, PARSERS))
        self.protocol = protocol
        self.sandbox: SandboxType | None = None
        self.errors = 0  # format errors in a row

    def perform(self, step: AgentStep) -> tuple[bool, str, str | None]:
        """Do a step; return whether it was valid, the observation, and what its command submits, if it does."""
        raise NotImplementedError

    def submit(self, patch: str | None) -> Reply:
        """End the episode; `patch` is what a command printed behind the line that submits, None in other protocols."""
        raise NotImplementedError

    def respond(self, step: AgentStep, reply: Reply) -> Reply:
        """Return the reply to a step that did not end the episode."""
        return reply

    def give_up(self, text: str) -> Reply:
        """Return the reply to the last of too many format errors."""
        return Reply(text, valid=False, done=True, score=0.0)

    def act(self, action: str) -> Reply:
        """Play one step."""
        self.begun(self.sandbox)
        step = PARSERS[self.protocol](action)
        if step.kind == "submit":
            return self.submit(None)
        valid, text, patch = self.perform(step)
        self.errors = 0 if step.kind != "error" else self.errors + 1
        if self.errors >= MOST_ERRORS:
            return self.give_up(text)
        if self.protocol == "bash" and patch is not None:
            return self.submit(patch)
        return self.respond(step, Reply(text, valid=valid))

    def tools(self, seat: str = FIRST_SEAT) -> list[dict[str, Any]]:
        """Return the schemas of the tools, in their protocol."""
        return schemas() if self.protocol == "tools" else []

    def close(self) -> None:
        """Remove the sandbox, and forget what was counted in it."""
        if self.sandbox is not None:
            self.sandbox.close()
        self.sandbox, self.errors = None, 0

    def solution(self, patch: str, *, options: str = "", save: str) -> Iterator[str]:
        """Return the actions that apply a patch and submit; `save` is the command that prints the changes."""
        return self.typed([f"git apply{options} <<'END_OF_PATCH'\n{patch}END_OF_PATCH\n"], save=save)

    def typed(self, commands: Sequence[str], *, save: str) -> Iterator[str]:
        """Yield the actions that run commands and submit; `save` is the command that prints the changes."""
        ending = [f"{save} > {SUBMISSION}", FINISH] if self.protocol == "bash" else []
        steps = [AgentStep("run", {"command": line}) for line in (*commands, *ending)]
        for step in steps if ending else [*steps, AgentStep("submit", {})]:
            yield call(self.protocol, step)
