"""ReTool: imitation of solutions with programs, then PPO with a Python that runs; right answers earn 1, others -1.

    lmgym train retool python_math --model 'tiny?words=python_math'

Feng et al. 2025, ReTool: Reinforcement Learning for Strategic Tool Use in LLMs. A cold start imitates solutions whose
calculations are programs. Then PPO plays on with the interpreter: an answer ends at </code>, the result is appended and
the policy goes on from its key-value cache. Nothing rewards programs that run, only the final answer:

    R = 1 if it is right, else -1,    A = generalised advantages by token, no divergence from the start policy;

tokens of results are in no loss, that of the cold start included.

Deviations: the cold start imitates the task's demonstrator, where the paper rewrites solutions in words; on any task, R
is that of a success. The paper prints no learning rates of the critic: gamma, lambda and the rates are those of `ppo`
for small models. An episode that is cut earns -1 and the critic's value of its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmgym.baselines import ppo
from lmgym.baselines.curves.directions import RATES, Direction, arm
from lmgym.train.parts.rewards import each, with_rewards
from lmgym.train.ranges import Fraction, NonNegative
from lmgym.train.recipe import Recipe
from lmgym.types import Trajectory

SOON = ("--critic-steps", "1", *RATES)
EXPERIMENT = Direction(
    name="retool",
    claim="with the tool, the same PPO gets further on as many tokens",
    task="python_math",
    arms=(arm("with the tool", "retool", *SOON), arm("without", "retool", *SOON, options=("tool=off",))),
    model="tiny?words=python_math",
    start=("--interject", "0"),
    warmup=80,
    tokens=100_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(ppo.Shared):
    """Options of PPO, with ReTool's values."""

    interject: Fraction = 0.0  # the cold start has no wrong programs
    observation_weight: NonNegative = 0.0  # of results, in the cold start
    kl_reward: NonNegative = 0.0


def signed_outcome(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory whose last turn alone is rewarded: 1 for a success, else -1."""
    if not trajectory.turns:  # the first prompt did not fit into the context
        return trajectory
    rewards = [0.0] * (len(trajectory.turns) - 1) + [1.0 if trajectory.success else -1.0]
    return with_rewards(trajectory, rewards, name="answer")


def recipe(args: Args) -> Recipe:
    """Return the cold start, critic warm-up and PPO, with the same evaluation before and after."""
    plain = ppo.recipe(args)
    return replace(plain, reward=[each(signed_outcome), *plain.reward])
