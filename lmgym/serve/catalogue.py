"""What strangers may open: tasks that are named, with options that the task's spec says are safe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmgym.backends import wire
from lmgym.env.registry import find, load, options_of, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError
from lmgym.serve.env_session import SessionConfig

LONGEST = 10_000  # turns of an episode
HARMLESS = re.compile(r"\b[\w-]+/(?:\w[\w-]*-v\d+|\d+)")  # "lmgym/Wordle-v0", "train/17": no paths
PATH = re.compile(r"[/\\~]")


class Refusal(LmgymError):
    """What a client is told instead of an answer."""

    def __init__(self, code: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.error = wire.Error(code, message, retry_after)


def tellable(error: LmgymError) -> str:
    """The message of an error, without one that may have a path of this machine in it."""
    message = str(error)
    if PATH.search(HARMLESS.sub("", message)):
        return "the details are in the server's log"
    return message[:1000]


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Tasks by id, and what the operator lets be known of them."""

    specs: Mapping[str, TaskSpec]
    options: Mapping[str, Any] = field(default_factory=dict)  # the operator's own, for every session
    reveals: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, names: Iterable[str] = (), *, options: Mapping[str, Any] | None = None, reveals: Iterable[str] = ()
    ) -> Catalogue:
        """Of the tasks that are named, else of all that run nothing of what a stranger sends. Raises InstanceError."""
        options = dict(options or {})
        found = [find(name) for name in names]
        if wrong := [spec.id for spec in found if spec.elsewhere]:
            raise InstanceError(f"{wrong[0]} is a client of a server: serve what it plays from there")
        if options and len(found) != 1:
            raise InstanceError("options hold for every session: serve one task with them")
        if strange := sorted(set(reveals) - set(wire.SECRETS)):
            raise InstanceError(f"what may be revealed is {', '.join(wire.SECRETS)}; got {strange[0]!r}")
        for spec in found:
            known_options = options_of(load(spec))  # MissingExtra, where its packages are not here
            if unknown := [name for name in options if name not in known_options]:
                raise InstanceError(
                    f"{spec.id} has no option {unknown[0]!r}; it has {', '.join(sorted(known_options))}"
                )
        chosen = found or [spec for spec in specs().values() if not (spec.elsewhere or spec.runs_code)]
        return cls(specs={spec.id: spec for spec in chosen}, options=options, reveals=frozenset(reveals))

    def config(self, call: wire.Open) -> SessionConfig:
        """Return what a call may open. Raises Refusal."""
        spec = self._spec(call.task)
        split = spec.options.get("split", "train") if call.split is None else call.split
        if split not in spec.splits:
            raise Refusal("option", f"{spec.id} has the splits {', '.join(spec.splits)}; got {_short(call.split)}")
        options = dict(self.options)
        for name, value in call.options.items():
            self._check(spec, name, value)
            options[name] = value
        if call.others not in ("scripted", "caller") or (call.others == "caller" and "seats" not in self.reveals):
            raise Refusal("withheld", "the other seats are the task's own players' here: others='scripted'")
        if call.max_turns is not None:
            if not 1 <= call.max_turns <= LONGEST:
                raise Refusal("option", f"max_turns is 1 to {LONGEST}; got {_short(call.max_turns)}")
            options["max_turns"] = call.max_turns
        return SessionConfig(spec=spec, split=split, options={"others": call.others, **options}, reveals=self.reveals)

    def permit(self, call: wire.AnyCall) -> None:
        """Raise Refusal where a call to a session asks for what is withheld."""
        if isinstance(call, wire.Ask):
            wanted = "seats" if call.what == "scripted" else call.what
            if wanted not in self.reveals or wanted not in (*wire.HINTS, "seats"):
                raise Refusal("withheld", f"this server does not tell {_short(call.what)}")
        if isinstance(call, wire.Reset | wire.Step):
            seed = call.seed if isinstance(call, wire.Reset) else call.reseed
            if seed is not None and seed < 0:
                raise Refusal("instance", f"a seed is 0 or more; got {_short(seed)}")
        if isinstance(call, wire.Reset) and call.instance is not None and "instances" not in self.reveals:
            raise Refusal("withheld", "this server takes no authored instances; name one by its index")

    def listing(self) -> list[dict[str, Any]]:
        """What there is to open, for people and programs."""
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

    def _spec(self, name: str) -> TaskSpec:
        for spec in self.specs.values():
            if name in (spec.id, spec.id.partition("/")[2], spec.name):
                return spec
        raise Refusal("task", f"no task {_short(name)} is served here; GET {wire.PATH}/tasks lists those that are")

    def _public(self, spec: TaskSpec) -> dict[str, range | tuple[Any, ...]]:
        """Options that a client may set: the operator's own are settled."""
        return {name: values for name, values in spec.public.items() if name not in self.options}

    def _check(self, spec: TaskSpec, name: str, value: Any) -> None:
        public = self._public(spec)
        if name not in public:
            known = ", ".join(public) or "none"
            raise Refusal("option", f"{spec.id} takes these options from clients: {known}; got {_short(name)}")
        values = public[name]
        same = [each for each in (values if isinstance(values, tuple) else ()) if type(each) is type(value)]
        if not (value in same or (isinstance(values, range) and type(value) is int and value in values)):
            raise Refusal("option", f"option {name} of {spec.id} takes {_choices(values)}; got {_short(value)}")


def _choices(values: range | tuple[Any, ...]) -> Any:
    """The values of an option as JSON shows them."""
    if isinstance(values, range):
        return {"from": values[0], "to": values[-1]} | ({"by": values.step} if values.step != 1 else {})
    return list(values)


def _short(value: object) -> str:
    """What a client sent, said back to it; a whole number may have more digits than Python writes."""
    return repr(value)[:100] if not isinstance(value, int) or abs(value) < 1 << 64 else "a longer number"
