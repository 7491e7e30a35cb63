"""Policies of an evaluation: kinds of model strings, and the policies of all seats, built from the settings alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmgym.errors import PolicyError
from lmgym.evaluation.settings import Settings
from lmgym.policy.base import Policy
from lmgym.policy.load import LOCAL, REMOTE, TRUST
from lmgym.policy.select import model_of, selection_of
from lmgym.rollout.answers import AnswerFormat, action_of
from lmgym.rollout.episode_state import SeatConfig
from lmgym.types import FIRST_SEAT

if TYPE_CHECKING:
    from lmgym.policy.endpoints.calls import RequestOptions
    from lmgym.policy.endpoints.remote import RemotePolicy

MAX_TOKENS = {"remote": 2048, "local": 32, "scripted": 32}  # of an answer, unless set
TALKING_TOKENS = 256  # least limit of an answer of a local model that explains itself
WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf"}
LOADED = WEIGHTS | {".json", ".jinja", ".model", ".txt", ".py"}  # with settings, tokenizers and code
BLOCKS, BLOCK = 64, 1 << 16  # parts of a file that stand for it, and their bytes

Connect = Callable[[str, "RequestOptions"], "RemotePolicy"]  # opens an endpoint or a program
LoadPolicy = Callable[..., Policy]  # (model, temperature, seed, *, max_tokens): `lmgym.train.load.load_policy`


@dataclass(kw_only=True)
class Policies:
    """The policies of a run; remote ones hold connections until they are closed."""

    agent: Policy
    seats: Mapping[str, SeatConfig] = field(default_factory=dict)
    remote: list[RemotePolicy] = field(default_factory=list)

    def close(self) -> None:
        """Close connections and programs."""
        for policy in self.remote:
            policy.close()


def kind_of(model: str) -> Literal["remote", "local", "scripted"]:
    """Return how the policy that a model string names is computed; one that chooses is computed as its model is."""
    model = model_of(model)
    kind = model.partition(":")[0].partition("?")[0]
    if kind in REMOTE:
        return "remote"
    return "local" if kind in LOCAL or run_folder(model) is not None else "scripted"


def run_folder(model: str) -> Path | None:
    """Return the folder of the training run that `model` names; None if it names no run."""
    folder = Path(model.removeprefix("run:"))
    if (folder / "run.json").is_file():
        return folder
    if model.startswith("run:"):
        raise PolicyError(f"{folder} is not a run: it has no run.json; see lmgym train")
    return None


def weights_state(model: str) -> str | None:
    """Return a digest of the files that a local model is loaded from; None if it has none.

    It reads names, sizes and BLOCKS evenly spaced parts of each file, so a copy has the same digest and a large model
    is read in little time.
    """
    model = model_of(model)
    if (run := run_folder(model)) is not None:
        folder = run / "policy" if (run / "policy").is_dir() else run / "checkpoints"
    elif model.startswith("hf:"):
        folder = Path(model.removeprefix("hf:").removesuffix(TRUST))
    else:
        return None
    digest = hashlib.sha256()
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in LOADED and path.is_file()]
    for path in files:
        digest.update(f"{path.relative_to(folder)} {(size := path.stat().st_size)}\n".encode())
        with path.open("rb") as file:
            for start in range(0, size, max(BLOCK, size // BLOCKS)):
                file.seek(start)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:16] if files else None


def talks(model: str) -> bool:
    """Return True if a model string names a model that was trained to converse, so that it explains what it does.

    These are endpoints of language models, smollm2 and hf: models except those that a training run saved.
    """
    model = model_of(model)
    kind = model.partition(":")[0]
    if kind == "hf":
        return not (Path(model.removeprefix("hf:")).parent / "run.json").is_file()
    return kind == "smollm2" or (kind in REMOTE and kind != "cmd")


def default_max_tokens(model: str, *, least: int = 0) -> int:
    """Return the limit of tokens in an answer for a model string without one: that of its training run, if it has one.

    `least` is what the task needs of a local model.
    """
    folder, kind = run_folder(model_of(model)), kind_of(model)
    if folder is not None:
        arguments = json.loads((folder / "run.json").read_text(encoding="utf-8")).get("arguments", {})
        if isinstance(limit := arguments.get("max_tokens"), int):
            return limit
    return max(MAX_TOKENS[kind], least if kind == "local" else 0)


def build_policies(
    model: str,
    settings: Settings,
    connect: Connect,
    load: LoadPolicy,
    local: dict[str, Policy],
    *,
    key: str | None = None,
) -> Policies:
    """Build the policies of all seats; `local` keeps local ones for the next task.

    `key` names the variable of the agent's API key; other seats, maybe at other hosts, have those of their addresses.
    Everything that the policies depend on is in `settings`, so that a later run can build the same ones.
    """
    from lmgym.policy.endpoints.calls import RequestOptions

    max_tokens = settings.max_tokens or default_max_tokens(model)
    remote: list[RemotePolicy] = []

    def build(name: str, limit: int, answers: AnswerFormat = "plain", *, key: str | None = None) -> Policy:
        if (selection := selection_of(name)) is not None:
            tried, action = build(selection.model, limit, key=key), partial(action_of, answers=answers)
            return selection.select(tried, temperature=settings.temperature, action=action)
        if kind_of(name) == "remote":
            request = RequestOptions(
                temperature=settings.temperature, max_tokens=limit, extra=settings.request, key_variable=key
            )
            remote.append(connect(name, request))
            return remote[-1]
        if name not in local:
            temperature = 1.0 if settings.temperature is None else settings.temperature
            local[name] = load(name, temperature, settings.seed, max_tokens=limit)
        return local[name]

    try:
        agent = build(model, max_tokens, settings.answers, key=key)
        seats = {FIRST_SEAT: SeatConfig(policy=agent, answers=settings.answers)}
        if kind_of(model) != "scripted":  # a player or an object plays as it is
            seats[FIRST_SEAT] = replace(seats[FIRST_SEAT], tools=settings.tools, max_tokens=max_tokens)
        others = "text" if settings.tools == "text" else "native"
        for seat, name in settings.seats.items():
            limit = settings.seat_max_tokens.get(seat, max_tokens)
            seats[seat] = SeatConfig(policy=build(name, limit), trained=False, tools=others, max_tokens=limit)
        return Policies(agent=agent, seats=seats, remote=remote)
    except BaseException:
        for policy in remote:
            policy.close()
        raise


def check_template(policy: Policy) -> None:
    """Raise PolicyError if a local model's chat template ignores the tools it is given."""
    from lmgym.policy.local.policy import LocalPolicy

    if isinstance(policy, LocalPolicy) and not policy.template.shows_tools:
        raise PolicyError(f"the chat template of {policy.name} shows no tools: offer them in words, --tools text")
