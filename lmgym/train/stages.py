"""Stages that learn: each knows how to play its episodes and how to learn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from lmgym.rollout import dataset
from lmgym.rollout.context import Context
from lmgym.rollout.planner import Planner
from lmgym.train import source
from lmgym.train.batch import masked, with_observations
from lmgym.train.collate import turns_out
from lmgym.train.figures import of_demonstrations, of_play, over_draws
from lmgym.train.interfaces import Credit, Filter, Needs, Optimiser, Parts, Reward, Tasks, Term, no_credit
from lmgym.train.learner import Learner, StepContext, Turns
from lmgym.train.ranges import PositiveInt, check_ranges
from lmgym.train.stage import LearningStage, Played
from lmgym.types import Trajectory


@dataclass(frozen=True, kw_only=True)
class Sft(LearningStage):
    """Imitation of demonstrated or recorded episodes, with its own parts in place of the recipe's."""

    tasks: Tasks
    loss: Sequence[Term]
    name: str = "sft"
    recorded: Path | None = None  # JSON lines of episodes, or a folder of such; None: the demonstrator plays fresh ones
    select: Filter | None = None  # of all that is recorded, before any of it is drawn
    planner: Planner | None = None
    reward: Sequence[Reward] = ()
    filter: Sequence[Filter] = ()
    credit: Credit = no_credit
    observation_weight: float = 0.0  # of tokens outside the answers
    optimiser: Optimiser = field(default_factory=Optimiser)

    def needs(self) -> Needs:
        """Return the data set, or that a demonstrator is needed."""
        return Needs(data=self.recorded, select=self.select, demonstrator=self.recorded is None)

    @property
    def plays(self) -> bool:
        """True if the demonstrator plays."""
        return self.recorded is None

    def planned(self, parts: Parts) -> Planner | None:
        """Return the stage's own planner."""
        return self.planner

    def begin(self, learner: Learner) -> None:
        """Make the updater."""
        learner.begin_updates(self.loss, self.optimiser)

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return demonstrations or episodes of the data set."""
        jobs = learner.jobs(self.tasks, self.name, step)
        if self.recorded is None:
            return learner.play(jobs, self.planner, by=source.demonstrated)
        return learner.read(self.recorded, step, count=len(jobs), select=self.select), 0

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return figures of demonstrations."""
        return of_demonstrations(episodes)

    def selection(self, learner: Learner) -> tuple[int, int] | None:
        """Return how many episodes of the data set `select` keeps, and of how many."""
        if self.recorded is None or self.select is None:
            return None
        path = learner.data(self.recorded)
        return len(source.selected(path, self.select)), source.size(path)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Imitate."""
        selection = self.selection(learner)
        kept, out, figures = learner.judged(episodes, self.reward, self.filter, step)
        if selection is not None:
            figures = {"selected": selection[0] / selection[1], **figures}
        if not kept:
            return {**figures, "trained_tokens": 0.0}
        with step.clock("collate"):
            batch = learner.services.batch(kept, "given", ends=False)
        with step.clock("credit"):
            batch = replace(batch, advantage=self.credit(batch))
            batch = masked(batch, turns_out(batch, kept, out))
            if self.observation_weight:
                batch = with_observations(batch, self.observation_weight)
        return figures | learner.update(batch, kept, step)


@dataclass(frozen=True, kw_only=True)
class Rl(LearningStage):
    """Reinforcement learning by the parts of the recipe, or by parts of its own."""

    name: str = "rl"
    parts: Parts | None = None  # in place of the recipe's, whose context and sampling stay; None: the recipe's
    optimiser: Optimiser = field(default_factory=Optimiser)
    rescore: bool | None = None  # old log-probs by the trainer; None: where its precision differs from the sampler's
    kl_probe_tokens: int = 2048  # tokens a step on which the KL to the start policy is measured; 0: never
    updates_per_step: PositiveInt = 1  # draws from the store, each followed by an update with the weights so far

    def __post_init__(self) -> None:
        check_ranges(self)

    def needs(self) -> Needs:
        """Return that the critic is used, how old log-probs come about, and whether a store is drawn from."""
        return Needs(critic=True, sampler_logprobs=self.rescore is False, store=self.updates_per_step > 1)

    def parts_of(self, recipe: Parts) -> Parts:
        """Return the stage's own parts if it has any."""
        return self.parts or recipe

    def seeing(self, context: Context) -> Rl:
        """Return the stage with `context` in its own parts, if it has any."""
        return self if self.parts is None else replace(self, parts=replace(self.parts, context=context))

    def planned(self, parts: Parts) -> Planner | None:
        """Return the planner of the parts that the stage uses."""
        return self.parts_of(parts).planner

    def begin(self, learner: Learner) -> None:
        """Make the updater, the critic and the reference."""
        joint = learner.begin_critic(policy_learns=True)
        probe = bool(learner.reward_kl or self.kl_probe_tokens)
        updater = learner.begin_updates(learner.parts.loss, self.optimiser, joint=joint, reference=probe)
        updater.scores_old = self.rescore is None and self.optimiser.single

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return episodes of the policy, which the tasks observe."""
        episodes, abandoned = learner.play(learner.jobs(learner.tasks, self.name, step), learner.parts.planner)
        learner.tasks.observe(episodes, learner.services)
        return episodes, abandoned

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Learn from the episodes, from them and a draw from the store, or from one draw or several in their place."""
        kept, out, figures = learner.judged(episodes, learner.rewards, learner.parts.filter, step)
        if learner.store is None:
            return figures | self._update(learner, kept, out, step)
        figures |= learner.stored(kept, step)
        if learner.mixes:
            drawn = learner.store.draw(learner.services, seed=step.seed)
            return {**figures, "stored_episodes": float(len(drawn)), **self._update(learner, kept, out, step, drawn)}
        draws: list[dict[str, float]] = []
        for number in range(self.updates_per_step):
            own = step.draw(number)
            with step.clock("play"):
                drawn = learner.store.draw(learner.services, seed=own.seed)
            draws.append(self._update(learner, drawn, out, own))
        return figures | over_draws(draws)

    def _update(
        self,
        learner: Learner,
        episodes: list[Trajectory],
        out: Turns,
        step: StepContext,
        stored: Sequence[Trajectory] = (),
    ) -> dict[str, float]:
        """Train the critic and the policy on episodes, without the turns that are `out`; return figures.

        Episodes `stored` train the policy beside them.
        """
        if not episodes and not stored:
            return {"trained_tokens": 0.0}
        if not episodes:
            return learner.update(learner.with_stored(None, stored), stored, step)
        with step.clock("collate"):
            batch = learner.services.batch(episodes, "sampled", ends=learner.critic is not None)
        with step.clock("score"):
            batch, factor, gap = learner.rescored(batch, self.rescore)
            batch, divergence = learner.compared(batch, probe_tokens=self.kl_probe_tokens, seed=step.seed)
        batch, figures = learner.valued(batch, step)
        with step.clock("credit"):
            batch = replace(batch, advantage=learner.parts.credit(batch) * factor)
            batch = masked(batch, turns_out(batch, episodes, out))
            batch = learner.with_stored(batch, stored) if stored else batch
        return {**figures, **learner.update(batch, [*episodes, *stored], step), **gap, **divergence}


