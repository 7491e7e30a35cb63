"""What `torchrun` runs in test_ranks.py: a gradient, then a short run; results go to a file of the process."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import torch

from lmgym.baselines import bc, grpo
from lmgym.env import registry
from lmgym.train import loop
from lmgym.train.parts.losses import nll
from lmgym.train.ranks import ranks
from lmgym.train.recipe import Optimiser, Term
from lmgym.train.schedule import Progress
from lmgym.train.update import Updater
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy
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
    updater.update(batch(), Progress(0, 0.0), seed=(0,))
    return found[0]


def main(folder: Path) -> None:
    """Write the gradients and what a run came to."""
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
    state = {
        "gradients": gradients,
        "weights": policy.model.state_dict(),
        "outcomes": [[o.index for o in report.outcomes] for report in result.reports.values()],
    }
    torch.save(state, folder / f"{ranks().rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
