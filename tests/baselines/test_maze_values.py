"""ILQL, MC and imitation on the maze of LMRL-Gym, with exact returns: tables, and a small network.

The data are played by the environment as the paper says: 15 % of the moves are the best, the others random. A state is
a cell and a token is a whole move, so a wrong estimator cannot hide behind a network that has not learnt yet. ILQL's
critic is the shipped one, with states of the maze in place of a trunk's. Target networks are of no use to tables, so
they are tested over features that cells share.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from lmgym.baselines import ilql, mc
from lmgym.evaluation import runner
from lmgym.policy.scripted import hinted
from lmgym.rollout.engine import Engine
from lmgym.tasks.maze.layout import GOAL, MOVES, STARTS, moved
from lmgym.train.critics import SMALL
from lmgym.train.parts.planners import Wander
from lmgym.train.token_critic import DONE, Chain
from tests.train.chain import chain_policy, services_of

pytestmark = pytest.mark.slow
MOVE = {move: number for number, move in enumerate(MOVES)}
BETA, GAMMA, TURNS = 16.0, 0.99, 100
OPTIMUM = -6.84
WIDTH = SMALL["hidden_size"]


@cache
def episodes() -> tuple[list[tuple[int, int]], ...]:
    """Cells and moves of 1,250 episodes of at most 20 moves."""
    jobs = runner.episodes("lmgym/Maze-v0", split="train", size=25, count=25, tries=50, options={"max_turns": 20})
    with Engine(planner=Wander(0, 99, share=0.85)) as engine:
        played = list(engine.run(hinted("demonstrator"), jobs))
    found = []
    for episode in sorted(played, key=lambda each: each.id):
        cell, steps = STARTS[episode.index], []
        for turn in episode.turns:
            steps.append((STARTS.index(cell), MOVE[turn.action]))
            cell = moved(cell, turn.action)
        assert episode.terminated is (cell == GOAL)
        found.append(steps)
    return tuple(found)


def after(cell: int, move: int) -> int | None:
    """The number of the next cell; None for the goal."""
    found = moved(STARTS[cell], list(MOVES)[move])
    return None if found == GOAL else STARTS.index(found)


def counts() -> torch.Tensor:
    """Number of times that each move was made in each cell, (25, 4)."""
    table = torch.zeros(len(STARTS), len(MOVES), dtype=torch.float64)
    for cell, move in (step for episode in episodes() for step in episode):
        table[cell, move] += 1
    return table


def mean_return(policy: torch.Tensor) -> float:
    """The exact mean return over the starts of a policy (25, 4) in at most 100 moves."""
    value = np.zeros(len(STARTS))
    for _ in range(TURNS):
        new = np.zeros_like(value)
        for cell, move in np.ndindex(len(STARTS), len(MOVES)):
            end = after(cell, move)
            new[cell] += float(policy[cell, move]) * (0.0 if end is None else value[end] - 1.0)
        value = new
    return float(value.mean())


def guided(q: torch.Tensor) -> float:
    """The return of the policy that samples from log pi + beta Q."""
    return mean_return(torch.softmax(torch.log(counts()) + BETA * q, -1))


def cells_alone() -> torch.Tensor:
    """A feature of its own for every cell, (25, 128), so that heads are tables."""
    return 4 * torch.eye(len(STARTS), WIDTH)


def waves() -> torch.Tensor:
    """Random waves over the maze, (25, 128): features that cells share, as those of a network."""
    cells = torch.tensor(STARTS, dtype=torch.float32)
    chance = torch.Generator().manual_seed(0)
    directions, phases = torch.randn(2, WIDTH, generator=chance), torch.rand(WIDTH, generator=chance)
    return torch.cos((cells - cells.mean(0)) / cells.std(0) @ (2 * directions) + 2 * torch.pi * phases)


def implicit(folder: Path, states: torch.Tensor, *, steps: int = 900, sign: float = 1.0, **options) -> torch.Tensor:
    """The smaller of the target Qs that ILQL's critic finds, (25, 4); equal transitions are one token with a weight."""
    number = counts()
    tokens = [(int(cell), int(move)) for cell, move in number.nonzero()]
    at = {cell: place for place, (cell, _) in reversed(list(enumerate(tokens)))}
    ends = [after(*token) for token in tokens]
    chain = Chain(
        states=states,
        slow=states,
        place=torch.tensor([cell for cell, _ in tokens]),
        behaviour=torch.zeros(0, 1),
        ids=torch.tensor([move for _, move in tokens]),
        reward=torch.tensor([0.0 if end is None else -sign for end in ends]),
        following=torch.tensor([DONE if end is None else at[end] for end in ends]),
    )
    weight = (number[number > 0] / number.sum()).float()
    usual = {"tau": 0.95, "tau_target": 0.05, "lr": 1e-3}
    args = ilql.Args(base="small", gamma=GAMMA, cql=0.0, bias=-18.0 * sign, autocast=False, **usual | options)
    with services_of(chain_policy(), folder) as services:
        critic = ilql.Implicit(services, args)
        for _ in range(steps):
            loss, _ = critic.losses(chain)
            (loss * weight).sum().backward()
            critic.net.step()
        return critic.quality(states)[:, : len(MOVES)].detach().double()


