"""Policies by what a command line says: those of `lmgym.policy.load`, and those of our own runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import PolicyError, SubmissionError
from lmgym.policy.load import REMOTE, load_policy, load_remote

if TYPE_CHECKING:
    from lmgym.policy.base import Policy
    from lmgym.policy.local.policy import LocalPolicy
    from lmgym.train.recipe import Recipe

LOCAL_ANSWER = 32  # tokens of an answer, where nobody says: what Sampling has
REMOTE_ANSWER = 2048  # the same of an endpoint


def kind_of(model: str) -> str:
    """How a policy is computed: remote, local, or scripted."""
    kind = model.partition(":")[0].partition("?")[0]
    if kind in REMOTE:
        return "remote"
    return "local" if kind in ("tiny", "tiny-vl", "hf") or run_folder(model) is not None else "scripted"


def answer_of(model: str) -> int:
    """Tokens of an answer at most, where nobody says."""
    return REMOTE_ANSWER if kind_of(model) == "remote" else LOCAL_ANSWER


def load_here(
    model: str, temperature: float, seed: int, *, max_tokens: int | None = None, top_p: float = 1.0, top_k: int = 0
) -> Policy:
    """Any policy, by what a command says; `top_p` and `top_k` are of a local one."""
    if kind_of(model) == "remote":
        from lmgym.policy.endpoints.openai import Asking

        asking = Asking(temperature=temperature, max_tokens=max_tokens or REMOTE_ANSWER)
        return load_remote(model, asking=asking)
    if kind_of(model) == "scripted":
        return load_policy(model, seed=seed)
    try:
        from lmgym.policy.local.sampling import Sampling
    except ModuleNotFoundError as error:
        raise PolicyError(f"{model} needs {error.name}: pip install 'lmgym[train]'") from error
    limit = max_tokens or LOCAL_ANSWER
    sampling = Sampling(temperature=temperature, top_p=top_p, top_k=top_k, max_tokens=limit, seed=seed)
    folder = run_folder(model)
    return load_policy(model, seed=seed, sampling=sampling) if folder is None else load_run(folder, sampling=sampling)


def check_tools(policy: LocalPolicy) -> None:
    """Raise PolicyError where a model's chat template leaves out the tools that it is given."""
    from lmgym.policy.base import Conversation
    from lmgym.policy.tools import wrapped
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
    """The policy that a run ended with, or that of its last checkpoint where it has not ended.

    It stops where the run's answers did. Where the run's last evaluation plays by values (MC, ILQL), they guide this
    policy, too: its checkpoint has them. It samples in the run's precision then, so that the episodes of that
    evaluation are played again.
    """
    from lmgym.policy.load import load_local
    from lmgym.policy.local.lora import adapt

    begun = _arguments(folder)
    guides, ended = values_guide(begun.get("algorithm")), (folder / "policy").is_dir()
    if ended and not guides:
        return _stopping(load_local(f"hf:{folder / 'policy'}", **more), begun)
    from lmgym.train import checkpoint

    try:
        name, seed, rank = str(begun["policy"]), int(begun["seed"]), begun.get("lora")
    except (ValueError, KeyError, TypeError) as error:
        raise PolicyError(f"{folder} is no training run: its run.json names no policy to go on from") from error
    saved = checkpoint.load(folder / "checkpoints")
    if saved is None and ended:
        raise PolicyError(f"the values of {folder} were in its checkpoints/; hf:{folder / 'policy'} is without them")
    if saved is None:
        raise PolicyError(f"{folder} has neither a policy nor a checkpoint yet")
    policy = load_local(name, **{**more, "seed": seed}, dtype=begun.get("dtype") if guides else None)
    if rank is not None:
        adapt(policy.model, rank=rank, seed=seed)
    policy.model.load_state_dict(saved["model"])
    policy.name = f"run:{folder}"
    if guides and saved["learner"]["critic"] is not None:
        _guide(policy, folder, begun, saved["learner"]["critic"])
    return _stopping(policy, begun)


def values_guide(algorithm: object) -> bool:
    """Whether the last evaluation of a baseline plays by its critic: its policy alone is not what was evaluated."""
    from lmgym.cli.train import baselines
    from lmgym.train.recipe import Evaluate

    if algorithm not in baselines():
        return False
    module = import_module(f"lmgym.baselines.{algorithm}")
    last = module.recipe(module.Args()).stages[-1]
    return isinstance(last, Evaluate) and last.by == "critic"


def unguided(policy: LocalPolicy) -> LocalPolicy:
    """The policy, where its weights are all there is to it. Raises SubmissionError for one that values guide."""
    if policy.adjust is not None:
        raise SubmissionError(f"{policy.name} answers by values beside its weights, which an entry cannot state")
    return policy


def _arguments(folder: Path) -> dict[str, Any]:
    """What a run was begun with, as far as it says so."""
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))["arguments"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _recipe(begun: dict[str, Any]) -> Recipe:
    """The recipe of a baseline as a run has it."""
    module = import_module(f"lmgym.baselines.{begun['algorithm']}")
    known = {each.name for each in fields(module.Args)}
    recipe: Recipe = module.recipe(module.Args(**{name: value for name, value in begun.items() if name in known}))
    return recipe


def _stopping(policy: LocalPolicy, begun: dict[str, Any]) -> LocalPolicy:
    """The policy with the words that end an answer in the recipe of its run."""
    from lmgym.cli.train import baselines

    if begun.get("algorithm") in baselines() and (stop := _recipe(begun).stop):
        policy.sampling = replace(policy.sampling, stop=stop)
    return policy


def _guide(policy: LocalPolicy, folder: Path, begun: dict[str, Any], values: dict[str, Any]) -> None:
    """Have the policy answer as the critic of its run would have it."""
    from lmgym.train.recipe import InstancePool
    from lmgym.train.services import Services
    from lmgym.train.state import RunConfig
    from lmgym.train.token_critic import TokenCritic

    recipe = _recipe(begun)
    assert recipe.critic is not None, "values are a critic's"
    with ExitStack() as opened:
        services = Services(
            policy,
            InstancePool(task=str(begun["task"]), size=1, seed=int(begun["seed"])),
            folder=folder,
            config=RunConfig(),
            context=recipe.context,
            temperature=recipe.temperature,
            opened=opened,
        )
        critic = recipe.critic(services)
    assert isinstance(critic, TokenCritic), "other critics judge answers and guide none"
    critic.load_state_dict(values)
    critic.guide_on(policy)
