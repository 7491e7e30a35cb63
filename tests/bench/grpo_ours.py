"""Our side of `make bench-trl`: steps of GRPO with the settings that TRL's trainer has by default."""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from grpo_side import Marks, job, letters

from lmgym.baselines.grpo import credit
from lmgym.policy.load import load_local
from lmgym.policy.local.sampling import Sampling
from lmgym.train import loop
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.log import read_metrics
from lmgym.train.parts.losses import surrogate
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.stages import Rl


def in_letters(trajectory):
    """Return the episode with one reward at its end: the share of letters in its answers."""
    share = letters("".join(turn.completion.text for turn in trajectory.turns))
    turns = [replace(turn, reward=0.0, terms={}) for turn in trajectory.turns]
    turns[-1] = replace(turns[-1], reward=share, terms={"letters": share})
    return replace(trajectory, turns=tuple(turns))


class Marked:
    """Tasks and a reward that record when a step begins and when its rollout ends."""

    def __init__(self, tasks, marks):
        self.tasks, self.marks = tasks, marks

    def draw(self, step, pool):
        self.marks.begun.append(self.marks.now())
        return self.tasks.draw(step, pool)

    def reward(self, trajectory):
        if len(self.marks.played) < len(self.marks.begun):
            self.marks.played.append(self.marks.now())
        return in_letters(trajectory)


def recipe(settings, half, marks):
    """Return a recipe: group-normalised advantages, clipped surrogate, token mean, one AdamW step a batch."""
    optimiser = Optimiser(lr=1e-5, betas=(0.9, 0.999), autocast=half)
    clip = partial(surrogate, low=0.2, high=0.2, dual=None)
    tasks = Marked(Uniform(settings["groups"], tries=settings["group"]), marks)
    return Recipe(
        tasks=tasks,
        reward=[tasks.reward],
        credit=partial(credit, std=True),
        loss=[Term(loss=clip, aggregation="token_mean")],
        stages=[Rl(until=Until(steps=settings["steps"] + 1), optimiser=optimiser)],
    )


def main():
    """Train; the first step warms up and is left out."""
    settings = job()
    torch.set_num_threads(settings["threads"])
    half = settings["precision"] == "bfloat16"
    policy = load_local(
        f"hf:{settings['model']}",
        sampling=Sampling(max_tokens=settings["tokens"]),
        device="cpu",
        dtype=settings["precision"],
    )
    policy.stops = frozenset()  # every answer has all its tokens
    marks, changed = Marks(), policy.update
    policy.update = lambda: (changed(), marks.ended.append(marks.now()))  # the last that a step does
    options = {"max_turns": settings["turns"]}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        made = recipe(settings, half, marks)
        loop.run(made, policy, task="wordle", options=options, folder=run, quiet=True, save_seconds=1e9)
        tokens = [line["sampled_tokens"] for line in read_metrics(run)]
    marks.report(tokens)


main()
