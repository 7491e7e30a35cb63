"""The folder of an evaluation as a submission reads it: episodes, settings, and a policy's name that tells no path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lmgym.board.entry import PolicyRecord
from lmgym.errors import SubmissionError
from lmgym.rollout import episodes
from lmgym.types import Trajectory

Kind = Literal["model", "script", "oracle", "random", "null", "human"]
SETTINGS = (
    "seed",
    "temperature",
    "max_tokens",
    "context",
    "tools",
    "prompt",
    "seats",
    "request",
)  # what an entry keeps
OF_TASK: Mapping[str, Kind] = {"oracle": "oracle", "random": "random", "null": "null", "human": "human"}
MODELS = ("tiny", "tiny-vl", "hf", "http", "https", "anthropic", "litellm", "run")


@dataclass(frozen=True)
class RunFolder:
    """What an evaluation left."""

    root: Path
    policy: str  # the string that makes it
    settings: Mapping[str, Any] = field(default_factory=dict)

    def trajectories(self) -> Iterator[Trajectory]:
        """All episodes, seat by seat."""
        return episodes.read(self.root / "episodes.jsonl")

    def kept(self) -> dict[str, Any]:
        """Settings that an entry states; those that are off are left out, and policies told without path and host."""
        kept = {name: self.settings[name] for name in SETTINGS if self.settings.get(name) not in (None, {}, [])}
        if "seats" in kept:
            kept["seats"] = {seat: public_name(str(policy)) for seat, policy in kept["seats"].items()}
        return kept

    def user(self) -> str | None:
        """Who played the other seats."""
        seats = self.settings.get("seats") or {}
        return "; ".join(f"{seat}: {public_name(str(policy))}" for seat, policy in sorted(seats.items())) or None


def read(root: Path) -> RunFolder:
    """The folder of a run. Raises SubmissionError where it is none."""
    if not (root / "episodes.jsonl").is_file():
        raise SubmissionError(f"{root} is no run: it has no episodes.jsonl; make one by: lmgym eval TASK --standard")
    report, facts = (_read(root / name) for name in ("report.json", "run.json"))
    policy = facts.get("policy") or report.get("policy")
    if isinstance(policy, dict):
        policy = policy.get("name")
    if not isinstance(policy, str):
        raise SubmissionError(f"{root} does not say which policy played; its report.json or run.json is missing")
    settings = facts.get("settings") or {"seed": report.get("seed", 0)}
    return RunFolder(root, policy, settings)


def public_name(policy: str) -> str:
    """The name of a policy without the path or host it has on one machine: `hf:runs/x/policy` is `hf:x`."""
    kind, _, rest = policy.partition(":")
    if not rest and "/" in policy:  # the folder of a run
        kind, rest = "run", policy
    if kind in ("http", "https"):
        model = rest.partition("#")[2]
        if model.startswith(("/", "~", ".")):  # vLLM calls a model by its folder, where nobody names it
            model = Path(model).name
        return f"endpoint: {_words(model) or 'unnamed'}"
    if kind not in ("hf", "run", "cmd"):
        return _words(policy)
    if kind == "cmd":
        return f"cmd: {_words(Path(rest.split()[0]).name) if rest.strip() else 'unnamed'}"
    parts = [part for part in Path(rest).parts if part not in ("/", ".", "..", "~", "runs", "policy", "checkpoints")]
    hub = len(Path(rest).parts) == 2 and not Path(rest).exists()
    return f"{kind}: {_words('/'.join(parts) if hub else parts[-1] if parts else 'unnamed')}"


def kind_of(policy: str) -> Kind:
    """What a policy is."""
    kind = policy.partition(":")[0].partition("?")[0]
    return "model" if kind in MODELS or "/" in kind else OF_TASK.get(kind, "script")


def check_policy(stated: PolicyRecord, model: str) -> None:
    """Raise SubmissionError where `model` is not the policy that an entry states; its host or folder may be another."""
    if (kind_of(model), public_name(model)) != (stated.kind, stated.name):
        raise SubmissionError(
            f"the entry's policy is {stated.name} ({stated.kind}); --model is {public_name(model)} ({kind_of(model)})"
        )


def check_unguided(policy: Any) -> Any:
    """Return a local policy whose answers follow from its weights alone; SubmissionError if a critic guides it."""
    if policy.adjust is not None:
        raise SubmissionError(f"{policy.name} is guided by a critic besides its weights, which an entry cannot state")
    return policy


def slug(policy: str) -> str:
    """A name for the entry of a policy."""
    return re.sub(r"[^a-z0-9]+", "-", public_name(policy).lower()).strip("-")[:48].strip("-") or "unnamed"


def _words(text: str) -> str:
    return re.sub(r"[^\w./?=+:-]", " ", text).strip()


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SubmissionError(f"{path} is damaged: {error}") from error
    return found if isinstance(found, dict) else {}
