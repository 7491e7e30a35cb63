"""ArCHer: an off-policy critic of whole utterances and a token-level actor trained by that critic.

    lmgym train archer guess_number --model tiny

Zhou et al. 2024, ArCHer: Training Language Model Agents via Hierarchical Multi-Turn RL. All played turns go into a
replay buffer. Twin Q of (observation, utterance) and twin V of observations are fitted to drawn turns by temporal
differences; at each drawn observation the current policy samples a fresh utterance, without an environment. The actor
learns by REINFORCE: each step samples fresh utterances at observations drawn from the replay, with min Q - min V as
advantage.

Options that are False or None by default reproduce the released code where it differs. Not available of it: encoding
answers again from their text, taking the logarithm of a softmax, counting frozen weights in gradient clipping, a
RoBERTa that encodes observation and utterance apart (here a copy of the policy reads both in one row), Adam without
weight decay and with a second beta of 0.999, and a baseline for single tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lmgym.baselines import bc
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.errors import RecipeError
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.critics import Base, Estimator, Point, Trunk, mlp, states_at
from lmgym.train.interfaces import Critic, Store, Term
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.losses import reinforce
from lmgym.train.parts.stores import Replay
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, Fraction, NonNegative, Positive, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress, Until, constant
from lmgym.train.services import Services, view
from lmgym.train.stages import FitCritic, Rl
from lmgym.train.update import fitting_tokens
from lmgym.types import Trajectory

BLIND = "ArCHer's critic sees no pictures: use grpo, rloo or ppo"

EXPERIMENT = Direction(
    name="archer",
    claim="a critic of whole utterances beats the policy gradient of episodes at equal tokens",
    task="guess_number",
    arms=(arm("archer", "archer", "--fit", "5"), arm("rloo (REINFORCE)", "rloo")),
    warmup=12,
    tokens=30_000,
)


@dataclass(frozen=True, kw_only=True)
class Hierarchical(bc.Learning):
    """Options of ArCHer, with the values of small models."""

    steps: Count | None = 45  # iterations that train critic and actor
    seconds: NonNegative | None = None  # time limit
    fit: Count = 10  # iterations before, that train the critic alone
    rollouts: int = 64  # episodes per iteration
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    capacity: PositiveInt = 100_000  # turns in the replay buffer
    gamma: Fraction = 0.95  # discount per turn
    tau: float = 0.1  # update rate of the target networks per critic step
    encoder: Base = "small"  # network below the heads; small and own are trained, policy is the frozen actor
    hidden: PositiveInt = 256  # width of the heads' two hidden layers
    critic_draws: PositiveInt = 256  # turns drawn for each pass of the critic, with a fresh utterance at each
    critic_whole: bool = False  # draw all turns of an episode together: the critic then reads it once, not at each turn
    critic_epochs: PositiveInt = 16  # passes per iteration
    critic_batch: PositiveInt = 64  # turns per critic step
    critic_lr: Rate = 1e-3
    actor_draws: PositiveInt = 256  # fresh utterances per pass of the actor
    tries: PositiveInt = 4  # utterances per observation, whose baseline is the Q of the others; 1: V, as in the paper
    lr: Rate = 1e-4
    adam_eps: Positive = 1e-5
    epochs: PositiveInt = 1  # passes of the actor
    minibatches: PositiveInt = 1  # optimiser steps per pass, each on its share of the utterances, sampled just before
    importance: Choice = "none"  # importance weights of the actor for a sampler that differs from the trainer
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # recompute old log-probs with the trainer; None: unless both are fp32
    summed_batches: PositiveInt | None = None  # release: 32 summed batches (of critic_batch 8) a step, the actor's too
    truncated_is_done: bool = False  # release: truncated episodes have no successor state
    untrained_stop: bool = False  # release: the stop token of an utterance is not trained
    cut_at_newline: bool = False  # release: utterances end at the first newline
    critic_tokens: PositiveInt | None = None  # last tokens of an observation for the critic; release: 512; None: all


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, Hierarchical):
    """Options of ArCHer, by default those of its paper; the encoder is a copy of the policy.

    Smaller (paper): 64 rollouts (128), 64 critic steps of 64 turns (20-50 of 256), 1 actor update (3), `fit` 10 (20).
    """

    encoder: Base = "own"
    critic_lr: Rate = 1e-5
    tries: PositiveInt = 1
    lr: Rate = 1e-5
    adam_eps: Positive = 1e-8


@dataclass(frozen=True, kw_only=True)
class Transition:
    """A turn as token ids: observation, utterance, reward and next observation."""

    episode: str  # id of the trajectory
    before: tuple[int, ...]  # the observation, with all before it
    utterance: tuple[int, ...]
    now: tuple[int, ...]  # fresh utterance of the current policy
    reward: float
    after: tuple[int, ...] | None  # the next observation; None if the episode is done


@dataclass(frozen=True, kw_only=True)
class TransitionStates:
    """The states that the heads read for N transitions, by the online network and by the target network."""

    before: Tensor  # (N, H) after the observation
    utterance: Tensor  # (N, H) mean over the tokens of the utterance
    slow_before: Tensor  # (N, H) after the observation, by the target
    slow_now: Tensor  # (N, H) of the fresh utterance, by the target
    slow_after: Tensor  # (N, H) after the next observation, by the target; arbitrary if done
    reward: Tensor  # (N,)
    done: Tensor  # (N,) bool


@dataclass(frozen=True)
class UtteranceEstimate:
    """The critic's estimates of an utterance."""

    row: int  # of a batch
    turn: int
    observation: tuple[int, ...]
    quality: float  # Q of the utterance
    value: float  # V of the observation


