"""The problems of Reasoning Gym: all generators in turn, as far as they keep their promises."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, ClassVar

from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.try_again import VARIANTS
from lmgym.tasks.try_again.env import STREAM, TryAgain

SEED = 2507
SPLIT = 10_000_000  # between the seeds of two splits
SALTED = ("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note")  # differ between processes
WITHOUT_ANSWER = ("boxnet", "rush_hour", "composite")  # no answer that scores 1; a mixture of others
ANSWERS = ("possible_answer", "example_answer", "example_correct_answer")  # where an entry keeps one beside `answer`


@lru_cache(maxsize=1)
def generators() -> tuple[str, ...]:
    """Return the names of all generators that are deterministic and know an answer."""
    from reasoning_gym.factory import DATASETS

    return tuple(sorted(set(DATASETS) - {*SALTED, *WITHOUT_ANSWER}))


class TryAgainReasoningGym(TryAgain):
    """A problem of Reasoning Gym; `generator` picks one of its generators, "" takes all in turn."""

    SPEC: ClassVar[TaskSpec] = VARIANTS[0]

    def __init__(self, *, generator: str = "", **common: Any) -> None:
        super().__init__(**common)
        if len(self.families) == 1:
            raise InstanceError(f"{self.task.id} has no families; choose a generator, such as generator='leg_counting'")
        names = generators()
        self.check_choices(generator=(generator, ("", *names)))
        self.names = (generator,) if generator else names

    def draw(self, index: int) -> tuple[str, str]:
        """Return question and answer of an instance: one entry of a data set of its own seed."""
        import reasoning_gym

        name = self.names[index % len(self.names)]
        self.dataset = reasoning_gym.create_dataset(name, seed=SEED + SPLIT * STREAM[self.split] + index, size=1)
        for graph in getattr(
            self.dataset, "word_graphs", {}
        ).values():  # of sets, whose order differs between processes
            graph.update({word: sorted(neighbours) for word, neighbours in graph.items()})
        self.entry: Any = self.dataset[0]
        return str(self.entry["question"]), self._answer()

    def right(self, answer: str) -> bool:
        """Return True if the generator's own scorer gives the full score."""
        try:
            return float(self.dataset.score_answer(answer, self.entry)) >= 1.0
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, SyntaxError, RecursionError):
            return False  # some scorers do not survive all answers

    def _answer(self) -> str:
        answer, metadata = self.entry["answer"], self.entry["metadata"]
        if answer is None:
            answer = next(metadata[name] for name in ANSWERS if metadata.get(name) is not None)
        return answer if isinstance(answer, str) else json.dumps(answer) if isinstance(answer, dict) else str(answer)
