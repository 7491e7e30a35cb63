"""Which tasks there are: the built-in folders and the plug-ins of other packages.

Only SPECs are imported here; an environment's module is imported when it is made.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

import gymnasium

from lmgym.env.env import TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, MissingExtra

PLUGINS = "lmgym.tasks"  # entry-point group: each names a module with SPEC and, if it likes, VARIANTS


def _of_module(module: Any) -> Iterator[TaskSpec]:
    yield module.SPEC
    yield from getattr(module, "VARIANTS", ())


def _found() -> Iterator[TaskSpec]:
    tasks = importlib.import_module("lmgym.tasks")
    for module in pkgutil.iter_modules(tasks.__path__):
        if module.ispkg:
            yield from _of_module(importlib.import_module(f"lmgym.tasks.{module.name}"))
    for plugin in entry_points(group=PLUGINS):
        try:
            brought = list(_of_module(plugin.load()))
        except (ImportError, AttributeError) as error:  # one broken package may not take all tasks away
            warnings.warn(f"tasks of plug-in {plugin.name} ({plugin.value}) are left out: {error}", stacklevel=2)
        else:
            yield from brought


@cache
def specs() -> MappingProxyType[str, TaskSpec]:
    """Return all task specs by id, in the order of their folders."""
    found: dict[str, TaskSpec] = {}
    for spec in _found():
        if spec.id in found:
            raise InstanceError(f"two tasks call themselves {spec.id}: {found[spec.id].package} and {spec.package}")
        found[spec.id] = spec
    return MappingProxyType(found)


def find(name: str) -> TaskSpec:
    """Return the spec for an id ("lmgym/ALFWorld-v0", "ALFWorld-v0") or a folder's name ("alfworld").

    Raises InstanceError with near misses for an unknown name.
    """
    known = specs()
    for spec in known.values():  # a folder's first spec is its main one
        if name in (spec.id, spec.id.partition("/")[2], spec.name):
            return spec
    words = [*{spec.name: None for spec in known.values()}, *(i.partition("/")[2] for i in known)]
    parts = {spec.id.partition("/")[2] for spec in known.values() if spec.part_of}
    whole = [word for word in words if word not in parts]
    lowered = {word.lower(): word for word in words}
    near = [lowered[word] for word in difflib.get_close_matches(name.lower().removeprefix("lmgym/"), lowered, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(whole)}"
    raise InstanceError(f"unknown task {name!r}; {hint}")


def load(spec: TaskSpec) -> type[Any]:
    """Import the environment class of a spec; MissingExtra where its packages are not installed."""
    module, _, name = spec.entry_point.partition(":")
    try:
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]  # a class by contract
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error


def shows(spec: TaskSpec) -> bool:
    """Whether its environment has a demonstrator or an oracle, for some instances at least."""
    kind = load(spec)
    return kind.demonstrator is not TextEnv.demonstrator or kind.oracle is not TextEnv.oracle


def lists(spec: TaskSpec) -> bool:
    """Whether its environment lists admissible actions, in some states at least."""
    return load(spec).admissible is not TextEnv.admissible


def offers_tools(spec: TaskSpec) -> bool:
    """Return True if the environment's actions are tool calls, with JSON schemas."""
    return load(spec).tools is not TextEnv.tools


def _missing(spec: TaskSpec, error: ModuleNotFoundError) -> ModuleNotFoundError | MissingExtra:
    if (error.name or "").partition(".")[0] == "lmgym" or not spec.extras:
        return error
    return MissingExtra(f"{spec.id} needs {error.name}: pip install 'lmgym[{','.join(spec.extras)}]'")


def options_of(entry: type[Any]) -> dict[str, Any]:
    """Return the keyword options of an environment class with their defaults, those of its bases included."""
    found: dict[str, Any] = {}
    for base in entry.__mro__:
        if "__init__" in vars(base) and base.__module__.partition(".")[0] != "gymnasium":
            for parameter in inspect.signature(vars(base)["__init__"]).parameters.values():
                if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "spec":
                    found.setdefault(parameter.name, parameter.default)
    return found


def build(task: str | TaskSpec, /, *, max_turns: int | None = None, **options: Any) -> Any:
    """Make the environment `task` under its turn limit, without Gymnasium's checkers: `gym.make` adds those.

    Raises InstanceError for an unknown task, option, split or index and MissingExtra for missing packages.
    """
    from lmgym.env.wrappers import TimeLimit

    spec = task if isinstance(task, TaskSpec) else find(task)
    entry = load(spec)
    known = options_of(entry)
    if unknown := [name for name in options if name not in known]:
        raise InstanceError(f"{spec.id} has no option {unknown[0]!r}; it has {', '.join(sorted(known))}, max_turns")
    for name, value in options.items():
        if isinstance(known[name], str | int) and type(value) is not type(known[name]):
            wanted = type(known[name]).__name__
            raise InstanceError(f"{spec.id}: option {name} takes {wanted}, such as {known[name]!r}; got {value!r}")
    try:
        env = entry(spec=spec, **{**spec.options, **options})
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error
    return TimeLimit(env, max_turns=env.task.max_turns if max_turns is None else max_turns)


def by_id(of: str, **options: Any) -> Any:
    """Make the environment `of` for `gym.make`, which passes everything by name."""
    return build(of, **options)


def register_all() -> None:
    """Register every task with Gymnasium; ids already there are left alone."""
    for spec in specs().values():
        if spec.id not in gymnasium.registry:
            gymnasium.register(
                id=spec.id,
                entry_point="lmgym.env.registry:by_id",
                kwargs={"of": spec.id},
                nondeterministic=not spec.deterministic,
                order_enforce=False,  # TextEnv does, and check_task what the passive checker looks for
                disable_env_checker=True,
            )
