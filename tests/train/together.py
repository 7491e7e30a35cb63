"""The program that test_ranks.py starts by `torchrun`: gradients, then short runs; each process writes a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import torch
from torch import nn

from lmgym.baselines import archer, bc, grpo, ilql, ppo
from lmgym.baselines.recipes import spear
from lmgym.env import registry
from lmgym.policy.local.policy import LocalPolicy
from lmgym.rollout.planner import Group, Planner
from lmgym.train import loop, source
from lmgym.train.collate import collate
from lmgym.train.interfaces import Optimiser, Parts, Term
from lmgym.train.learner import Learner
from lmgym.train.parts.losses import nll
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.value import ValueCritic, ValueSpec
from lmgym.train.ranks import ranks
from lmgym.train.schedule import StageProgress
from lmgym.train.services import Services
from lmgym.train.state import InstancePool, RunConfig
from lmgym.train.update import Updater, logprobs_of
from lmgym.types import Job
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy
from tests.train.interrupted import interrupted
from tests.train.toys import gradient, scorer, toy_model

LENGTHS = [3, 9, 17, 5, 2]  # of the rows: no two processes get as many tokens
ARGS = grpo.Args(warmup=2, warmup_episodes=4, steps=3, instances=4, group=3, evaluate=6, lr=1e-2, autocast=False)
IMITATION = {"optimiser": "adamw", "interject": 0.0, "autocast": False, "minibatches": 1}


def batch():
    """Rows of unequal length, with two tokens before the first that is trained."""
    width = max(LENGTHS)
    inside = torch.arange(width) < torch.tensor(LENGTHS)[:, None]
    ids = torch.randint(1, 13, inside.shape, generator=torch.Generator().manual_seed(0))
    return make_batch((inside & (torch.arange(width) > 0)).tolist(), ids=ids, attention=inside)


def whole_gradient(aggregation: str) -> torch.Tensor:
    """The gradient of one optimiser step (N,), of all processes together."""
    model = toy_model()
    spec = Optimiser(lr=0.0, clip=0.0, micro_tokens=40)
    term = Term(loss=nll, aggregation=aggregation)
    updater = Updater(model, scorer(model), spec, [term], ranks=ranks())
    found: list[torch.Tensor] = []
    for optimiser in updater.optimisers:
        optimiser.register_step_pre_hook(lambda *_: found.append(gradient(model)))
    updater.update(batch(), StageProgress(0, 0.0), seed=(0,))
    return found[0]


VALUED = {"whiten": False, "critic": "network", "minibatches": 2, "critic_epochs": 1, "kl_reward": 0.1}
VALUING = ppo.Args(
    warmup=0, steps=4, critic_steps=2, instances=6, evaluate=4, lr=1e-2, autocast=False, rescore=True, **VALUED
)


def whole(net: nn.Module) -> torch.Tensor:
    """All gradients as one vector (N,), 0 where there is none."""
    grads = (torch.zeros_like(w) if w.grad is None else w.grad for w in net.parameters() if w.requires_grad)
    return torch.cat([grad.flatten() for grad in grads])


def awake(net: nn.Module) -> nn.Module:
    """The same net with heads that say something, so that gradients go through them."""
    for name, weight in sorted(net.named_parameters()):
        if weight.ndim == 2 and not weight.any():
            nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(len(name)))
    return net


def watched(optimiser: torch.optim.Optimizer, net: nn.Module, learn: Callable[[], object]) -> torch.Tensor:
    """The gradient of the first step of `learn`."""
    found: list[torch.Tensor] = []
    optimiser.register_step_pre_hook(lambda *_: found.append(whole(net)))
    learn()
    return found[0]


def of_critics(folder: Path) -> dict[str, torch.Tensor]:
    """Gradients of critics on the episodes of a toy policy; values and log-probs, which are shared out as well."""
    pool, here = InstancePool(task=SPEC.id, size=1000), StageProgress(0, 0.0)
    with ExitStack() as opened:
        services = Services(
            chain_policy(), pool, folder=folder, config=RunConfig(), context=None, temperature=1.0, opened=opened
        )
        episodes = source.played(services.engine(), services.policy, Uniform(11).draw(0, pool))
        episodes = [services.ended(each) for each in episodes]
        batch = collate(episodes, ends=True)
        assert len(set(batch.lengths.tolist())) > 1
        found: dict[str, torch.Tensor] = {}
        for place in ("head", "network"):
            quick = Optimiser(lr=0.0, clip=0.0, micro_tokens=80)
            value = ValueCritic(services, ValueSpec(place=place, optimiser=quick))
            awake(value.head)
            valued = value.value(batch)
            found[f"values of {place}"] = torch.stack([valued.value, valued.target])
            found[f"value {place}"] = watched(
                value.updater.optimisers[0], value.weights, partial(value.learn, valued, here, seed=(0,))
            )
        token = ilql.Implicit(services, ilql.Args(base="own", minibatches=1, bias=0.3, autocast=False))
        token.tokens, token.net.clip = 80, 0.0
        awake(token.net.online)
        found["ilql"] = watched(token.net.optimiser, token.net.online, partial(token.learn, batch, here, seed=(0,)))
        for encoder in ("small", "policy"):
            twins = archer.TwinCritic(services, archer.Args(encoder=encoder, hidden=8, autocast=False))
            twins.tokens, twins.net.clip = 80, 0.0
            turns = [twins.transition(each, n, now=(6, 1)) for each in episodes for n in range(len(each.turns))]
            frozen = twins.states(services.ranks.share(turns)) if encoder == "policy" else None
            every = torch.arange(len(turns))
            found[f"archer {encoder}"] = watched(
                twins.net.optimiser, twins.net.online, partial(twins._step, every, turns, frozen)
            )
            judged = twins.value(batch)
            found[f"judged by {encoder}"] = torch.stack([judged.value, judged.quality])
        shared = logprobs_of(batch, services.score, services.policy.device, tokens=80, ranks=services.ranks)
        said = services.sample([(each, 0) for each in episodes], noise=(3,))
        found |= {"log-probs": shared, "said": torch.tensor([each.turns[-1].completion.ids[0] for each in said])}
    return found


class Topping(Planner):
    """Adds tries until a group has five."""

    def after_group(self, group: Group) -> list[Job]:
        return group.tries(5 - len(group.jobs))


def of_groups(folder: Path) -> list[str]:
    """Ids of the episodes of five groups of three tries, and of the tries that a planner adds to each."""
    pool = InstancePool(task=SPEC.id, size=1000, stage="play")
    with ExitStack() as opened:
        services = Services(
            chain_policy(), pool, folder=folder, config=RunConfig(), context=None, temperature=1.0, opened=opened
        )
        episodes, abandoned = Learner(Parts(), services).play(Uniform(5, tries=3).draw(0, pool), Topping())
        assert abandoned == 0
    return [each.id for each in episodes]


def valuing(folder: Path, resume: bool = False) -> loop.RunResult:
    """A short run of PPO with a critic of its own."""
    return loop.run(
        ppo.recipe(VALUING),
        chain_policy(),
        task=SPEC.id,
        folder=folder,
        quiet=True,
        lockstep=True,
        save_seconds=0.0,
        resume=resume,
    )


def storing(folder: Path, resume: bool = False) -> LocalPolicy:
    """A policy after a short run of SPEAR, whose store joins the fresh episodes."""
    args = {"warmup": 0, "steps": 4, "instances": 4, "group": 4, "evaluate": 2, "bonus": 0.2, "ramp": 9, "void": False}
    recipe, policy = spear.recipe(spear.Args(**args, autocast=False, minibatches=1)), chain_policy()
    stages = [bc.sft(bc.Args(steps=4, episodes=8, **IMITATION)), *recipe.stages[1:]]
    recipe = replace(recipe, stages=stages)
    loop.run(recipe, policy, task=SPEC.id, folder=folder, quiet=True, lockstep=True, save_seconds=0.0, resume=resume)
    return policy


def main(folder: Path) -> None:
    """Write the gradients and what runs came to."""
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC})
    registry.specs = lambda: known
    gradients = {kind: whole_gradient(kind) for kind in ("token_mean", "seq_mean", "seq_sum")}
    policy = chain_policy()
    recipe = grpo.recipe(ARGS)
    before = bc.sft(bc.Args(steps=2, episodes=4, **IMITATION))
    stages = [before, *recipe.stages[1:]]
    result = loop.run(
        replace(recipe, stages=stages), policy, task=SPEC.id, folder=folder / "run", quiet=True, lockstep=True
    )
    valuing(folder / "whole")
    few = bc.recipe(bc.Args(steps=1, episodes=3, evaluate=1, **IMITATION))
    lonely = loop.run(few, chain_policy(), task=SPEC.id, folder=folder / "few", quiet=True, lockstep=True)
    state = {
        "gradients": gradients,
        "critics": of_critics(folder),
        "groups": of_groups(folder),
        "deaths": interrupted(lambda resume: valuing(folder / "cut", resume)),
        "weights": policy.model.state_dict(),
        "stored": storing(folder / "stored whole").model.state_dict(),
        "stored deaths": interrupted(lambda resume: storing(folder / "stored cut", resume)),
        "lonely": [report.state_dict() for report in lonely.reports.values()],
        "outcomes": [[o.index for o in report.outcomes] for report in result.reports.values()],
    }
    torch.save(state, folder / f"{ranks().rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