@dataclass(frozen=True, kw_only=True)
class FitCritic(LearningStage):
    """A stage in which the critic learns and the policy does not: its warm-up, or the whole of value learning."""

    trains_critic: ClassVar[bool] = True

    name: str = "critic"
    recorded: Path | None = None  # episodes, as for Sft; None: the policy plays

    def needs(self) -> Needs:
        """Return the data set and that the critic is used."""
        return Needs(data=self.recorded, critic=True)

    @property
    def plays(self) -> bool:
        """True if the policy plays."""
        return self.recorded is None

    def begin(self, learner: Learner) -> None:
        """Make the critic."""
        learner.begin_critic(policy_learns=False)

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return episodes of the policy or of the data set."""
        jobs = learner.jobs(learner.tasks, self.name, step)
        if self.recorded is None:
            return learner.play(jobs, learner.parts.planner)
        return learner.read(self.recorded, step, count=len(jobs)), 0

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return figures of play, or of demonstrations where episodes are recorded."""
        return of_play(episodes) if self.recorded is None else of_demonstrations(episodes)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Train the critic."""
        kept, _, figures = learner.judged(episodes, learner.rewards, learner.parts.filter, step)
        if learner.store is not None:
            return figures | learner.stored(kept, step)
        if not kept:
            return {**figures, "trained_tokens": 0.0}
        with step.clock("collate"):
            batch = learner.services.batch(kept, "sampled" if self.recorded is None else "given", ends=True)
        return figures | learner.valued(batch, step)[1]


@dataclass(frozen=True, kw_only=True)
class Generate(LearningStage):
    """Plays and writes the episodes, for stages that learn from records."""

    into: str  # folder within that of the run, a file a step
    tasks: Tasks
    planner: Planner | None = None
    filter: Sequence[Filter] = ()
    demonstrated: bool = False  # by the task's demonstrator; False: by the policy
    name: str = "generate"

    def needs(self) -> Needs:
        """Return the data set that is made, and that a demonstrator is needed."""
        return Needs(makes=self.into, demonstrator=self.demonstrated)

    def planned(self, parts: Parts) -> Planner | None:
        """Return the stage's own planner."""
        return self.planner

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return demonstrations or episodes of the policy."""
        by = source.demonstrated if self.demonstrated else source.played
        return learner.play(learner.jobs(self.tasks, self.name, step), self.planner, by=by)

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return figures of play or of demonstrations."""
        return of_demonstrations(episodes) if self.demonstrated else of_play(episodes)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Write the episodes; those that a planner played from end to end are encoded first."""
        context = learner.services.context
        given = [bool(episode.turns) and all(turn.kind == "given" for turn in episode.turns) for episode in episodes]
        whole = [
            source.with_ids(episode, learner.policy, context) if planned else episode
            for episode, planned in zip(episodes, given, strict=True)
        ]
        kept, _, _ = learner.judged(whole, (), self.filter, step)
        learner.write([dataset.labelled(episode, learner.policy) for episode in kept], self.into, step)
        return {"kept_episodes": float(len(kept))}