def monte_carlo() -> torch.Tensor:
    """The mean returns of each move in each cell, (25, 4); where an episode is cut, that of the next cell follows."""
    steps = [step for episode in episodes() for step in episode]
    ends = [after(*step) for step in steps]
    lasts = np.cumsum([len(episode) for episode in episodes()]) - 1
    cut = [int(last) for last in lasts if ends[last] is not None]
    following = torch.arange(1, len(steps) + 1)
    following[torch.tensor(lasts)] = DONE
    following[cut] = torch.arange(len(cut)) + len(steps)
    reward = torch.tensor([0.0 if end is None else -1.0 for end in ends], dtype=torch.float64)
    cells, moves = torch.tensor([c for c, _ in steps]), torch.tensor([m for _, m in steps])
    empty, none = torch.zeros(0, 1), torch.zeros(0, dtype=torch.long)
    chain = Chain(states=empty, slow=empty, place=none, behaviour=empty, ids=moves, reward=reward, following=following)
    number, q = counts(), torch.full((len(STARTS), len(MOVES)), -18.0, dtype=torch.float64)
    policy = number / number.sum(-1, keepdim=True)
    for _ in range(15):
        boot = (policy * q).sum(-1)[[ends[last] for last in cut]]
        goal = mc.returns(chain, boot, gamma=GAMMA).double()
        q = torch.zeros_like(q).index_put_((cells, moves), goal, accumulate=True) / number
    return q


def test_imitation_walks_as_the_data_and_mc_stands_between_it_and_ilql():
    number = counts()
    assert -58 < mean_return(number / number.sum(-1, keepdim=True)) < -45  # that of the rule itself is -51.6
    imitated = mean_return(number / number.sum(-1, keepdim=True))
    assert imitated + 20 < guided(monte_carlo()) <= OPTIMUM + 1e-9


@pytest.mark.parametrize("features", [cells_alone, waves])
def test_ilql_walks_the_shortest_way(tmp_path, features):
    assert guided(implicit(tmp_path, features())) == pytest.approx(OPTIMUM, abs=0.1)


def test_ilql_fails_without_its_targets(tmp_path):
    assert guided(implicit(tmp_path, waves(), tau_target=1.0)) < -80


def test_the_upper_expectile_gives_their_values_and_rewards_turned_around_none(tmp_path):
    farthest = -(1 - GAMMA**11) / (1 - GAMMA)  # twelve moves, of which the last costs nothing
    cells = cells_alone()
    assert float(implicit(tmp_path, cells).amax(-1).min()) == pytest.approx(farthest, abs=1.5)
    assert float(implicit(tmp_path, cells, tau=0.5).amax(-1).min()) < -35  # of the player of the data
    assert guided(implicit(tmp_path, cells, sign=-1.0)) < -80
