"""Task folders in Harbor's layout: what they hold, checked on reading.

A folder has `instruction.md`, `task.toml`, `environment/Dockerfile`, `tests/test.sh` and, for the oracle,
`solution/solve.sh`. Every problem is an InstanceError of one line that names the folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lmgym.backends.sandbox import SandboxLimits
from lmgym.errors import InstanceError

OWN = Path(__file__).with_name("own")
TRAIN = ("decode-records", "join-parts", "lost-commit", "page-report", "slow-intervals")
TEST = ("effective-config", "load-orders", "redact-letters", "rpn-calculator", "tidy-permissions")
WHERE = "set TERMINAL_DATA, or data=, to a folder of task folders"
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
LARGEST = 1 << 50  # bytes
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
DEEPEST = 3  # levels below the data's folder on which task folders stand
UNSUPPORTED = ("environment/docker-compose.yaml", "environment/docker-compose.yml", "steps")
DEFAULT_SECONDS = 600.0  # Harbor's, of the agent and the tests


@dataclass(frozen=True)
class TaskFolder:
    """A task of one folder."""

    path: Path
    instruction: str
    image: str  # prebuilt image that task.toml names; "" if there is a Dockerfile
    seconds: float  # of one command of the agent
    test_seconds: float
    memory: int  # bytes
    disk: int  # bytes
    internet: bool  # the environment expects it
    test_environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    @property
    def dockerfile(self) -> Path:
        """Path of the environment's Dockerfile."""
        return self.path / "environment" / "Dockerfile"

    @property
    def limits(self) -> SandboxLimits:
        """Limits of the sandbox."""
        return SandboxLimits(seconds=self.seconds, memory=self.memory, disk=self.disk)


def read(path: Path) -> TaskFolder:
    """Read a task folder. Raises InstanceError if it is no valid one."""
    for name in UNSUPPORTED:
        if (path / name).exists():
            raise InstanceError(f"task {path.name}: {name} is not supported: one container and one step")
    settings = _settings(path)
    instruction = _text(path, "instruction.md")
    if not instruction.strip():
        raise InstanceError(f"task {path.name}: instruction.md is empty")
    if not (path / "tests" / "test.sh").is_file():
        raise InstanceError(f"task {path.name} has no tests/test.sh")
    environment = _table(path, settings, "environment")
    image = _value(path, environment, "environment.docker_image", str, "")
    if not image and not (path / "environment" / "Dockerfile").is_file():
        raise InstanceError(f"task {path.name} has no environment/Dockerfile, and its task.toml no docker_image")
    verifier = _table(path, settings, "verifier")
    return TaskFolder(
        path=path,
        instruction=instruction,
        image=image,
        seconds=_seconds(path, _table(path, settings, "agent"), "agent.timeout_sec"),
        test_seconds=_seconds(path, verifier, "verifier.timeout_sec"),
        memory=_size(path, environment, "memory", 512 << 20),
        disk=_size(path, environment, "storage", 128 << 20),
        internet=_value(path, environment, "environment.allow_internet", bool, True),
        test_environment=_variables(path, verifier),
    )


def _settings(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path, "task.toml"))
    except tomllib.TOMLDecodeError as error:
        raise InstanceError(f"task {path.name}: task.toml is not valid TOML: {error}") from error
    except RecursionError as error:
        raise InstanceError(f"task {path.name}: task.toml is nested too deeply") from error


def _text(path: Path, name: str) -> str:
    try:
        return (path / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InstanceError(f"task {path.name} has no {name}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InstanceError(f"task {path.name}: {name} cannot be read: {error}") from error


def _table(path: Path, settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = _value(path, settings, name, dict, {})
    return table


def _value(path: Path, table: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    value = table.get(name.rpartition(".")[2], default)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InstanceError(f"task {path.name}: task.toml has {name} = {value!r}, which is of the wrong type")
    return value


def _seconds(path: Path, table: Mapping[str, Any], name: str) -> float:
    seconds = _value(path, table, name, (int, float), DEFAULT_SECONDS)
    if not 0 < seconds < 1e6:
        raise InstanceError(f"task {path.name}: task.toml has {name} = {seconds!r}; seconds are positive")
    return float(seconds)


def _size(path: Path, table: Mapping[str, Any], name: str, default: int) -> int:
    """Return a size in bytes: `memory_mb`, or `memory` such as "2G"."""
    if f"{name}_mb" in table:
        megabytes = _value(path, table, f"environment.{name}_mb", int, 0)
        if not 0 < megabytes <= LARGEST >> 20:
            raise InstanceError(f"task {path.name}: task.toml has environment.{name}_mb = {megabytes}; it is positive")
        return int(megabytes) << 20
    text = _value(path, table, f"environment.{name}", str, "")
    if not text:
        return default
    match = SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * UNITS[match[2].upper()]) if match else 0
    if not 0 < size <= LARGEST:
        raise InstanceError(f"task {path.name}: task.toml has environment.{name} = {text!r}; write a size such as 2G")
    return size


def _variables(path: Path, verifier: Mapping[str, Any]) -> dict[str, str]:
    variables = _value(path, verifier, "verifier.env", dict, {})
    for name, value in variables.items():
        if not VARIABLE.fullmatch(name) or "\0" in str(value):
            raise InstanceError(f"task {path.name}: verifier.env {name!r} = {value!r} is no environment variable")
        if not isinstance(value, str) or "${" in value:
            raise InstanceError(
                f"task {path.name}: verifier.env {name} = {value!r} needs a value of the host; only text is passed on"
            )
    return dict(variables)


def own(split: str) -> list[Path]:
    """Return our task folders of a split."""
    return [OWN / name for name in (TRAIN if split == "train" else TEST)]


def official(data: str | os.PathLike[str] | None) -> list[Path]:
    """Return the task folders below `data` or `$TERMINAL_DATA`, sorted. Raises InstanceError if there are none."""
    root = data or os.environ.get("TERMINAL_DATA")
    if not root:
        raise InstanceError(f"the split official of lmgym/Terminal-v0 needs task folders in Harbor's layout: {WHERE}")
    if not Path(root).is_dir():
        raise InstanceError(f"{root} is no folder: {WHERE}")
    return _below(Path(root))


@cache
def _below(root: Path) -> list[Path]:
    patterns = ["/".join(["*"] * depth + ["task.toml"]) for depth in range(DEEPEST + 1)]
    folders = [path.parent for pattern in patterns for path in root.glob(pattern)]
    if not folders:
        raise InstanceError(f"{root} has no task folder with a task.toml: {WHERE}")
    return sorted(folders, key=lambda path: (path.name, path))
