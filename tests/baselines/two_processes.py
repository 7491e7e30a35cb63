"""The program that test_seats_stores_forks.py starts by `torchrun`: each recipe whole, then killed and resumed."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import torch

from lmgym.env import registry
from lmgym.policy.local.policy import LocalPolicy
from lmgym.train import algorithms, curve, loop
from lmgym.train.ranks import ranks
from tests.train.chain import SPEC, chain_policy
from tests.train.interrupted import interrupted
from tests.train.small_tasks import TWICE
from tests.train.victim import toy_policy

BEGUN = {"warmup": 1, "warmup_episodes": 4, "evaluate": 2, "autocast": False, "minibatches": 1}
GROUPS = {**BEGUN, "instances": 4, "group": 4}
CASES = {
    "epo_adviser": ("lmgym/ALFWorldAdvised-v0", {"max_turns": 3}, {**BEGUN, "instances": 4}),
    "mars": ("lmgym/KuhnPoker-v0", {}, GROUPS),
    "spear": (SPEC.id, {}, {**GROUPS, "void": False, "bonus": 0.2}),
    "arpo": (SPEC.id, {}, {**GROUPS, "roots": 2, "budget": 5}),
    "zhongjing": (TWICE.id, {}, {**BEGUN, "instances": 4, "pairs": 24, "reward_steps": 2, "critic_steps": 1}),
}
NAMES = tuple(CASES)


def train(name: str, folder: Path, resume: bool = False, *, steps: int = 3) -> LocalPolicy:
    """The policy after a short run of a recipe that drops no episode."""
    task, options, args = CASES[name]
    module = algorithms.load(name)
    recipe = replace(module.recipe(module.Args(**args, steps=steps)), filter=[], max_tokens=4)
    policy = chain_policy() if task in (SPEC.id, TWICE.id) else toy_policy()
    more = {"lockstep": True, "save_seconds": 0.0, "train_instances": 8, "quiet": True, "keep_episodes": range(9)}
    loop.run(recipe, policy, task=task, options=options, folder=folder, resume=resume, **more)
    return policy


def main(folder: Path) -> None:
    """Write what this process found into `folder`."""
    torch.set_num_threads(1)
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC, TWICE.id: TWICE})
    registry.specs = lambda: known
    curve.draw = lambda folder: folder
    state = {}
    for name in NAMES:
        policy = train(name, folder / f"{name} whole")
        deaths = interrupted(partial(train, name, folder / f"{name} cut"))
        state[name] = {"weights": policy.model.state_dict(), "deaths": deaths}
    torch.save(state, folder / f"{ranks().rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
