"""What the parts of a recipe may ask of a run: to play, to score, to sample; the run's one policy and engines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.score import score
from lmgym.rollout.context import Context, Full
from lmgym.rollout.engine import Engine
from lmgym.rollout.following import following
from lmgym.rollout.picture_folder import PICTURES, RunPictures, picture_digests
from lmgym.rollout.planner import Planner
from lmgym.train.batch import Batch
from lmgym.train.collate import Trained, collate
from lmgym.train.ranks import ranks
from lmgym.train.state import InstancePool, RunConfig
from lmgym.types import Completion, Trajectory, Turn, pictures_in


class Services:
    """The policy of a run and what it plays with; what is opened here is closed by `opened`."""

    def __init__(
        self,
        policy: LocalPolicy,
        pool: InstancePool,
        *,
        folder: Path,
        config: RunConfig,
        context: Context | None,
        temperature: float,
        opened: ExitStack,
    ) -> None:
        self.policy, self.pool, self.folder, self.config = policy, pool, folder, config
        self.context, self.temperature = context or Full(), temperature
        self.ranks = ranks()
        self.pictures = RunPictures(folder / PICTURES)
        policy.use_pictures(self.pictures)
        self.sampled = 0  # tokens that `sample` made, until they are counted
        self._opened = opened
        self._engines: dict[int, Engine] = {}  # by planner

    def engine(self, planner: Planner | None = None) -> Engine:
        """The engine of a planner, whose environments are kept until the run ends."""
        if id(planner) not in self._engines:
            made = Engine(
                context=self.context,
                planner=planner or Planner(),
                concurrency=self.config.concurrency,
                lockstep=self.config.lockstep,
                pictures=self.pictures,
            )
            self._engines[id(planner)] = self._opened.enter_context(made)
        return self._engines[id(planner)]

    def score(self, batch: Batch, model: Any = None) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies (B, T) of the tokens that have a weight, under `model` or the policy."""
        chosen = self.policy.model if model is None else model
        heat, asked = self.temperature, batch.weight != 0
        return score(chosen, batch.ids, batch.attention, temperature=heat, mask=asked, media=batch.media)

    def batch(self, episodes: Sequence[Trajectory], trained: Trained, *, ends: bool) -> Batch:
        """Episodes as a batch, with their pictures."""
        return collate(episodes, trained=trained, ends=ends, gallery=self.policy.gallery)

    def gathered(self, mine: Sequence[Trajectory]) -> list[Trajectory]:
        """The episodes that all processes have, with their pictures."""
        if self.ranks.size > 1:
            self.pictures.update(self.ranks.gathered(self.pictures.items()))
        return self.ranks.gathered(mine)

    def kept(self, episodes: Sequence[Trajectory]) -> Sequence[Trajectory]:
        """The episodes, when their pictures are in the run's folder: they will be asked for in later steps."""
        self.pictures.keep(picture_digests(episodes))
        return episodes

    def ended(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with the ids of what it was cut at, as the next view would show it, where that fits."""
        asked = None
        if trajectory.truncated and not trajectory.final_ids:
            asked = following(trajectory, self.context, self.policy.count)
        if asked is None:
            return trajectory
        ids, fresh = self.policy.prompt(asked)
        before = 0 if fresh else sum(len(said.prompt_ids) + len(said.ids) for said in asked.spoken)
        if before + len(ids) > self.policy.context:
            return trajectory
        shown = self.policy.pictures(asked, ids, fresh=fresh)
        return replace(trajectory, final_ids=tuple(ids), final_fresh=fresh, final_pictures=shown)

    def counted(self) -> int:
        """Tokens that `sample` made since this was last asked."""
        self.sampled, found = 0, self.sampled
        return found

    def sample(self, prefixes: Sequence[tuple[Trajectory, int]], *, noise: Sequence[int]) -> list[Trajectory]:
        """What the policy says now, in place of the given turn of each trajectory; nothing is played.

        The answers are forks of their trajectories: the turns before are shared, the new one is the last, without an
        action and without a reward. `noise` names their sampling noise; each prefix has its own by its number.
        """
        mine = self.ranks.share(range(len(prefixes)))
        own = [prefixes[n] for n in mine]
        shown = [pictures_in(said_since(*prefix)) for prefix in own]
        answers = self.policy.sample([view(*prefix) for prefix in own], noise=noise, numbers=mine, pictures=shown)
        said = dict(self.ranks.gathered(zip(mine, answers, strict=True)))
        self.sampled += sum(len(each.ids) for each in said.values())
        return [_spoken(*prefix, said[number], number) for number, prefix in enumerate(prefixes)]


def view(trajectory: Trajectory, turn: int) -> list[int]:
    """The ids that the policy had before its answer in `turn`."""
    *before, asked = said_since(trajectory, turn)
    return [*(i for said in before for i in (*said.prompt_ids, *said.ids)), *asked.prompt_ids]


def said_since(trajectory: Trajectory, turn: int) -> list[Completion]:
    """What was said in the segment of `turn` up to it, itself included."""
    start = max((n for n in range(turn + 1) if trajectory.turns[n].fresh), default=0)
    return [past.completion for past in trajectory.turns[start : turn + 1]]


def _spoken(trajectory: Trajectory, turn: int, said: Completion, number: int) -> Trajectory:
    """The fork of a trajectory that ends with an answer."""
    asked = trajectory.turns[turn]
    before = asked.completion
    completion = replace(said, prompt_ids=before.prompt_ids, fresh=before.fresh, pictures=before.pictures)
    last = Turn(observation=asked.observation, completion=completion, action=None, fresh=asked.fresh)
    return replace(
        trajectory,
        id=f"{trajectory.id}~{turn}.{number}",
        parent=trajectory.id,
        forked_at=turn,
        turns=(*trajectory.turns[:turn], last),
        final=None,
        final_ids=(),
        final_pictures=(),
        terminated=False,
        truncated=True,
        stop="sampled",
    )
