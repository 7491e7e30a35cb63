"""INSPO: a population of instructions evolves together with the policy.

    lmgym train inspo wordle
    lmgym train inspo textworld --reflector http://localhost:8000/v1#qwen3

Zhou et al. 2025, Instruction-policy co-evolution. Each instance is played under one instruction I, the system prompt of
all tries of its group, drawn with

    p(I_j) = softmax(w_j / tau),   w_j <- (1 - eta) w_j + eta (mean return of the group).

Every `every` steps a reflector reads the worst episodes and rewrites the best instruction; the new one replaces the
worst. Advantages are those of GRPO, within a group and so within an instruction. Evaluations play the best one.

Deviations: the moving average and the rates are ours, as the paper has no code; a new instruction enters with the mean
weight of the others instead of a score on validation instances. Without `--reflector` the trained policy reflects.
Parts reused: GRPO with all its options; the tasks `Population`; the service `judge`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.errors import RecipeError
from lmgym.train.parts.tasks import Population, Uniform
from lmgym.train.ranges import Count, Fraction, Positive
from lmgym.train.recipe import Recipe

SEEDS = (
    "Solve the task.",
    "Use what the answers so far have shown.",
    "Try what has not been tried yet.",
    "Answer in the form that is asked for, and nothing else.",
)
EXPERIMENT = Direction(
    name="inspo",
    claim="instructions that evolve with the policy beat a static one",
    task="wordle",
    arms=(arm("inspo", "inspo"), arm("static", "inspo", "--instructions", SEEDS[0])),
    warmup=60,
    tokens=100_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of INSPO, and those of GRPO."""

    instructions: str = "|".join(SEEDS)  # first instructions, with bars between them
    tau: Positive = 0.1  # temperature of the choice, in units of return
    rate: Fraction = 0.2  # eta
    every: Count = 10  # steps between new instructions; 0: none
    reflector: str | None = None  # model that writes new instructions; None: the policy that is trained


def recipe(args: Args) -> Recipe:
    """Return GRPO under a population of instructions, with the same evaluation before and after."""
    instructions = list(dict.fromkeys(each.strip() for each in args.instructions.split("|") if each.strip()))
    if not instructions:
        raise RecipeError(f"instructions are texts with bars between them; got {args.instructions!r}")
    uniform = Uniform(args.instances, tries=args.group, budget=args.budget)
    population = Population(uniform, instructions, args.tau, args.rate, args.every, args.reflector)
    judges = () if args.reflector is None else (args.reflector,)
    return replace(grpo.recipe(args), tasks=population, judges=judges)
