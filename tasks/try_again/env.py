"""Static problems as an environment with several tries and unary feedback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from string import Template
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from lmgym.env.actions import parse_tag
from lmgym.env.answers import same
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.try_again import SPEC
from lmgym.tasks.try_again.problems import FAMILIES, LEVELS, problem

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
TRIES = 5
TEST_SHARE = 10  # one problem in so many is a test problem
WRONG = "Incorrect. Please think again."
DECAYS: Mapping[str, float] = {"exponential": 0.5, "none": 1.0}  # factor of the reward a try


class TryAgain(TextEnv):
    """One problem, five tries; the reward of the t-th try from 0 is 2^-t if it is right.

    `decay="none"` rewards every right try with 1. `penalty` is the factor of the share of repeated answers that is
    taken off at the end (UFO's lambda, 0.5 there). `family` plays one family of problems alone, "" all in turn.
    """

    SPEC: ClassVar[TaskSpec] = SPEC

    def __init__(
        self, *, level: int = 2, family: str = "", decay: str = "exponential", penalty: float = 0.0, **common: Any
    ) -> None:
        super().__init__(**common)
        self.check_choices(family=(family, ("", *FAMILIES)))
        self.families = (family,) if family else tuple(FAMILIES)
        if level not in LEVELS or decay not in DECAYS or not 0 <= penalty <= 1:
            raise InstanceError(
                f"{self.task.id}: level is 1 to {LEVELS[-1]}, decay {' or '.join(DECAYS)}, penalty 0 to 1; "
                f"got {level}, {decay!r}, {penalty}"
            )
        self.level, self.decay, self.penalty = level, decay, penalty

    def draw(self, index: int) -> tuple[str, str]:
        """Return question and answer of an instance."""
        chance = np.random.default_rng([2507, STREAM[self.split], self.level, index])
        while True:
            each = problem(chance, self.level, self.families[index % len(self.families)])
            if (crc32(each.question.encode()) % TEST_SHARE == 0) == (self.split == "test"):  # no problem is in both
                return each.question, each.answer

    def right(self, answer: str) -> bool:
        """Return True if an answer is right."""
        return same(answer, self.truth)

    def begin(self, index: int) -> Reply:
        """Show the problem."""
        question, self.truth = self.draw(index)
        return self._shown(question)

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open an authored problem, {"question": ..., "answer": ...}."""
        question, answer = (str(instance.get(name, "")) for name in ("question", "answer"))
        if not question.strip() or not answer.strip():
            raise InstanceError(
                f'a problem has a question and an answer that are not empty, {{"question": ..., "answer": ...}}; got '
                f"{str(dict(instance))[:200]}"
            )
        self.truth = answer
        return self._shown(question)

    def act(self, action: str) -> Reply:
        """Check an answer. An answer without content is a try as well."""
        tagged = parse_tag(action, "answer")
        answer = action.strip() if tagged is None else tagged
        self.answers.append("".join(answer.lower().split()))
        if answer and self.right(answer):
            self.solved_at_first = float(len(self.answers) == 1)
            return self._finish("Correct!", DECAYS[self.decay] ** (len(self.answers) - 1), 1.0)
        if len(self.answers) >= TRIES:
            return self._finish("Incorrect. No tries are left.", 0.0, 0.0, valid=bool(answer))
        return Reply(WRONG, valid=bool(answer))

    def answer(self) -> str:
        """Return the right answer."""
        return self.truth

    def admissible(self) -> list[str] | None:
        """Return the remainders below the divisor that were not tried; None for problems with countless answers."""
        if self.families != ("remainder",):
            return None
        divisor = int(self.question.rstrip("?").split()[-1])
        return [f"<answer>{n}</answer>" for n in range(divisor) if str(n) not in self.answers]

    def figures_if_cut(self) -> dict[str, float]:
        """Return 1 if the first answer was right, and the share of answers that differ."""
        distinct = len(set(self.answers)) / len(self.answers) if self.answers else 1.0
        return {"solved_at_first": self.solved_at_first, "distinct_answers": distinct}

    def oracle(self) -> Iterator[str]:
        """Give the right answer."""
        while True:
            yield f"<answer>{self.truth}</answer>"

    def _shown(self, question: str) -> Reply:
        self.question, self.answers = question, list[str]()
        self.solved_at_first = 0.0
        return Reply(PROMPT.substitute(question=question, tries=TRIES))

    def _finish(self, text: str, reward: float, score: float, *, valid: bool = True) -> Reply:
        repeated = 1 - len(set(self.answers)) / len(self.answers)
        rewards = {"solved": reward, "repetition": -self.penalty * repeated}
        return Reply(text, reward=rewards, done=True, score=score, valid=valid)
