"""The registry of tasks: built-in folders and plug-ins of other packages.

Only SPECs are imported here; an environment's module is imported when it is made.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import gymnasium
from gymnasium.envs.registration import WrapperSpec

from lmgym.env.env import TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, MissingExtra

PLUGINS = "lmgym.tasks"  # entry-point group: each names a module with SPEC and, optionally, VARIANTS


def _of_module(module: Any) -> Iterator[TaskSpec]:
    yield module.SPEC
    yield from getattr(module, "VARIANTS", ())


@cache
def specs() -> MappingProxyType[str, TaskSpec]:
    """Return all task specs by id, in the order of their folders, those of plug-ins last.

    A plug-in that cannot be imported is left out with a warning.
    """
    tasks = importlib.import_module("lmgym.tasks")
    names = [module.name for module in pkgutil.iter_modules(tasks.__path__) if module.ispkg]
    all_specs = [spec for name in names for spec in _of_module(importlib.import_module(f"lmgym.tasks.{name}"))]
    for plugin in entry_points(group=PLUGINS):
        try:
            all_specs += list(_of_module(plugin.load()))
        except Exception as error:  # noqa: BLE001  (code of another package may raise anything)
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"tasks of plug-in {plugin.name} ({plugin.value}) are left out: {reason}", stacklevel=2)
    by_id: dict[str, TaskSpec] = {}
    for spec in all_specs:
        if spec.id in by_id:
            raise InstanceError(f"two tasks have the id {spec.id}: {by_id[spec.id].package} and {spec.package}")
        by_id[spec.id] = spec
    return MappingProxyType(by_id)


def find(name: str) -> TaskSpec:
    """Return the spec for an id ("lmgym/ALFWorld-v0", "ALFWorld-v0") or a folder's name ("alfworld").

    Raises InstanceError with near misses for an unknown name.
    """
    tasks = specs().values()
    for spec in tasks:  # a folder's first spec is its main one
        if name in (spec.id, spec.id.partition("/")[2], spec.name):
            return spec
    short_ids = {spec.id.partition("/")[2]: spec for spec in tasks}
    names = list(dict.fromkeys([*(spec.name for spec in tasks), *short_ids]))
    lowered = {each.lower(): each for each in names}
    near = [lowered[each] for each in difflib.get_close_matches(name.lower().removeprefix("lmgym/"), lowered, n=3)]
    listed = [each for each in names if each not in short_ids or not short_ids[each].part_of]
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose one of {', '.join(listed)}"
    raise InstanceError(f"unknown task {name!r}; {hint}")


def load(spec: TaskSpec) -> type[Any]:
    """Import the environment class of a spec. Raises MissingExtra if its packages are not installed."""
    module, _, name = spec.entry_point.partition(":")
    try:
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]  # a class by contract
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error


def has_demonstrator(spec: TaskSpec) -> bool:
    """Return True if the environment has a demonstrator or an oracle, at least for some instances."""
    entry = load(spec)
    return entry.demonstrator is not TextEnv.demonstrator or entry.oracle is not TextEnv.oracle


def lists_admissible(spec: TaskSpec) -> bool:
    """Return True if the environment lists admissible actions, at least in some states."""
    return load(spec).admissible is not TextEnv.admissible


def has_answer(spec: TaskSpec) -> bool:
    """Return True if the environment tells the hidden answer, at least for some instances."""
    return load(spec).answer is not TextEnv.answer


def offers_tools(spec: TaskSpec) -> bool:
    """Return True if the environment's actions are tool calls, with JSON schemas."""
    return load(spec).tools is not TextEnv.tools


def _missing(spec: TaskSpec, error: ModuleNotFoundError) -> ModuleNotFoundError | MissingExtra:
    if (error.name or "").partition(".")[0] == "lmgym" or not spec.extras:
        return error
    return MissingExtra(f"{spec.id} needs {error.name}: pip install 'lmgym[{','.join(spec.extras)}]'")


