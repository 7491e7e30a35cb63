"""The tasks and options that clients may open: served tasks, with the options that their specs declare public."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lmgym.backends import wire
from lmgym.env.registry import find, load, options_of, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError
from lmgym.serve.env_session import SessionConfig

MAX_TURNS = 10_000  # highest turn limit that a client may set
HARMLESS = re.compile(r"\b[\w-]+/(?:\w[\w-]*-v\d+|\d+)")  # "lmgym/Wordle-v0", "train/17": no paths
PATH = re.compile(r"[/\\~]")


class Refusal(LmgymError):
    """A refused call or message, with the error that the client receives."""

    def __init__(self, code: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.error = wire.Error(code, message, retry_after)


def tellable(error: LmgymError) -> str:
    """Return the message of an error, or a substitute if it may contain a path of this machine."""
    message = str(error)
    if PATH.search(HARMLESS.sub("", message)):
        return "the details are in the server's log"
    return message[:1000]


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Served tasks by id, with the operator's options and the hidden information that clients may ask for."""

    specs: Mapping[str, TaskSpec]
    options: Mapping[str, Any] = field(default_factory=dict)  # set by the operator, for every session
    reveals: frozenset[str] = frozenset()
    max_turns: int = MAX_TURNS  # highest turn limit of a session

    @classmethod
    def of(
        cls, names: Iterable[str] = (), *, options: Mapping[str, Any] | None = None, reveals: Iterable[str] = ()
    ) -> Catalogue:
        """Make a catalogue of the named tasks, or of all that execute no code of a client. Raises InstanceError.

        `max_turns` among the options is the task's turn limit on this server; clients may set lower ones.
        """
        options = dict(options or {})
        chosen = [find(name) for name in names]
        if remote := [spec.id for spec in chosen if spec.remote]:
            raise InstanceError(f"{remote[0]} is a client of a server; serve the task itself on that server's machine")
        if options and len(chosen) != 1:
            raise InstanceError("--option applies to every session; serve a single task with it")
        if unknown := sorted(set(reveals) - set(wire.SECRETS)):
            raise InstanceError(f"cannot reveal {unknown[0]!r}; choose from {', '.join(wire.SECRETS)}")
        for spec in chosen:
            allowed = [*options_of(load(spec)), "max_turns"]  # raises MissingExtra if the task's packages are missing
            if unknown := [name for name in options if name not in allowed]:
                choices = ", ".join(sorted(allowed))
                raise InstanceError(f"unknown option {unknown[0]!r} for {spec.id}; choose from {choices}")
        limit = options.pop("max_turns", None)
        if limit is not None:
            if type(limit) is not int or not 1 <= limit <= MAX_TURNS:
                raise InstanceError(f"max_turns must be a whole number from 1 to {MAX_TURNS}; got {limit!r}")
            chosen = [replace(spec, max_turns=limit) for spec in chosen]
        chosen = chosen or [spec for spec in specs().values() if not (spec.remote or spec.runs_code)]
        return cls(
            specs={spec.id: spec for spec in chosen},
            options=options,
            reveals=frozenset(reveals),
            max_turns=limit or MAX_TURNS,
        )

    def config(self, call: wire.Open) -> SessionConfig:
        """Return the environment that a call opens. Raises Refusal if clients may not open it."""
        named = (each for each in self.specs.values() if call.task in (each.id, each.id.partition("/")[2], each.name))
        if (spec := next(named, None)) is None:
            task = _short(call.task)
            raise Refusal("task", f"this server has no task {task}; GET {wire.PATH}/tasks lists its tasks")
        split = spec.options.get("split", "train") if call.split is None else call.split
        if split not in spec.splits:
            raise Refusal(
                "option", f"unknown split {_short(call.split)} for {spec.id}; choose {', '.join(spec.splits)}"
            )
        options = dict(self.options)
        for name, value in call.options.items():
            self._check(spec, name, value)
            options[name] = value
        if call.others not in ("scripted", "caller") or (call.others == "caller" and "seats" not in self.reveals):
            raise Refusal("withheld", "this server plays the other seats itself: use others='scripted'")
        if call.max_turns is not None:
            if not 1 <= call.max_turns <= MAX_TURNS:
                raise Refusal("option", f"max_turns must be 1 to {MAX_TURNS}; got {_short(call.max_turns)}")
            options["max_turns"] = min(call.max_turns, self.max_turns)
        return SessionConfig(spec=spec, split=split, options={"others": call.others, **options}, reveals=self.reveals)

    def permit(self, call: wire.AnyCall) -> None:
        """Raise Refusal if a call asks for withheld information."""
        if isinstance(call, wire.Ask):
            wanted = "seats" if call.what == "scripted" else call.what
            if wanted not in self.reveals or wanted not in (*wire.HINTS, "seats"):
                raise Refusal("withheld", f"this server does not reveal {_short(call.what)}")
        if isinstance(call, wire.Reset | wire.Step):
            seed = call.seed if isinstance(call, wire.Reset) else call.reseed
            if seed is not None and seed < 0:
                raise Refusal("instance", f"a seed is 0 or more; got {_short(seed)}")
        if isinstance(call, wire.Reset) and call.instance is not None and "instances" not in self.reveals:
            raise Refusal("withheld", "this server does not accept authored instances; choose one by its index")

    def listing(self) -> list[dict[str, Any]]:
        """Describe the served tasks and their public options, as JSON values."""
        return [
            {
                "task": spec.id,
                "summary": spec.summary,
                "max_turns": spec.max_turns,
                "splits": list(spec.splits),
                "score": spec.score,
                "options": {name: _choices(values) for name, values in self._public(spec).items()},
            }
            for spec in self.specs.values()
        ]

    def _public(self, spec: TaskSpec) -> dict[str, range | tuple[Any, ...]]:
        """Return the options that a client may set: public ones that the operator has not set."""
        return {name: values for name, values in spec.public.items() if name not in self.options}

    def _check(self, spec: TaskSpec, name: str, value: Any) -> None:
        public = self._public(spec)
        if name not in public:
            names = ", ".join(public) or "none"
            raise Refusal("option", f"clients cannot set option {_short(name)} of {spec.id}; public options: {names}")
        values = public[name]
        same = [each for each in (values if isinstance(values, tuple) else ()) if type(each) is type(value)]
        if not (value in same or (isinstance(values, range) and type(value) is int and value in values)):
            raise Refusal(
                "option", f"option {name} of {spec.id} must be one of {_choices(values)}; got {_short(value)}"
            )


def _choices(values: range | tuple[Any, ...]) -> Any:
    """Return the allowed values of an option as JSON values."""
    if isinstance(values, range):
        return {"from": values[0], "to": values[-1]} | ({"by": values.step} if values.step != 1 else {})
    return list(values)


def _short(value: object) -> str:
    """Quote a client's value in a message, without converting integers beyond Python's digit limit."""
    return repr(value)[:100] if not isinstance(value, int) or abs(value) < 1 << 64 else "a larger number"
