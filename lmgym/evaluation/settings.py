"""Settings of an evaluation: everything a score depends on besides the policy, hashed into its identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from lmgym.errors import RecipeError
from lmgym.rollout.answers import AnswerFormat
from lmgym.rollout.context import Context, Full, MarkovState, Stub, Summarise, Window

ToolMode = Literal["none", "native", "template", "text"]
SCRIPTED = "scripted"  # in place of a seat's model: the task's own player
RULES = "full, window:TURNS[:STRIDE], stub:KEEP, markov, latest, summarise:TOKENS[:MOST]"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of an evaluation. Two scores are comparable if their identities are equal."""

    task: str  # id, which carries the version
    split: str
    options: Mapping[str, Any] = field(default_factory=dict)
    instances: tuple[int, ...]  # indices, in order
    tries: int = 1
    seed: int = 0  # of the environments and of local sampling
    temperature: float | None = 1.0
    max_tokens: int | None = None  # in an answer
    context: str = "full"
    tools: ToolMode = "none"  # how tools are offered
    prompt: str | None = None  # system prompt of the agent
    answers: AnswerFormat = "plain"  # the part of the agent's answers that is the action
    seats: Mapping[str, str] = field(default_factory=dict)  # user simulator or opponent, by seat
    seat_max_tokens: Mapping[str, int] = field(default_factory=dict)  # in an answer, where not the agent's
    request: Mapping[str, Any] = field(default_factory=dict)  # extra fields of an endpoint's request

    def identity(self) -> str:
        """Return the digest of all fields, 32 hexadecimal digits."""
        fields = self._fields()
        if self.answers == "plain":
            del fields["answers"]  # identities from before the field still hold
        text = json.dumps(fields, sort_keys=True, ensure_ascii=True, default=plain)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def state_dict(self) -> dict[str, Any]:
        """Return plain values, instances as ranges."""
        return {**self._fields(), "instances": ranges(self.instances)}

    def _fields(self) -> dict[str, Any]:
        """Return all fields; without `seat_max_tokens` if it is empty, as runs from before the field recorded it."""
        fields = asdict(self)
        if not self.seat_max_tokens:
            del fields["seat_max_tokens"]
        return fields

    def recorded(self) -> dict[str, Any]:
        """Return the state as it is read back from JSON."""
        return dict(json.loads(json.dumps(self.state_dict(), default=plain)))


def plain(value: object) -> object:
    """Return a JSON value for other types: a sorted list for a set, so that hash seeds do not matter, else the repr."""
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else repr(value)


def ranges(numbers: tuple[int, ...]) -> str:
    """Return runs of consecutive numbers: (0, 1, 2, 5) gives "0-2 5"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def rule_of(context: Context | None) -> str | None:
    """Return the rule that `context_rule` reads as `context`; None if there is none, as for texts of its own."""
    match context:
        case None | Full():
            rule = "full"
        case Window():
            rule = f"window:{context.turns}:{context.stride}"
        case Stub():
            rule = f"stub:{context.keep}"
        case MarkovState():
            rule = "markov" if context.task else "latest"
        case Summarise():
            rule = f"summarise:{context.limit}" + (f":{context.most}" if context.most else "")
        case _:
            return None
    return rule if context_rule(rule) == (context or Full()) else None


def context_rule(text: str) -> Context:
    """Return the Context for a rule such as `window:8:4`."""
    name, *words = text.split(":")
    try:
        numbers = [int(word) for word in words]
        kinds: dict[str, Callable[..., Context]] = {
            "full": Full,
            "window": Window,
            "stub": Stub,
            "markov": MarkovState,
            "latest": partial(MarkovState, task=False),
            "summarise": Summarise,
        }
        if any(number < 1 for number in numbers) or (name in ("markov", "latest") and numbers):
            raise ValueError
        return kinds[name](*numbers)
    except (ValueError, KeyError, TypeError) as error:
        raise RecipeError(f"unknown --context {text!r}; choose from {RULES}") from error
