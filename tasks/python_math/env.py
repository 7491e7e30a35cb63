"""Problems with a Python to run code in, as an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from string import Template
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from lmgym.env.answers import same
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.python_math import SPEC
from lmgym.tasks.python_math.interpreter import Interpreter, ProgramRun
from lmgym.tasks.python_math.problems import FAMILIES, LEVELS, MathProblem, problem
from lmgym.tasks.python_math.protocols import PROTOCOLS, QUIET, read, shown

STREAM = {"train": 0, "test": 1}
TEST_SHARE = 10  # one problem in so many is a test problem
OFF = "The Python tool is switched off."
VOID = "Your reply has neither a complete program nor an answer."
SPENT = "No program may be run any more. Answer."


class PythonMath(TextEnv):
    """A problem; replies run programs in a sandbox or give the final answer, which alone counts."""

    SPEC: ClassVar[TaskSpec] = SPEC

    def __init__(
        self,
        *,
        protocol: str = "retool",
        level: int = 1,
        family: str = "",
        tool: str = "on",
        state: str = "session",
        seconds: float = 5.0,
        **common: Any,
    ) -> None:
        """Choose the protocol and the problems.

        Args:
            protocol: "retool", "simpletir", "artist" or "gem": markup, limits, void turns and rewards.
            level: 1 (easy) to 3.
            family: one of `problems.FAMILIES`; "" takes all in turn.
            tool: "off" answers every program with a note instead of its output.
            state: "session" keeps variables from program to program; "script" starts a new Python for each.
            seconds: time limit of a program.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(**common)
        self.check_choices(
            protocol=(protocol, PROTOCOLS),
            level=(level, LEVELS),
            family=(family, ("", *FAMILIES)),
            tool=(tool, ("on", "off")),
            state=(state, ("session", "script")),
        )
        if not 0 < seconds <= 60:
            raise InstanceError(f"seconds is above 0 and at most 60; got {seconds}")
        self.level, self.tool, self.state, self.seconds = level, tool, state, seconds
        self.families = (family,) if family else tuple(FAMILIES)
        self.protocol = PROTOCOLS[protocol]
        self.prompt = Template(files(__package__).joinpath(f"prompt_{protocol}.md").read_text(encoding="utf-8").strip())
        self.interpreter: Interpreter | None = None

    def draw(self, index: int) -> MathProblem:
        """Return the problem of an instance; none is in both splits."""
        chance = np.random.default_rng([2504, STREAM[self.split], self.level, index])
        while True:
            each = problem(chance, self.level, self.families[index % len(self.families)])
            if (crc32(each.question.encode()) % TEST_SHARE == 0) == (self.split == "test"):
                return each

    def right(self, answer: str) -> bool:
        """Return True if an answer is right."""
        return same(answer, self.problem.answer)

    def begin(self, index: int) -> Reply:
        """Show the problem."""
        return self._open(self.draw(index))

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open an authored problem, {"question": ..., "answer": ...}; "code" is a program that solves it."""
        question, answer, code = (str(instance.get(name, "")) for name in ("question", "answer", "code"))
        if not question.strip() or not answer.strip():
            raise InstanceError(
                f'a problem has a question and an answer that are not empty, {{"question": ..., "answer": ...}}; got '
                f"{str(dict(instance))[:200]}"
            )
        return self._open(MathProblem(question, answer, code))

    def act(self, action: str) -> Reply:
        """Run a program or judge an answer."""
        reply = read(self.protocol, action)
        if reply.answer is not None:
            return self._answered(reply.answer)
        if reply.code is None or self.programs >= self.protocol.runs:
            note = VOID if reply.code is None else SPENT
            self.void = True
            return self._end(note, right=False, valid=False) if self.protocol.void_ends else Reply(note, valid=False)
        run = self._run(reply.code)
        self.programs += 1
        self.failures += bool(run.error)
        if run.answer is not None:
            return self._answered(run.answer)
        text = run.text
        if run.error and self.protocol.last_line:
            text = run.error.strip().rpartition("\n")[2]
        return Reply(shown(self.protocol, text))

    def answer(self) -> str:
        """Return the right answer."""
        return self.problem.answer

    def figures_if_cut(self) -> dict[str, float]:
        """Return the figures of an episode that was cut."""
        return {"programs": float(self.programs), "failed_programs": float(self.failures), "void": float(self.void)}

    def oracle(self) -> Iterator[str]:
        """Run the program that solves the problem, if one is known, and give the right answer."""
        if self.problem.code:
            yield self.protocol.call.format(code=self.problem.code)
        while True:
            yield self.protocol.final.format(answer=self.problem.answer)

    def demonstrator(self) -> Iterator[str]:
        """Run the program and answer with what it prints."""
        before, after = self.protocol.result.split("{result}")
        while True:
            result = self.latest_text.removeprefix(before).removesuffix(after).strip()
            if self.programs and result not in (OFF, QUIET) and not self.void:
                yield self.protocol.final.format(answer=result)
            else:
                yield self.protocol.call.format(code=self.problem.code)

    def close(self) -> None:
        """Remove the sandbox."""
        interpreter, self.interpreter = self.interpreter, None
        if interpreter is not None:
            interpreter.close()

    def _open(self, each: MathProblem) -> Reply:
        self.problem = each
        self.programs = self.failures = 0
        self.void = False
        if self.tool == "on":
            self._ready()
        return Reply(self.prompt.substitute(question=each.question))

    def _ready(self) -> None:
        """Start the interpreter, or empty the one of the last episode."""
        if self.interpreter is None:
            fresh = self.state == "script"
            self.interpreter = Interpreter(seconds=self.seconds, helper=self.protocol.helper, fresh=fresh)
        else:
            with self._closing():
                self.interpreter.reset()

    def _run(self, code: str) -> ProgramRun:
        if self.tool == "off":
            return ProgramRun(OFF)
        with self._closing():
            return self.begun(self.interpreter).run(code)

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Remove a sandbox that breaks or is interrupted: the next episode gets another."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _answered(self, answer: str) -> Reply:
        right = bool(answer.strip()) and self.right(answer)
        return self._end("Correct." if right else "Incorrect.", right=right)

    def _end(self, text: str, *, right: bool, valid: bool = True) -> Reply:
        rewards = {"answer": 1.0 if right else self.protocol.wrong}
        if self.protocol.bonus is not None:
            share = (self.programs - self.failures) / self.programs if self.programs else 0.0
            rewards["format"] = self.protocol.bonus["format"] * (not self.void)
            rewards["tool"] = self.protocol.bonus["tool"] * share
        return Reply(text, done=True, score=float(right), reward=rewards, valid=valid)
