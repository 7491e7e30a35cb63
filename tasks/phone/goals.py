"""Goals: a template with its parameters, the plan, and the phone's contents or the answer that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmgym.tasks.phone.moves import Move
from lmgym.tasks.phone.state import PhoneState, several
from lmgym.tasks.phone.words import FIRST, LAST

Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class PhoneGoal:
    """A request: AndroidWorld's template and parameters, and how it is judged."""

    template: str
    parameters: Mapping[str, Any]
    plan: tuple[Move, ...]  # the oracle's, without the status
    wanted: Mapping[str, Any]  # contents of the phone in the end: all of it, so that nothing else may change
    answer: str = ""  # to be given; "": none is asked for
    feasible: bool = True

    @property
    def text(self) -> str:
        """The request in words."""
        return self.template.format(**self.parameters)


Builder = Callable[[PhoneState, Rng], PhoneGoal]


def changed(template: str, state: PhoneState, plan: tuple[Move, ...], **parameters: Any) -> PhoneGoal:
    """Return the goal to bring a phone to this state."""
    return PhoneGoal(template=template, parameters=parameters, plan=plan, wanted=state.content())


def question(template: str, state: PhoneState, plan: tuple[Move, ...], answer: str, **parameters: Any) -> PhoneGoal:
    """Return the goal to answer a question and change nothing."""
    return PhoneGoal(template=template, parameters=parameters, plan=plan, wanted=state.content(), answer=answer)


def impossible(template: str, state: PhoneState, plan: tuple[Move, ...], **parameters: Any) -> PhoneGoal:
    """Return a goal that cannot be reached."""
    return PhoneGoal(template=template, parameters=parameters, plan=plan, wanted=state.content(), feasible=False)


def stranger(state: PhoneState, rng: Rng) -> str:
    """Return a name that no contact has."""
    names = {each["name"] for each in state.contacts}
    pairs = (f"{first} {last}" for first in several(rng, FIRST, len(FIRST)) for last in several(rng, LAST, len(LAST)))
    return next(name for name in pairs if name not in names)


def plain(answer: str) -> str:
    """Return an answer without case, quotes, outer punctuation and double spaces."""
    return " ".join(answer.casefold().split()).strip(" .,!'\"")