def options_of(entry: type[Any]) -> dict[str, Any]:
    """Return the keyword options of an environment class with their defaults, those of its bases included."""
    options: dict[str, Any] = {}
    for base in entry.__mro__:
        if "__init__" in vars(base) and base.__module__.partition(".")[0] != "gymnasium":
            for parameter in inspect.signature(vars(base)["__init__"]).parameters.values():
                if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "spec":
                    options.setdefault(parameter.name, parameter.default)
    return options


def build(task: str | TaskSpec, /, **options: Any) -> Any:
    """Make the environment `task` under its turn limit, without Gymnasium's checkers: `gym.make` adds those.

    Raises InstanceError for an unknown task, option or split and MissingExtra for missing packages.
    """
    from lmgym.env.wrappers import TimeLimit

    return TimeLimit(make(task, **options))


def make(task_id: str | TaskSpec, *, max_turns: int | None = None, **options: Any) -> Any:
    """Make an environment without its turn limit, as the entry point of `gym.make`, which adds that wrapper."""
    spec = task_id if isinstance(task_id, TaskSpec) else find(task_id)
    turns: Any = max_turns  # of callers without type checks
    if turns is not None and (isinstance(turns, bool) or not isinstance(turns, Integral)):
        raise InstanceError(f"{spec.id}: max_turns takes an int, such as {spec.max_turns}; got {max_turns!r}")
    check_options(spec, options)
    try:
        env = load(spec)(spec=spec, **{**spec.options, **options})
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error
    env.max_turns = max_turns
    return env


def check_options(spec: TaskSpec, options: Mapping[str, Any]) -> None:
    """Raise InstanceError for an option that the task has not, or of another type than its default."""
    defaults = options_of(load(spec))
    if unknown := [name for name in options if name not in defaults]:
        names = ", ".join(sorted([*defaults, "max_turns"]))
        raise InstanceError(f"unknown option {unknown[0]!r} for {spec.id}; choose from {names}")
    paths = _path_options(load(spec))
    for name, value in options.items():
        default = defaults[name]
        if isinstance(default, str | int) and type(value) is not type(default):
            wanted = type(default).__name__
            raise InstanceError(f"{spec.id}: option {name} takes {wanted}, such as {default!r}; got {value!r}")
        if isinstance(default, float) and (isinstance(value, bool) or not isinstance(value, Real)):
            raise InstanceError(f"{spec.id}: option {name} takes a number, such as {default!r}; got {value!r}")
        if name in paths and not isinstance(value, str | os.PathLike | None):
            raise InstanceError(f"{spec.id}: option {name} takes a path; got {value!r}")


def _path_options(entry: type[Any]) -> set[str]:
    """Return the names of the options of an environment class that are paths, by their annotation."""
    return {
        parameter.name
        for base in entry.__mro__
        if "__init__" in vars(base) and base.__module__.partition(".")[0] != "gymnasium"
        for parameter in inspect.signature(vars(base)["__init__"]).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and "PathLike" in str(parameter.annotation)
    }


def register_all() -> None:
    """Register every task with Gymnasium; ids already registered are left alone."""
    for spec in specs().values():
        if spec.id not in gymnasium.registry:
            gymnasium.register(
                id=spec.id,
                entry_point="lmgym.env.registry:make",
                kwargs={"task_id": spec.id},
                nondeterministic=not spec.deterministic,
                max_episode_steps=None if spec.remote else spec.max_turns,
                order_enforce=False,  # TextEnv does this, and check_task does what the passive checker would
                disable_env_checker=True,
                additional_wrappers=(WrapperSpec("TimeLimit", "lmgym.env.wrappers:TimeLimit", {}),),
            )
        name, _, version = spec.id.rpartition("-v")
        many = f"{name}Vector-v{version}"  # an id of its own: Gymnasium allows no vector entry point beside wrappers
        if spec.vector_entry_point and many not in gymnasium.registry:
            gymnasium.register(id=many, vector_entry_point=spec.vector_entry_point, kwargs=dict(spec.options))