class UtteranceHeads(nn.Module):
    """Twin Q heads of (observation, utterance) and twin V heads of observations, on one encoder."""

    def __init__(self, trunk: nn.Module, width: int, hidden: Sequence[int], *, seed: int) -> None:
        """Make four independent heads on states of size `width`."""
        super().__init__()
        self.trunk = trunk
        self.q = nn.ModuleList(mlp([2 * width, *hidden, 1], seed=[seed, n]) for n in (0, 1))
        self.v = nn.ModuleList(mlp([width, *hidden, 1], seed=[seed, n]) for n in (2, 3))

    def quality(self, before: Tensor, utterance: Tensor) -> Tensor:
        """Return Q of both heads, (2, N), for states (N, H) of observations and utterances."""
        both = torch.cat([before, utterance], -1)
        return torch.stack([head(both)[:, 0] for head in self.q])

    def value(self, before: Tensor) -> Tensor:
        """Return V of both heads, (2, N), for states (N, H) of observations."""
        return torch.stack([head(before)[:, 0] for head in self.v])


def errors(
    online: UtteranceHeads, target: UtteranceHeads, states: TransitionStates, *, gamma: float
) -> tuple[Tensor, Tensor]:
    """Return the squared errors of Q and of V, each summed over the twins; both (N,).

    The goal of Q is reward + gamma V_target(next observation), that of V is Q_target(observation, fresh utterance).
    There is no minimum over the twins: each twin follows its own target.
    """
    with torch.no_grad():
        q_goal = states.reward + gamma * target.value(states.slow_after) * ~states.done
        v_goal = target.quality(states.slow_before, states.slow_now)
    q = (online.quality(states.before, states.utterance) - q_goal).square().sum(0)
    v = (online.value(states.before) - v_goal).square().sum(0)
    return q, v


