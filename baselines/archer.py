"""ArCHer: a critic of whole utterances, learnt off-policy, and a token-level actor that learns from it alone.

    lmgym train archer guess_number --model tiny

Zhou et al. 2024, ArCHer: Training Language Model Agents via Hierarchical Multi-Turn RL. Every turn that was played goes
into a replay. Twin Q of an utterance after its observation and twin V of an observation are fitted to drawn turns by
temporal differences; what the policy would say now is sampled anew at each drawn observation, without an environment.
The actor learns by REINFORCE, each of its steps on utterances sampled anew at observations drawn anew from the replay,
each judged by min Q - min V.

The release differs where its options stand at False or None here. Three of its habits are not offered: it encodes
answers again as text by themselves (ids are born once), takes the logarithm of a softmax, and counts weights without a
gradient when it clips.
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
from lmgym.errors import RecipeError
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.critics import Base, Estimator, Point, Trunk, mlp, states_at
from lmgym.train.interfaces import Critic, Store, Term
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.losses import reinforce
from lmgym.train.parts.stores import Replay
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress, Until, constant
from lmgym.train.services import Services, view
from lmgym.train.stages import FitCritic, Rl
from lmgym.types import Trajectory

BLIND = "ArCHer's critic reads ids alone and sees no pictures: use grpo, rloo or ppo"


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """What ArCHer takes, besides what the imitation before it does."""

    steps: int | None = 45  # iterations in which the actor learns
    seconds: float | None = None  # at most
    fit: int = 10  # iterations before, in which the critic learns alone
    rollouts: int = 64  # episodes of an iteration
    budget: int | None = 16  # turns of a training episode at most; evaluation keeps the task's own limit
    capacity: int = 100_000  # turns in the replay
    gamma: float = 0.95  # a turn
    tau: float = 0.1  # what the targets go of their way at each step of the critic
    encoder: Base = "small"  # that the critic reads: small and own learn with it, policy is the actor as it is
    hidden: int = 256  # width of the heads' two inner layers
    critic_draws: int = 256  # turns drawn in an iteration, an utterance sampled anew at each
    critic_epochs: int = 16  # passes over them
    critic_batch: int = 64  # turns of a step of the critic
    critic_lr: float = 1e-3
    actor_draws: int = 256  # utterances sampled anew in a pass of the actor, to learn from
    tries: int = 4  # of them at the same observation, each judged beside the Q of the others; 1: beside V, as printed
    lr: float = 1e-4
    adam_eps: float = 1e-5  # advantages are small: without it AdamW steps at full rate on their noise
    epochs: int = 1  # passes of the actor
    minibatches: int = 1  # optimiser steps of a pass, each on its share of the utterances, sampled when it is due
    importance: Choice = "none"  # weights of the actor's tokens, where the sampler is not the trainer; not the critic's
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # old log-probs by the trainer; None: where it or the sampler is not fp32
    summed_batches: int | None = None  # the release: as many batches a step, of critic and actor, gradients summed
    truncated_is_done: bool = False  # the release: nothing follows where an episode was cut
    untrained_stop: bool = False  # the release: the token that ends an utterance is not trained
    cut_at_newline: bool = False  # the release: an utterance ends with its first line
    critic_tokens: int | None = None  # the release: 512, what the critic sees of an observation, from its end


@dataclass(frozen=True, kw_only=True)
class Transition:
    """An utterance, what it earned and what followed; all of it as ids."""

    before: tuple[int, ...]  # what the policy had seen
    said: tuple[int, ...]
    now: tuple[int, ...]  # what it would say at present
    reward: float
    after: tuple[int, ...] | None  # what it saw next; None where the episode was done


@dataclass(frozen=True, kw_only=True)
class TransitionStates:
    """N transitions as the states that heads read: by the network that learns, and by its target."""

    before: Tensor  # (N, H) after the observation
    said: Tensor  # (N, H) of the utterance, the mean of its tokens
    slow_before: Tensor  # (N, H) the first of these by the target
    slow_now: Tensor  # (N, H) of the utterance sampled anew
    slow_after: Tensor  # (N, H) after the next observation; anything where it was done
    reward: Tensor  # (N,)
    done: Tensor  # (N,) bool


@dataclass(frozen=True)
class Judged:
    """What the critic says of an utterance."""

    row: int  # of a batch
    turn: int
    seen: tuple[int, ...]  # the observation
    quality: float
    value: float  # of the observation


class UtteranceHeads(nn.Module):
    """Twin Q of an utterance after an observation, twin V of an observation, on one encoder."""

    def __init__(self, trunk: nn.Module, width: int, hidden: Sequence[int], *, seed: int) -> None:
        """`width` is of the encoder's states; the four heads begin independently."""
        super().__init__()
        self.trunk = trunk
        self.q = nn.ModuleList(mlp([2 * width, *hidden, 1], seed=[seed, n]) for n in (0, 1))
        self.v = nn.ModuleList(mlp([width, *hidden, 1], seed=[seed, n]) for n in (2, 3))

    def quality(self, before: Tensor, said: Tensor) -> Tensor:
        """Q of both heads, (2, N), for states (N, H) of observations and utterances."""
        both = torch.cat([before, said], -1)
        return torch.stack([head(both)[:, 0] for head in self.q])

    def value(self, before: Tensor) -> Tensor:
        """V of both heads, (2, N), for states (N, H) of observations."""
        return torch.stack([head(before)[:, 0] for head in self.v])


