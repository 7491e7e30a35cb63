"""ILQL, MC and imitation on the maze of LMRL-Gym, with exact returns: tables, and a small network.

The data are played by the environment as the paper says: 15 % of the moves are the best, the others random. A state is
a cell and a token is a whole move, so a wrong estimator cannot hide behind a network that has not learnt yet. Target
networks are of no use to tables, so they are tested on a small network over features that cells share.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from lmgym.baselines import ilql, mc
from lmgym.evaluation import runner
from lmgym.policy.scripted import hinted
from lmgym.rollout.engine import Engine
from lmgym.tasks.maze.layout import GOAL, MOVES, STARTS, moved
from lmgym.train.critics import mlp, polyak, twin
from lmgym.train.parts.planners import Wander
from lmgym.train.token_critic import DONE, Chain

pytestmark = pytest.mark.slow
MOVE = {move: number for number, move in enumerate(MOVES)}
BETA, GAMMA, TURNS = 16.0, 0.99, 100
OPTIMUM = -6.84


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


def waves() -> torch.Tensor:
    """64 random waves over the maze, (25, 64): features that cells share, as those of a network."""
    cells = torch.tensor(STARTS, dtype=torch.float64)
    chance = torch.Generator().manual_seed(0)
    directions, phases = torch.randn(2, 64, generator=chance), torch.rand(64, generator=chance)
    return torch.cos((cells - cells.mean(0)) / cells.std(0) @ (2 * directions.double()) + 2 * torch.pi * phases)


def implicit(
    *, tau: float = 0.95, share: float = 0.05, sign: float = 1.0, steps: int = 1500, network: bool = False
) -> torch.Tensor:
    """The smaller of the target Qs that ILQL finds, (25, 4); equal transitions are one token with their number."""
    number = counts()
    tokens = [(int(cell), int(move)) for cell, move in number.nonzero()]
    at = {cell: place for place, (cell, _) in reversed(list(enumerate(tokens)))}
    ends = [after(*token) for token in tokens]
    states = waves() if network else torch.eye(len(STARTS), dtype=torch.float64)
    place = torch.tensor([cell for cell, _ in tokens])
    chain = Chain(
        states=states,
        slow=states,
        place=place,
        behaviour=torch.zeros(0, 1),
        ids=torch.tensor([move for _, move in tokens]),
        reward=torch.tensor([0.0 if end is None else -sign for end in ends], dtype=torch.float64),
        following=torch.tensor([DONE if end is None else at[end] for end in ends]),
    )
    weight = number[number > 0] / number.sum()
    widths, rate = ([64, 128], 3e-3) if network else ([len(STARTS)], 0.1)
    sizes = (len(MOVES), len(MOVES), 1)
    heads = [mlp([*widths, size], seed=[n], bias=-18.0 * sign).double() for n, size in enumerate(sizes)]
    targets = [twin(head) for head in heads[:2]]
    optimiser = torch.optim.Adam([weight for head in heads for weight in head.parameters()], lr=rate)
    for _ in range(steps):
        q, v = tuple(head(states) for head in heads[:2]), heads[2](states)[:, 0]
        with torch.no_grad():
            slow = tuple(head(states) for head in targets)
        of_q, of_v, _ = ilql.losses(q, v, slow, chain, gamma=GAMMA, tau=tau)
        optimiser.zero_grad()
        ((of_q + of_v) * weight).sum().backward()
        optimiser.step()
        for target, head in zip(targets, heads, strict=False):
            polyak(target, head, share)
    return torch.minimum(*(head(states) for head in targets)).detach()


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


def test_ilql_walks_the_shortest_way():
    assert guided(implicit()) == pytest.approx(OPTIMUM, abs=0.1)


def test_ilql_walks_the_shortest_way_with_a_network_and_not_without_its_targets():
    assert guided(implicit(network=True, steps=600)) == pytest.approx(OPTIMUM, abs=0.1)
    assert guided(implicit(network=True, steps=600, share=1.0)) < -80


def test_the_upper_expectile_gives_their_values_and_rewards_turned_around_none():
    farthest = -(1 - GAMMA**11) / (1 - GAMMA)  # twelve moves, of which the last costs nothing
    assert float(implicit().amax(-1).min()) == pytest.approx(farthest, abs=1.5)
    assert float(implicit(tau=0.5).amax(-1).min()) < -40  # of the player of the data
    assert guided(implicit(sign=-1.0)) < -80
