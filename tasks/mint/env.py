"""MINT's protocol as an environment around the environment of another task."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any, cast

import gymnasium

from lmgym.backends.sandbox import Box, Sandbox, SandboxLimits, SandboxSession, open_sandbox
from lmgym.env.actions import parse_tag
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.mint import SPEC
from lmgym.types import FIRST_SEAT

PROMPT, STEPS, FEEDBACK_PROMPT = (
    Template(files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip())
    for name in ("prompt", "steps", "feedback")
)
FEEDBACK = "feedback"
MOST_TURNS, PROPOSALS = 5, 2
SECONDS, OUTPUT = 30.0, 2_000  # of one piece of code: time, and characters that are shown
MOST_ACTIONS = 20  # in one turn
LONGEST = 20_000  # characters of an action that are read, from the end
ADVICE = {  # of the scripted expert, who knows no more than what was shown
    "wrong": "That is not right. Go through your steps again, and compute them before you propose once more.",
    "output": "Compare this result with what is asked. Propose it if it answers the question.",
    "played": "Check what has changed, and go on towards the goal.",
    "invalid": "Write Python in <execute> or your answer in <solution>.",
}


class Mint(TextEnv):
    """Another task in `k` turns, with 2 proposals (1 if k is 1) and feedback after each turn.

    `task` is the id inside, without "lmgym/", and judges a `<solution>`. In tasks of one answer (TryAgain's)
    `<execute>` runs Python in a sandbox, where variables last; in others it plays actions, one a line. The expert who
    gives feedback is the seat "feedback"; `feedback=False` does without.
    """

    SPEC = SPEC

    def __init__(self, *, task: str = "TryAgain-v0", k: int = MOST_TURNS, feedback: bool = True, **common: Any) -> None:
        super().__init__(**common)
        if not 1 <= k <= MOST_TURNS:
            raise InstanceError(f"k={k}: {self.task.id} plays 1 to {MOST_TURNS} turns")
        try:
            self.inner = cast(TextEnv, gymnasium.make(f"lmgym/{task}", split=self.split).unwrapped)
        except gymnasium.error.Error as error:
            raise InstanceError(f"task={task!r}: {self.task.id} takes a task's id without 'lmgym/': {error}") from error
        if self.inner.task.seats or self.inner.PICTURES is not None:
            self.inner.close()
            raise InstanceError(
                f"task={task!r} has other seats or pictures; {self.task.id} takes tasks of one seat in text"
            )
        self.answers_only = task.startswith("TryAgain")
        self.k, self.feedback = k, feedback
        self.proposals = 1 if k == 1 else PROPOSALS
        self.sandbox: Sandbox | None = None
        self.session: SandboxSession | None = None

    def size(self) -> int:
        """Return the number of instances of the task inside."""
        return self.inner.size()

    def begin(self, index: int) -> Reply:
        """Open an instance of the task inside."""
        self._close_sandbox()
        self.inner.np_random = self.np_random
        problem = self.inner.begin(index)
        self.turn = self.proposed = 0
        self.solved_at = 0
        self.seat, self.advice = FIRST_SEAT, ""
        self.observation = ""
        template = PROMPT if self.answers_only else STEPS
        return Reply(template.substitute(turns=self.k, proposals=self.proposals, problem=problem.text))

    def act(self, action: str) -> Reply:
        """Take a turn of the agent, or the expert's feedback."""
        if self.seat == FEEDBACK:
            self.seat = FIRST_SEAT
            return Reply(f"{self.observation}\n\nExpert feedback: {action[:OUTPUT].strip()}\n\n{self._left()}")
        return self._worked(action[-LONGEST:])

    def scripted(self, seat: str) -> str:
        """Return the scripted expert's feedback."""
        return self.advice

    def prompts(self) -> dict[str, str]:
        """Return the instructions of a model that gives feedback."""
        return {FEEDBACK: FEEDBACK_PROMPT.template} if self.feedback else {}

    def answer(self) -> str | None:
        """Return the answer of the task inside."""
        return self.inner.answer()

    def score_if_cut(self) -> float:
        """Return the score of the task inside if it ended now."""
        return cast(float, self.inner.score_if_cut())

    def figures_if_cut(self) -> dict[str, float]:
        """Return SR_k for every k up to 5, as 0 or 1: solved in that many turns or fewer; with 2 turns their slope too.

        The slope is that of the least-squares line through the episode's SR_1 to SR_k, k its number of turns. It is
        linear in the rates, so its mean over episodes is the slope of their means, in SR a turn.
        """
        rates = {f"sr_{k}": float(0 < self.solved_at <= k) for k in range(1, MOST_TURNS + 1)}
        middle = (self.k + 1) / 2
        spread = sum((k - middle) ** 2 for k in range(1, self.k + 1))
        slope = sum((k - middle) * rates[f"sr_{k}"] for k in range(1, self.k + 1)) / spread if spread else None
        return {**rates, "proposals": float(self.proposed), **({} if slope is None else {"turn_slope": slope})}

    def oracle(self) -> Iterator[str]:
        """Propose what the oracle of the task inside does."""
        for action in self.inner.oracle():
            answer = parse_tag(action, "answer")
            yield f"<solution>{action if answer is None else answer}</solution>"

    def reseed(self, seed: int) -> None:
        """Seed the chance of the rest of the episode, which the task inside shares."""
        super().reseed(seed)
        self.inner.np_random = self.np_random

    def close(self) -> None:
        """Remove the sandbox and close the task inside."""
        self._close_sandbox()
        self.inner.close()

    def _close_sandbox(self) -> None:
        if self.sandbox is not None:
            self.sandbox.close()
        self.sandbox = self.session = None

    # Turns -----------------------------------------------------------------------------------------------------

    def _worked(self, text: str) -> Reply:
        self.turn += 1
        solution, work = parse_tag(text, "solution"), parse_tag(text, "execute")
        if solution is not None:
            return self._proposed(solution)
        if work is None:
            return self._after("Write <execute>...</execute> or <solution>...</solution>.", "invalid", valid=False)
        return self._after(self._output(work), "output") if self.answers_only else self._played(work)

    def _proposed(self, solution: str) -> Reply:
        self.proposed += 1
        reply = self.inner.act(f"<answer>{solution}</answer>" if self.answers_only else solution)
        if reply.done and self.inner.solved(cast(float, reply.score)):
            return self._end(reply.text, cast(float, reply.score), valid=reply.valid)
        words = "Your answer is wrong." if self.answers_only else reply.text
        if self.proposed >= self.proposals or (reply.done and not self.answers_only):
            score = cast(float, reply.score) if reply.done else self.score_if_cut()
            return self._end(words, score, valid=reply.valid)
        return self._after(words, "wrong", valid=reply.valid)

    def _played(self, work: str) -> Reply:
        texts = []
        for line in [line for line in work.splitlines() if line.strip()][:MOST_ACTIONS]:
            reply = self.inner.act(line)
            texts.append(reply.text)
            if reply.done:
                return self._end("\n".join(texts), cast(float, reply.score))
        return self._after("\n".join(texts) or "No action was played.", "played", valid=bool(texts))

    def _output(self, code: str) -> str:
        """Return what code prints in the episode's Python."""
        if self.session is None:
            self.sandbox = open_sandbox(Box(limits=SandboxLimits(seconds=SECONDS)))
            self.session = self.sandbox.python()
        try:
            result = self.session.run(code)
        except OSError as error:  # no Python can be started
            return f"OSError: {error.strerror or error}"
        text = result.text.strip()
        late = f"\nStopped after {SECONDS:g} seconds." if result.timed_out else ""
        return f"{text[:OUTPUT] or '(no output)'}{' [cut]' if len(text) > OUTPUT else ''}{late}"

    def _after(self, words: str, kind: str, *, valid: bool = True) -> Reply:
        """Go on after a turn, or end the episode if it was the last."""
        if self.turn >= self.k:
            return self._end(words, self.score_if_cut(), valid=valid)
        self.observation, self.advice = f"Observation:\n{words}", ADVICE[kind]
        if not self.feedback:
            return Reply(f"{self.observation}\n\n{self._left()}", valid=valid)
        self.seat = FEEDBACK
        return Reply(self.observation, seat=FEEDBACK, valid=valid)

    def _left(self) -> str:
        return f"You have {self.k - self.turn} turns and {self.proposals - self.proposed} proposals left."

    def _end(self, words: str, score: float, *, valid: bool = True) -> Reply:
        if self.inner.solved(score):
            self.solved_at = self.turn
        return Reply(words, reward=score, done=True, score=score, valid=valid)