def errors(
    online: UtteranceHeads, target: UtteranceHeads, seen: TransitionStates, *, gamma: float
) -> tuple[Tensor, Tensor]:
    """Squared errors of Q and of V, each summed over the twins; both (N,).

    Q follows the reward and the target's V of what came next, V the target's Q of what the policy says now. There is
    no minimum in either: each twin follows its own.
    """
    with torch.no_grad():
        q_goal = seen.reward + gamma * target.value(seen.slow_after) * ~seen.done
        v_goal = target.quality(seen.slow_before, seen.slow_now)
    q = (online.quality(seen.before, seen.said) - q_goal).square().sum(0)
    v = (online.value(seen.before) - v_goal).square().sum(0)
    return q, v


class TwinCritic(Critic):
    """Learns Q and V of utterances from a replay, and judges utterances by them."""

    def __init__(self, services: Services, args: Args) -> None:
        self.services, self.args = services, args
        seed = services.pool.seed
        trunk = Trunk(
            services.policy, args.encoder, seed=seed, autocast=args.autocast, checkpointing=args.checkpointing
        )
        heads = UtteranceHeads(trunk, trunk.width, [args.hidden] * 2, seed=seed).to(services.policy.device)
        self.net = Estimator(heads, lr=args.critic_lr, share=args.tau)
        self.tokens = 4096 if services.policy.device.type == "cpu" else 32_768  # padded, of a pass

    def fit(self, store: Store | None, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Passes over turns drawn from the replay, with what the policy would say now at each."""
        assert isinstance(store, Replay), "ArCHer's critic learns from a replay"
        drawn = store.turns(self.args.critic_draws, seed=[*seed, 1])
        if any(turn.completion.pictures for trajectory, _ in drawn for turn in trajectory.turns):
            raise RecipeError(BLIND)
        known = [turn for turn in drawn if self.foreseen(*turn)]
        said = self.services.sample(known, noise=[*seed, 1])
        pairs = [(turn, each.turns[-1].completion.ids) for turn, each in zip(known, said, strict=True)]
        found = [self.transition(*turn, now=now) for turn, now in pairs if now]
        if not found:
            return {}
        ranks, learns = self.services.ranks, self.args.encoder != "policy"
        frozen = None if learns or len(found) < ranks.size else self.seen(ranks.share(found))
        steps = max(1, round(len(found) / (self.args.critic_batch * (self.args.summed_batches or 1))))
        sums = np.zeros(3)
        for epoch in range(self.args.critic_epochs):
            order = np.random.default_rng([*seed, epoch]).permutation(len(found))
            for part in np.array_split(order, steps):
                sums += self._step(torch.from_numpy(part), found, frozen)
        names = ("critic_q_loss", "critic_v_loss", "critic_gradient_norm")
        means = sums / (steps * self.args.critic_epochs)
        kept = {"replay": float(len(store)), "unseen_cuts": float(len(drawn) - len(known))}
        return {**dict(zip(names, means.tolist(), strict=True)), **kept}

    def foreseen(self, trajectory: Trajectory, number: int) -> bool:
        """Whether it is known what followed a turn: not where an episode was cut and what was next did not fit."""
        last = number + 1 == len(trajectory.turns)
        return not last or trajectory.terminated or self.args.truncated_is_done or bool(trajectory.final_ids)

    def transition(self, trajectory: Trajectory, number: int, *, now: tuple[int, ...]) -> Transition:
        """A turn of the replay, and what the policy says `now` in its place."""
        turn, before = trajectory.turns[number], tuple(view(trajectory, number))
        past = () if trajectory.final_fresh else (*before, *turn.completion.ids)
        after: tuple[int, ...] | None = (*past, *trajectory.final_ids)
        if number + 1 < len(trajectory.turns):
            after = tuple(view(trajectory, number + 1))
        elif trajectory.terminated or self.args.truncated_is_done:
            after = None
        return Transition(before=before, said=turn.completion.ids, now=now, reward=turn.reward, after=after)

    def seen(self, found: Sequence[Transition]) -> TransitionStates:
        """What the heads read of transitions; with the gradient of the encoder that learns, if it does."""
        online, target = self.net.online.trunk, self.net.slow.trunk
        read = [self._points(each.before, each.said, each.after) for each in found]
        fast = states_at(online, [point for points in read for point in points], tokens=self.tokens)
        branch = [self._points(each.before, each.now, None)[:2] for each in found]
        ways = [(*now, played[2]) for now, played in zip(branch, read, strict=True)]
        with torch.no_grad():
            slow = states_at(target, [point for points in ways for point in points], tokens=self.tokens)
        device = fast.device
        return TransitionStates(
            before=fast[0::3],
            said=fast[1::3],
            slow_before=slow[0::3],
            slow_now=slow[1::3],
            slow_after=slow[2::3],
            reward=torch.tensor([each.reward for each in found], device=device),
            done=torch.tensor([each.after is None for each in found], device=device),
        )

    def _points(
        self, before: tuple[int, ...], said: tuple[int, ...], after: tuple[int, ...] | None
    ) -> tuple[Point, Point, Point]:
        """The ends of an observation and of the next one, all of the utterance between; one row where that goes on.

        The state at an utterance's last token foresees a user's turn, whatever was said: it hardly tells utterances
        apart. The mean of its tokens does.
        """
        limit = self.args.critic_tokens or 0  # a slice from 0 on is all
        before, after = before[-limit:], None if after is None else after[-limit:]
        row = (*before, *said)
        whole = after if after is not None and after[: len(row)] == row else row
        last = whole if after is None else after
        end, ends = len(before), len(last)
        return (whole, range(end - 1, end)), (whole, range(end, len(row))), (last, range(ends - 1, ends))

    def _step(
        self, part: Tensor, found: Sequence[Transition], frozen: TransitionStates | None
    ) -> tuple[float, float, float]:
        """A step of the optimiser on some of the transitions; the errors of Q and V, and the gradient's norm.

        `frozen` is what the heads read of this process's share of all transitions.
        """
        ranks, count = self.services.ranks, self.args.critic_batch if self.args.summed_batches else len(part)
        if frozen is None:
            lengths = torch.tensor([len(found[n].before) + len(found[n].said) for n in part.tolist()])
            runs = [part[run] for run in ranks.share(micro_batches(lengths, self.tokens // ranks.size))]
        else:
            runs = [part[part % ranks.size == ranks.rank]]
        sums = torch.zeros(2, dtype=torch.float64)
        for run in runs:
            if not len(run):
                continue
            seen = (
                some(frozen, run // ranks.size) if frozen is not None else self.seen([found[n] for n in run.tolist()])
            )
            q, v = errors(self.net.online, self.net.slow, seen, gamma=self.args.gamma)
            torch.autograd.backward((q.sum() + v.sum()) / count)
            sums += torch.stack([q.detach().sum(), v.detach().sum()]).double().cpu()
        norm = self.net.step(ranks)
        q_mean, v_mean = (ranks.summed(sums) / len(part)).tolist()
        return q_mean, v_mean, norm

    @torch.no_grad()
    def value(self, batch: Batch) -> Batch:
        """The batch with the smaller Q as `quality` and the smaller V as `value`, on every token of an utterance.

        V is the mean of Q over what is said. Where several utterances were sampled at an observation, the mean of the
        others' Q stands for it: what Q takes for the worth of the observation itself is in both, and falls out.
        """
        if batch.media:
            raise RecipeError(BLIND)
        owned = [sorted(set(turn[mask].tolist())) for turn, mask in zip(batch.turn, batch.mask, strict=True)]
        ranks, turns = self.services.ranks, [(row, turn) for row, own in enumerate(owned) for turn in own]
        judged = ranks.gathered(self._judged(batch, ranks.share(turns)))
        if self.args.tries > 1:
            judged = beside_others(judged)
        stops = torch.isin(batch.ids, torch.tensor(sorted(self.services.policy.stops)))
        trained = batch.mask & ~stops if self.args.untrained_stop else batch.mask
        quality, value = torch.zeros_like(batch.reward), torch.zeros_like(batch.reward)
        for each in judged:
            here = (batch.turn[each.row] == each.turn) & trained[each.row]
            quality[each.row, here], value[each.row, here] = each.quality, each.value
        return replace(batch, quality=quality, value=value)

    def _judged(self, batch: Batch, turns: Sequence[tuple[int, int]]) -> list[Judged]:
        """The smaller Q and the smaller V of turns, each given by its row and its number."""
        points: list[Point] = []
        for row, turn in turns:
            at = ((batch.turn[row] == turn) & batch.mask[row]).nonzero()[:, 0].tolist()
            ids = tuple(batch.ids[row].tolist())
            points += self._points(ids[: at[0]], ids[at[0] : at[-1] + 1], None)[:2]
        if not points:
            return []
        found = states_at(self.net.online.trunk, points, tokens=self.tokens)
        quality = self.net.online.quality(found[0::2], found[1::2]).amin(0).tolist()
        value = self.net.online.value(found[0::2]).amin(0).tolist()
        read = zip(turns, points[0::2], quality, value, strict=True)
        return [Judged(row, turn, ids[: places.stop], q, v) for (row, turn), (ids, places), q, v in read]

    def state_dict(self) -> dict[str, Any]:
        """Weights, target and optimiser."""
        return self.net.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.net.load_state_dict(state)


def some(seen: TransitionStates, part: Tensor) -> TransitionStates:
    """Some of the transitions."""
    index = part.to(seen.reward.device)
    return TransitionStates(**{each.name: getattr(seen, each.name)[index] for each in fields(seen)})


def beside_others(judged: Sequence[Judged]) -> list[Judged]:
    """Utterances, each with the mean Q of the others at its observation as value; a lonely one keeps its own."""
    by_seen: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for each in judged:
        by_seen[each.seen].append(each.quality)
    sums = {seen: (sum(all_), len(all_) - 1) for seen, all_ in by_seen.items()}
    means = [(sums[each.seen][0] - each.quality, sums[each.seen][1]) for each in judged]
    return [replace(each, value=others / n) if n else each for each, (others, n) in zip(judged, means, strict=True)]


def credit(batch: Batch) -> Tensor:
    """What an utterance is worth more than its observation, on each of its tokens; (B, T)."""
    return (batch.quality - batch.value) * batch.mask


def recipe(args: Args) -> Recipe:
    """Imitation, the critic alone, actor and critic; the same evaluation before and after."""
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
        # an episode of the weights is one utterance: the answer sampled anew is all that is trained of its fork. The
        # critic has none: what it values is what the sampler says, which is what is played
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=[Term(loss=reinforce, aggregation="seq_sum", coef=constant(args.summed_batches or 1.0))],
        stages=bc.around(args, FitCritic(until=Until(steps=args.fit)), rl),
        stop=("\n",) if args.cut_at_newline else (),
    )
