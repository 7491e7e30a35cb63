"""Policies by model string, the folders of training runs (`run:FOLDER`) included."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import PolicyError
from lmgym.evaluation.policies import default_max_tokens, kind_of, run_folder
from lmgym.policy import load
from lmgym.policy.select import selection_of
from lmgym.train import algorithms

if TYPE_CHECKING:
    from lmgym.policy.base import Policy
    from lmgym.policy.local.policy import LocalPolicy
    from lmgym.train.recipe import Recipe


def load_policy(
    model: str, temperature: float, seed: int, *, max_tokens: int | None = None, top_p: float = 1.0, top_k: int = 0
) -> Policy:
    """Load the policy that `model` names; `top_p` and `top_k` apply to local models only."""
    if (selection := selection_of(model)) is not None:
        tried = load_policy(selection.model, temperature, seed, max_tokens=max_tokens, top_p=top_p, top_k=top_k)
        return selection.select(tried, temperature=temperature)
    max_tokens = max_tokens or default_max_tokens(model)
    if kind_of(model) == "remote":
        from lmgym.policy.endpoints.calls import RequestOptions

        return load.load_remote(model, request=RequestOptions(temperature=temperature, max_tokens=max_tokens))
    if kind_of(model) == "scripted":
        return load.load_policy(model, seed=seed)
    try:
        from lmgym.policy.local.sampling import Sampling
    except ModuleNotFoundError as error:
        raise PolicyError(f"{model} needs {error.name}: pip install 'lmgym[train]'") from error
    sampling = Sampling(temperature=temperature, top_p=top_p, top_k=top_k, max_tokens=max_tokens, seed=seed)
    folder = run_folder(model)
    return (
        load.load_policy(model, seed=seed, sampling=sampling) if folder is None else load_run(folder, sampling=sampling)
    )


def load_run(folder: Path, **options: Any) -> LocalPolicy:
    """Load the final policy of a training run, or its last checkpoint if the run has not finished.

    The policy stops at the recipe's stop strings. If the run's last evaluation was guided by a critic (MC, ILQL), the
    critic is restored from the checkpoint and guides this policy too; it then samples in the run's precision, so that
    the episodes of that evaluation are reproduced.
    """
    from lmgym.policy.local.lora import adapt

    arguments = _arguments(folder)
    guided, finished = is_guided(arguments.get("algorithm")), (folder / "policy").is_dir()
    if finished and not guided:
        return _with_stop(load.load_local(f"hf:{folder / 'policy'}", **options), arguments)
    from lmgym.train import checkpoint

    try:
        model, seed, rank = str(arguments["policy"]), int(arguments["seed"]), arguments.get("lora")
    except (ValueError, KeyError, TypeError) as error:
        raise PolicyError(f"{folder} is not a training run: its run.json names no policy and seed") from error
    saved = checkpoint.load(folder / "checkpoints")
    if saved is None and finished:
        raise PolicyError(
            f"{folder}/checkpoints, which held the critic, is missing; "
            f"hf:{folder / 'policy'} is the policy without the critic's guidance"
        )
    if saved is None:
        raise PolicyError(f"{folder} has neither a policy nor a checkpoint yet")
    policy = load.load_local(model, **{**options, "seed": seed}, dtype=arguments.get("dtype") if guided else None)
    if rank is not None:
        adapt(policy.model, rank=rank, seed=seed)
    policy.hold_in_fp32()
    policy.model.load_state_dict(saved["model"])
    policy.name = f"run:{folder}"
    if guided and saved["learner"]["critic"] is not None:
        _guide(policy, folder, arguments, saved["learner"]["critic"])
    return _with_stop(policy, arguments)


def is_guided(algorithm: object) -> bool:
    """Return True if the algorithm's last evaluation plays by its critic, so that its policy alone is not evaluated."""
    if algorithm not in algorithms.algorithms():
        return False
    module = algorithms.load(str(algorithm))
    needs = module.recipe(module.Args()).stages[-1].needs()
    return bool(needs.guidance)


def _arguments(folder: Path) -> dict[str, Any]:
    """Return the arguments recorded in `run.json`; empty if there are none."""
    try:
        arguments = json.loads((folder / "run.json").read_text(encoding="utf-8"))["arguments"]
    except (ValueError, KeyError, TypeError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _recipe(arguments: dict[str, Any]) -> Recipe:
    """Return the recipe that a run was started with."""
    module = algorithms.load(arguments["algorithm"])
    names = {field.name for field in fields(module.Args)}
    recipe: Recipe = module.recipe(module.Args(**{name: arguments[name] for name in arguments if name in names}))
    return recipe


def _with_stop(policy: LocalPolicy, arguments: dict[str, Any]) -> LocalPolicy:
    """Set the stop strings of the run's recipe."""
    if arguments.get("algorithm") in algorithms.algorithms() and (stop := _recipe(arguments).stop):
        policy.sampling = replace(policy.sampling, stop=stop)
    return policy


def _guide(policy: LocalPolicy, folder: Path, arguments: dict[str, Any], weights: dict[str, Any]) -> None:
    """Restore the run's critic and let it guide the policy's sampling."""
    from lmgym.train.services import Services
    from lmgym.train.state import InstancePool, RunConfig
    from lmgym.train.token_critic import TokenCritic

    recipe = _recipe(arguments)
    assert recipe.critic is not None, "guidance comes from a critic"
    with ExitStack() as opened:
        services = Services(
            policy,
            InstancePool(task=str(arguments["task"]), size=1, seed=int(arguments["seed"])),
            folder=folder,
            config=RunConfig(),
            context=recipe.context,
            temperature=recipe.temperature,
            opened=opened,
        )
        critic = recipe.critic(services)
    assert isinstance(critic, TokenCritic), "only token critics guide sampling"
    critic.load_state_dict(weights)
    critic.guide_on(policy)
