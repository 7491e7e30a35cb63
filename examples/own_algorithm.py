"""Own algorithm as a recipe: GRPO whose advantages are the ranks of the returns within a group.

python examples/own_algorithm.py
"""

from __future__ import annotations

import sys
from dataclasses import replace

import torch
from torch import Tensor

import lmgym.train
from lmgym.baselines import grpo
from lmgym.train.batch import Batch
from lmgym.train.parts.credit import within_groups


@within_groups
def rank_credit(batch: Batch) -> Tensor:
    """Return the share of the group's episodes that are worse minus the share that are better; (B, T)."""
    returns, group = batch.returns(), batch.groups()
    same = group[:, None] == group[None, :]
    above = (torch.sign(returns[:, None] - returns[None, :]) * same).sum(1) / same.sum(1)
    return (above[batch.episode][:, None] * batch.mask).float()


def main(steps: str = "20", warmup: str = "10", folder: str = "runs/own-algorithm") -> None:
    """Train the embedded model and print the success before and after."""
    args = grpo.Weighted(warmup=int(warmup), steps=int(steps), instances=8, group=4, evaluate=32)
    recipe = replace(grpo.recipe(args), credit=rank_credit)
    result = lmgym.train.run(recipe, task="guess_number", model="tiny:1m", out=folder, quiet=True)
    for stage, report in result.reports.items():
        print(f"{stage}: success {report.success}")


if __name__ == "__main__":
    main(*sys.argv[1:])
