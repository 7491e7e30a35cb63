"""The folder of an evaluation as a submission reads it: episodes, settings, and policy names without paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmgym.board.entry import EntrySettings, PolicyKind
from lmgym.errors import SubmissionError
from lmgym.evaluation.record import EPISODES, FACTS, read_facts
from lmgym.policy.load import LOCAL, REMOTE
from lmgym.policy.select import model_of, selection_of
from lmgym.rollout import episodes
from lmgym.types import FIRST_SEAT, Trajectory

SCRIPTED: Mapping[str, PolicyKind] = {"oracle": "oracle", "random": "random", "null": "null", "human": "human"}
MODELS = {*LOCAL, *REMOTE, "run"} - {"cmd"}


@dataclass(frozen=True)
class RunFolder:
    """The result of an evaluation on disk."""

    root: Path
    policy: str  # policy string
    settings: Mapping[str, Any]

    def trajectories(self) -> Iterator[Trajectory]:
        """Yield the trajectories of all episodes and seats.

        A policy that chooses among its tries has no ids here, like an endpoint: the chosen ids are no sample of its
        model, and their number is not that of all tries, which the usage has.
        """
        recorded = episodes.read(self.root / EPISODES)
        return recorded if model_of(self.policy) == self.policy else map(_without_ids, recorded)

    def entry_settings(self) -> dict[str, Any]:
        """Return the settings that an entry states: those in use, with public names of policies."""
        names = EntrySettings.__struct_fields__
        kept = {name: self.settings[name] for name in names if self.settings.get(name) not in (None, {}, [])}
        if kept.get("answers") == "plain":
            del kept["answers"]
        if "seats" in kept:
            kept["seats"] = {seat: public_name(str(policy)) for seat, policy in kept["seats"].items()}
        return kept

    def user(self) -> str | None:
        """Return the public names of the policies in the other seats."""
        seats = self.settings.get("seats") or {}
        return "; ".join(f"{seat}: {public_name(str(policy))}" for seat, policy in sorted(seats.items())) or None


def read(root: Path) -> RunFolder:
    """Read the folder of an evaluation. Raises SubmissionError where `root` is none."""
    for name in (EPISODES, FACTS):
        if not (root / name).is_file():
            raise SubmissionError(f"{root} has no {name}: it is not the folder of an lmgym eval TASK --standard")
    facts = read_facts(root)
    return RunFolder(root, facts["policy"], facts["settings"])


def public_name(policy: str) -> str:
    """Return the name of a policy without path and host: `hf:runs/x/policy` becomes `hf: x`."""
    if (selection := selection_of(policy)) is not None:
        return f"{selection.kind}:{selection.tries} of {public_name(selection.model)}"
    kind, _, rest = policy.partition(":")
    if not rest and "/" in policy:  # the folder of a run
        kind, rest = "run", policy
    if kind in ("http", "https"):
        model = rest.partition("#")[2]
        if model.startswith(("/", "~", ".")):  # vLLM names a model by its folder unless told otherwise
            model = Path(model).name
        return f"endpoint: {_plain(model) or 'unnamed'}"
    if kind not in ("hf", "run", "cmd"):
        return _plain(policy)
    if kind == "cmd":
        return f"cmd: {_plain(Path(rest.split()[0]).name) if rest.strip() else 'unnamed'}"
    parts = [part for part in Path(rest).parts if part not in ("/", ".", "..", "~", "runs", "policy", "checkpoints")]
    hub = len(Path(rest).parts) == 2 and not Path(rest).exists()
    return f"{kind}: {_plain('/'.join(parts) if hub else parts[-1] if parts else 'unnamed')}"


def kind_of(policy: str) -> PolicyKind:
    """Return the kind of a policy by its policy string; one that chooses is of its model's kind."""
    kind = model_of(policy).partition(":")[0].partition("?")[0]
    return "model" if kind in MODELS or "/" in kind else SCRIPTED.get(kind, "script")


def slug(policy: str) -> str:
    """Return an entry's name for a policy."""
    return re.sub(r"[^a-z0-9]+", "-", public_name(policy).lower()).strip("-")[:48].strip("-") or "unnamed"


def _without_ids(trajectory: Trajectory) -> Trajectory:
    """Return the agent's trajectory without token ids; that of another seat as it is."""
    if trajectory.seat != FIRST_SEAT:
        return trajectory
    turns = [
        replace(turn, completion=replace(turn.completion, prompt_ids=(), ids=(), logprobs=(), entropy=(), fresh=True))
        for turn in trajectory.turns
    ]
    return replace(trajectory, turns=tuple(turns))


def _plain(text: str) -> str:
    return re.sub(r"[^\w./?=+:-]", " ", text).strip()