class TwinCritic(Critic):
    """A critic that learns Q and V of utterances from a replay buffer."""

    def __init__(self, services: Services, args: Hierarchical) -> None:
        self.services, self.args, seed = services, args, services.pool.seed
        trunk = Trunk(
            services.policy, args.encoder, seed=seed, autocast=args.autocast, checkpointing=args.checkpointing
        )
        heads = UtteranceHeads(trunk, trunk.width, [args.hidden] * 2, seed=seed).to(services.policy.device)
        self.net = Estimator(heads, lr=args.critic_lr, share=args.tau)
        self.tokens = fitting_tokens(services.policy.model, services.policy.device)  # padded tokens of a pass
        self.read = partial(states_at, tokens=self.tokens, shares=trunk.shares)

    def fit(self, store: Store | None, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Train on turns drawn from the replay buffer, with a fresh utterance of the policy at each.

        Each pass draws anew, as in the release: 16 passes over the same 256 turns would learn their noise.
        """
        assert isinstance(store, Replay), "ArCHer's critic learns from a replay buffer"
        passes = [self._pass(store, seed=[*seed, number]) for number in range(self.args.critic_epochs)]
        learned = [figures for figures in passes if figures]
        if not learned:
            return {}
        means = {name: sum(each[name] for each in learned) / len(learned) for name in learned[0]}
        return {**means, "replay": float(len(store))}

    def _pass(self, store: Replay, *, seed: Sequence[int]) -> dict[str, float]:
        """Draw turns, sample an utterance at each, train on them once; return mean figures, none without a turn."""
        drawn = store.turns(self.args.critic_draws, seed=[*seed, 1], whole=self.args.critic_whole)
        if any(turn.completion.pictures for trajectory, _ in drawn for turn in trajectory.turns):
            raise RecipeError(BLIND)
        usable = [turn for turn in drawn if self.has_successor(*turn)]
        forks = self.services.sample(usable, noise=[*seed, 1])
        pairs = [(turn, each.turns[-1].completion.ids) for turn, each in zip(usable, forks, strict=True)]
        transitions = [self.transition(*turn, now=now) for turn, now in pairs if now]
        if not transitions:
            return {}
        ranks, learns = self.services.ranks, self.args.encoder != "policy"
        frozen = None if learns or len(transitions) < ranks.size else self.states(ranks.share(transitions))
        steps = max(1, round(len(transitions) / (self.args.critic_batch * (self.args.summed_batches or 1))))
        sums = np.zeros(3)
        for part in torch.arange(len(transitions)).tensor_split(steps):  # in the order drawn, which is random
            sums += self._step(part, transitions, frozen)
        names = ("critic_q_loss", "critic_v_loss", "critic_gradient_norm")
        means = dict(zip(names, (sums / steps).tolist(), strict=True))
        return {**means, "unseen_cuts": float(len(drawn) - len(usable))}

    def has_successor(self, trajectory: Trajectory, number: int) -> bool:
        """Return False if an episode was truncated after this turn and its final observation did not fit."""
        last = number + 1 == len(trajectory.turns)
        return not last or trajectory.terminated or self.args.truncated_is_done or bool(trajectory.final_ids)

    def transition(self, trajectory: Trajectory, number: int, *, now: tuple[int, ...]) -> Transition:
        """Return a turn of the replay buffer with the fresh utterance `now`."""
        turn, before = trajectory.turns[number], tuple(view(trajectory, number))
        past = () if trajectory.final_fresh else (*before, *turn.completion.ids)
        after: tuple[int, ...] | None = (*past, *trajectory.final_ids)
        if number + 1 < len(trajectory.turns):
            after = tuple(view(trajectory, number + 1))
        elif trajectory.terminated or self.args.truncated_is_done:
            after = None
        utterance = turn.completion.ids
        return Transition(
            episode=trajectory.id, before=before, utterance=utterance, now=now, reward=turn.reward, after=after
        )

    def states(self, transitions: Sequence[Transition]) -> TransitionStates:
        """Return the states that the heads read for transitions, with gradient if the encoder is trained."""
        online, target = self.net.online.trunk, self.net.slow.trunk
        played = [self._points(each.before, each.utterance, each.after) for each in transitions]
        fast = self.read(online, [point for triple in played for point in triple])
        fresh = [self._points(each.before, each.now, None)[:2] for each in transitions]
        triples = [(*pair, triple[2]) for pair, triple in zip(fresh, played, strict=True)]
        with torch.no_grad():
            slow = self.read(target, [point for triple in triples for point in triple])
        device = fast.device
        return TransitionStates(
            before=fast[0::3],
            utterance=fast[1::3],
            slow_before=slow[0::3],
            slow_now=slow[1::3],
            slow_after=slow[2::3],
            reward=torch.tensor([each.reward for each in transitions], device=device),
            done=torch.tensor([each.after is None for each in transitions], device=device),
        )

    def _points(
        self, before: tuple[int, ...], utterance: tuple[int, ...], after: tuple[int, ...] | None
    ) -> tuple[Point, Point, Point]:
        """Return the points of the observation's end, the utterance, and the next observation's end.

        They share a row if the next observation continues it. An utterance is read by the mean over its tokens: the
        state at its last token predicts the start of a user's turn and hardly depends on the utterance.
        """
        limit = self.args.critic_tokens or 0  # [-0:] is everything
        before, after = before[-limit:], None if after is None else after[-limit:]
        row = (*before, *utterance)
        whole = after if after is not None and after[: len(row)] == row else row
        last = whole if after is None else after
        end, ends = len(before), len(last)
        return (whole, range(end - 1, end)), (whole, range(end, len(row))), (last, range(ends - 1, ends))

    def _step(
        self, part: Tensor, transitions: Sequence[Transition], frozen: TransitionStates | None
    ) -> tuple[float, float, float]:
        """Take an optimiser step on a part of the transitions; return the errors of Q and V and the gradient norm.

        `frozen` holds the states of this process's share of all transitions, if the encoder is not trained.
        """
        ranks, count = self.services.ranks, self.args.critic_batch if self.args.summed_batches else len(part)
        if frozen is None:
            chosen = [transitions[n] for n in part.tolist()]
            lengths = torch.tensor([len(each.before) + len(each.utterance) for each in chosen])
            episode = torch.from_numpy(np.unique([each.episode for each in chosen], return_inverse=True)[1])
            runs = [part[run] for run in ranks.share(micro_batches(lengths, self.tokens // ranks.size, episode))]
        else:
            runs = [part[part % ranks.size == ranks.rank]]
        sums = torch.zeros(2, dtype=torch.float64)
        for run in runs:
            if not len(run):
                continue
            states = (
                some(frozen, run // ranks.size)
                if frozen is not None
                else self.states([transitions[n] for n in run.tolist()])
            )
            q, v = errors(self.net.online, self.net.slow, states, gamma=self.args.gamma)
            torch.autograd.backward((q.sum() + v.sum()) / count)
            sums += torch.stack([q.detach().sum(), v.detach().sum()]).double().cpu()
        norm = self.net.step(ranks)
        q_mean, v_mean = (ranks.summed(sums) / len(part)).tolist()
        return q_mean, v_mean, norm

    @torch.no_grad()
    def value(self, batch: Batch) -> Batch:
        """Return the batch with min Q as `quality` and min V as `value` on every token of an utterance.

        If several utterances were sampled at an observation, the mean Q of the others replaces V: errors of Q that
        depend on the observation alone then cancel.
        """
        if batch.media:
            raise RecipeError(BLIND)
        owned = [sorted(set(turn[mask].tolist())) for turn, mask in zip(batch.turn, batch.mask, strict=True)]
        ranks, turns = self.services.ranks, [(row, turn) for row, own in enumerate(owned) for turn in own]
        estimates = ranks.gathered(self.judge(batch, ranks.share(turns)))
        if self.args.tries > 1:
            estimates = leave_one_out(estimates)
        stops = torch.isin(batch.ids, torch.tensor(sorted(self.services.policy.stops)))
        trained = batch.mask & ~stops if self.args.untrained_stop else batch.mask
        quality, value = torch.zeros_like(batch.reward), torch.zeros_like(batch.reward)
        for each in estimates:
            here = (batch.turn[each.row] == each.turn) & trained[each.row]
            quality[each.row, here], value[each.row, here] = each.quality, each.value
        return replace(batch, quality=quality, value=value)

    def judge(self, batch: Batch, turns: Sequence[tuple[int, int]]) -> list[UtteranceEstimate]:
        """Return min Q and min V of turns, given as (row, turn number)."""
        points: list[Point] = []
        for row, turn in turns:
            at = ((batch.turn[row] == turn) & batch.mask[row]).nonzero()[:, 0].tolist()
            ids = tuple(batch.ids[row].tolist())
            points += self._points(ids[: at[0]], ids[at[0] : at[-1] + 1], None)[:2]
        if not points:
            return []
        states = self.read(self.net.online.trunk, points)
        quality = self.net.online.quality(states[0::2], states[1::2]).amin(0).tolist()
        value = self.net.online.value(states[0::2]).amin(0).tolist()
        read = zip(turns, points[0::2], quality, value, strict=True)
        return [UtteranceEstimate(row, turn, ids[: places.stop], q, v) for (row, turn), (ids, places), q, v in read]

    def state_dict(self) -> dict[str, Any]:
        """Return weights, target and optimiser."""
        return self.net.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.net.load_state_dict(state)


def some(states: TransitionStates, part: Tensor) -> TransitionStates:
    """Return the states of a part of the transitions."""
    index = part.to(states.reward.device)
    return TransitionStates(**{each.name: getattr(states, each.name)[index] for each in fields(states)})


def leave_one_out(estimates: Sequence[UtteranceEstimate]) -> list[UtteranceEstimate]:
    """Replace each value by the mean Q of the other utterances at the observation, if there are any."""
    qualities: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for each in estimates:
        qualities[each.observation].append(each.quality)
    sums = {observation: (sum(values), len(values) - 1) for observation, values in qualities.items()}
    means = [(sums[each.observation][0] - each.quality, sums[each.observation][1]) for each in estimates]
    return [replace(each, value=others / n) if n else each for each, (others, n) in zip(estimates, means, strict=True)]


def credit(batch: Batch) -> Tensor:
    """Return Q - V of each utterance on all its tokens; (B, T)."""
    return (batch.quality - batch.value) * batch.mask


def recipe(args: Hierarchical) -> Recipe:
    """Return imitation, critic warm-up, and actor with critic, with the same evaluation before and after."""
    if not 0 < args.tau <= 1:
        raise RecipeError(f"ArCHer needs tau in (0, 1]; got {args.tau}")
    until, once = Until(steps=args.steps, seconds=args.seconds), replace(bc.optimiser(args), epochs=1, minibatches=1)
    rl = Rl(until=until, optimiser=once, rescore=args.rescore, updates_per_step=args.epochs * args.minibatches)
    answers = -(-args.actor_draws // args.minibatches)
    return Recipe(
        tasks=Uniform(args.rollouts, budget=args.budget),
        critic=partial(TwinCritic, args=args),
        blind=BLIND,
        store=lambda: Replay(args.capacity, answers=answers, tries=args.tries),
        credit=credit,
        # for the weights an episode is one utterance, the only one trained of its fork; the critic needs none, since
        # it values the utterances of the sampler, which are those that are played
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=[Term(loss=reinforce, aggregation="seq_sum", coef=constant(args.summed_batches or 1.0))],
        stages=bc.around(args, FitCritic(until=Until(steps=args.fit)), rl),
        stop=("\n",) if args.cut_at_newline else (),
    )
