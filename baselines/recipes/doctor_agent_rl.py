"""DoctorAgent-RL: question a patient within a number of turns that differs from instance to instance.

    lmgym train doctor_agent_rl doctor

Feng et al. 2025, DoctorAgent-RL: A Multi-Agent Collaborative Reinforcement Learning System for Multi-Turn Clinical
Dialogue. The number of turns is drawn from 2 to 10 and stands in the prompt, so that one policy serves any of them. The
return of a dialogue is the sum of

    +1 a question that brings a finding, -1 one that brings none, -2 one that is invalid or was asked before,
    -5 no diagnosis by the last turn, 5 F1 of the diagnosis + 5 F1 of the recommendation,

compared within groups of 8 by GRPO, with a small entropy bonus and temperature 0.7.

Deviations: patient and evaluator are the task's rules, and F1 is 1 for the right illness or remedy, else 0; the
demonstrator's dialogues are imitated, without reasoning. `turns=10` is the ablation: one limit in all of training.
Parts reused: GRPO; the entropy bonus.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import SMALL_START, Direction, arm
from lmgym.train.interfaces import Term
from lmgym.train.parts.losses import entropy_bonus
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, NonNegative, Positive
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import constant

EXPERIMENT = Direction(
    name="doctor_agent_rl",
    claim="training with a drawn number of turns serves all numbers better than training with the largest",
    task="doctor",
    options=("table=false",),
    arms=(
        arm("drawn limits", "doctor_agent_rl", "--instances", "8"),
        arm("limit of 10", "doctor_agent_rl", "--instances", "8", "--turns", "10"),
    ),
    start=SMALL_START,
    warmup=60,
    tokens=200_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of DoctorAgent-RL, and those of GRPO."""

    turns: Count = 0  # of every episode in training, 2 to 10; 0: drawn. Evaluations keep the task's own
    entropy: NonNegative = 0.001  # weight of the bonus
    temperature: Positive = 0.7


def recipe(args: Args) -> Recipe:
    """Return GRPO with the bonus, on dialogues of drawn length."""
    plain = grpo.recipe(args)
    options = {"budget": args.turns} if args.turns else {}
    return replace(
        plain,
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget, options=options),
        loss=[*plain.loss, Term(loss=entropy_bonus, name="entropy_bonus", coef=constant(args.entropy))],
        temperature=args.temperature,
        reward_terms=frozenset({"invalid"}),
    )
