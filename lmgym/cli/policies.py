"""Policies by what a command line says: those of `lmgym.policy.load`, and those of our own runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import PolicyError
from lmgym.policy.load import REMOTE, load_policy

if TYPE_CHECKING:
    from lmgym.policy.base import Policy
    from lmgym.policy.local import LocalPolicy

LOCAL_ANSWER = 32  # tokens of an answer, where nobody says: what Sampling has


def kind_of(model: str) -> str:
    """How a policy is computed: remote, local, or scripted."""
    kind = model.partition(":")[0].partition("?")[0]
    if kind in REMOTE:
        return "remote"
    return "local" if kind in ("tiny", "tiny-vl", "hf") or run_folder(model) is not None else "scripted"


def load_here(model: str, temperature: float, seed: int, *, max_tokens: int = LOCAL_ANSWER) -> Policy:
    """A local or scripted policy."""
    if kind_of(model) == "scripted":
        return load_policy(model, seed=seed)
    try:
        from lmgym.policy.sampling import Sampling
    except ModuleNotFoundError as error:
        raise PolicyError(f"{model} needs {error.name}: pip install 'lmgym[train]'") from error
    sampling = Sampling(temperature=temperature, max_tokens=max_tokens, seed=seed)
    folder = run_folder(model)
    return load_policy(model, seed=seed, sampling=sampling) if folder is None else load_run(folder, sampling=sampling)


def check_tools(policy: LocalPolicy) -> None:
    """Raise PolicyError where a model's chat template leaves out the tools that it is given."""
    from lmgym.policy.base import Conversation
    from lmgym.policy.words import wrapped
    from lmgym.types import Message

    asked = (Message(role="user", text="?"),)
    probe = tuple(wrapped([{"name": "probe", "description": "probe", "parameters": {"type": "object"}}]))
    told, untold = (policy.prompt(Conversation(messages=asked, tools=tools))[0] for tools in (probe, ()))
    if told == untold:
        raise PolicyError(f"the chat template of {policy.name} shows no tools: offer them in words, --tools text")


def run_folder(model: str) -> Path | None:
    """The folder of the run that `model` names; None where it names something else."""
    folder = Path(model.removeprefix("run:"))
    if model.startswith("run:") or (folder.is_dir() and (folder / "run.json").is_file()):
        if not (folder / "run.json").is_file():
            raise PolicyError(f"{folder} is no run: it has no run.json; see lmgym train")
        return folder
    return None


def load_run(folder: Path, **more: Any) -> LocalPolicy:
    """The policy that a run ended with, or that of its last checkpoint where it has not ended."""
    from lmgym.policy.load import load_local

    if (folder / "policy").is_dir():
        return load_local(f"hf:{folder / 'policy'}", **more)
    from lmgym.train import checkpoint

    try:
        begun = json.loads((folder / "run.json").read_text(encoding="utf-8"))["arguments"]
        name, seed = str(begun["policy"]), int(begun["seed"])
    except (ValueError, KeyError, TypeError) as error:
        raise PolicyError(f"{folder} is no training run: its run.json names no policy to go on from") from error
    saved = checkpoint.load(folder / "checkpoints")
    if saved is None:
        raise PolicyError(f"{folder} has neither a policy nor a checkpoint yet")
    policy = load_local(name, **{**more, "seed": seed})
    policy.model.load_state_dict(saved["model"])
    policy.name = f"run:{folder}"
    return policy
