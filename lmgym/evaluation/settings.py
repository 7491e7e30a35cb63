"""What a score depends on beside the policy, written down in full and hashed into its identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lmgym.errors import RecipeError
from lmgym.rollout.context import Context, Full, MarkovState, Stub, Summarise, Window

ToolMode = Literal["none", "native", "template", "text"]
RULES = "full, window:TURNS[:STRIDE], stub:KEEP, markov, summarise:TOKENS"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a policy is evaluated. Two scores are of the same thing where the identities are equal."""

    task: str  # id, which carries the version
    split: str
    options: Mapping[str, Any] = field(default_factory=dict)
    instances: tuple[int, ...]  # indices, in order
    tries: int = 1
    seed: int = 0  # chance of the environments and of local sampling
    temperature: float | None = 1.0
    max_tokens: int | None = None  # of an answer
    context: str = "full"
    tools: ToolMode = "none"  # how tools are offered
    prompt: str | None = None  # system prompt of the agent
    seats: Mapping[str, str] = field(default_factory=dict)  # user simulator or opponent, by seat
    request: Mapping[str, Any] = field(default_factory=dict)  # further members of an endpoint's request

    def identity(self) -> str:
        """Digest of everything above, in 32 hexadecimal digits."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True, default=plain)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def state_dict(self) -> dict[str, Any]:
        """As plain values; instances as the ranges they make."""
        return {**asdict(self), "instances": ranges(self.instances)}

    def recorded(self) -> dict[str, Any]:
        """The same as JSON gives it back."""
        return dict(json.loads(json.dumps(self.state_dict(), default=plain)))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Settings:
        """From plain values."""
        spans = [span.split("-") for span in state["instances"].split()]
        numbers = tuple(n for span in spans for n in range(int(span[0]), int(span[-1]) + 1))
        return cls(**{**state, "instances": numbers})


def plain(value: object) -> object:
    """What JSON has no word for: sets in one order, whatever the process hashes words to; else as written."""
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else repr(value)


def ranges(numbers: tuple[int, ...]) -> str:
    """Runs of consecutive numbers: (0, 1, 2, 5) gives "0-2 5"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def context_rule(text: str) -> Context:
    """The Context that a rule such as `window:8:4` names."""
    name, *words = text.split(":")
    try:
        numbers = [int(word) for word in words]
        kinds: dict[str, type[Context]] = {
            "full": Full,
            "window": Window,
            "stub": Stub,
            "markov": MarkovState,
            "summarise": Summarise,
        }
        if any(number < 1 for number in numbers) or (name == "markov" and numbers):
            raise ValueError
        return kinds[name](*numbers)
    except (ValueError, KeyError, TypeError) as error:
        raise RecipeError(f"--context is one of {RULES}; got {text!r}") from error
