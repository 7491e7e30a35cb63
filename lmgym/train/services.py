"""Services of a run for the parts of a recipe: playing, scoring and sampling with the run's policy and engines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lmgym.policy.base import Conversation, Policy
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.score import score
from lmgym.rollout.context import Context, Full
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.following import following
from lmgym.rollout.picture_folder import PICTURES, RunPictures, picture_digests
from lmgym.rollout.planner import Planner
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.collate import Trained, collate
from lmgym.train.log import writing
from lmgym.train.ranks import ranks
from lmgym.train.state import InstancePool, RunConfig
from lmgym.types import Completion, Message, Trajectory, Turn, pictures_in


class Services:
    """The policy of a run and its engines, which `opened` closes."""

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
        self.sampled = 0  # tokens made by `sample` since the last `counted`
        self._opened = opened
        self._judged: dict[str, str] = {}  # answers by a digest of model and text
        self._judges: dict[str, Policy] = {}
        self._engines: dict[tuple[int, int], Engine] = {}  # by planner and seats

    def engine(self, planner: Planner | None = None, seats: Mapping[str, SeatConfig] | None = None) -> Engine:
        """Return the engine of a planner and other seats; its environments are kept until the run ends."""
        key = id(planner), id(seats) if seats else 0
        if key not in self._engines:
            new = Engine(
                context=self.context,
                planner=planner or Planner(),
                seats=seats or {},
                concurrency=self.config.concurrency or Engine.concurrency,
                task_limits=self.config.concurrency is None,
                lockstep=self.config.lockstep,
                pictures=self.pictures,
            )
            self._engines[key] = self._opened.enter_context(new)
        return self._engines[key]

    def score(self, batch: Batch, model: Any = None) -> tuple[Tensor, Tensor]:
        """Return log-probs and entropies (B, T) of tokens with a weight, under `model` or the policy."""
        chosen = self.policy.model if model is None else model
        temperature, mask = self.temperature, batch.weight != 0
        return score(chosen, batch.ids, batch.attention, temperature=temperature, mask=mask, media=batch.media)

    @torch.no_grad()
    def likelihoods(self, rows: Sequence[tuple[Sequence[int], Sequence[int]]], *, tokens: int = 4096) -> list[Tensor]:
        """Return the log-probs (L,) of each row's answer ids after its prompt ids, under the policy at temperature 1.

        The rows are shared out over the processes, in passes of `tokens` padded tokens. They are text alone.
        """
        lengths = torch.tensor([len(prompt) + len(answer) for prompt, answer in rows])
        scores: list[tuple[int, list[float]]] = []
        for part in self.ranks.share(micro_batches(lengths, tokens) if rows else []):
            chosen = [rows[n] for n in part.tolist()]
            ids = pad_sequence([torch.tensor([*prompt, *answer]) for prompt, answer in chosen], batch_first=True)
            inside = torch.arange(ids.shape[1]) < lengths[part][:, None]
            wanted = inside & (torch.arange(ids.shape[1]) >= torch.tensor([len(p) for p, _ in chosen])[:, None])
            device = self.policy.device
            logprobs = self.policy.score(ids.to(device), inside.to(device), temperature=1.0, mask=wanted.to(device))[0]
            columns = zip(part.tolist(), logprobs.cpu(), wanted, strict=True)
            scores += [(number, row[mask].tolist()) for number, row, mask in columns]
        whole = dict(self.ranks.gathered(scores))
        return [torch.tensor(whole[number]) for number in range(len(rows))]

    def judge(self, texts: Sequence[str], *, model: str | None = None, max_tokens: int = 64) -> list[str]:
        """Return the answers of a policy to texts: of `model` at temperature 0, or of the run's own as it is now.

        The main process asks. An answer is asked for once and kept in `judged.jsonl` of the run's folder.
        """
        own = f"{self.policy.name} {self.policy.version}"
        keys = [hashlib.sha256(f"{model or own}\n{max_tokens}\n{text}".encode()).hexdigest()[:32] for text in texts]
        path = self.folder / "judged.jsonl"
        if self.ranks.main and not self._judged and path.exists():
            self._judged = dict(json.loads(line) for line in path.read_text().splitlines() if line.endswith("]"))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._judged}
        if missing and self.ranks.main:
            questions = [
                Conversation(
                    messages=(Message(role="user", text=text),), noise=(int(key[:12], 16),), max_tokens=max_tokens
                )
                for key, text in missing.items()
            ]
            answers = self._judging(model).act(questions)
            self._judged |= {key: answer.text for key, answer in zip(missing, answers, strict=True)}
            with writing(path), path.open("a") as file:
                file.writelines(json.dumps([key, self._judged[key]]) + "\n" for key in missing)
        return self.ranks.agreed([self._judged.get(key, "") for key in keys])

    def _judging(self, model: str | None) -> Policy:
        """Return the run's policy, or that of `model`, which is loaded once."""
        if model is None:
            return self.policy
        if model not in self._judges:
            from lmgym.train.load import load_policy

            judge = self._judges[model] = load_policy(model, 0.0, self.pool.seed)
            if hasattr(judge, "close"):
                self._opened.callback(judge.close)
        return self._judges[model]

    def batch(self, episodes: Sequence[Trajectory], trained: Trained, *, ends: bool) -> Batch:
        """Return episodes as a batch, with their pictures."""
        return collate(episodes, trained=trained, ends=ends, gallery=self.policy.gallery)

    def gathered(self, mine: Sequence[Trajectory]) -> list[Trajectory]:
        """Return the episodes of all processes, with their pictures."""
        if self.ranks.size > 1:
            self.pictures.update(self.ranks.gathered(self.pictures.items()))
        return self.ranks.gathered(mine)

    def kept(self, episodes: Sequence[Trajectory]) -> Sequence[Trajectory]:
        """Save the pictures of episodes in the run's folder for later steps, and return the episodes."""
        self.pictures.keep(picture_digests(episodes))
        return episodes

    def ended(self, trajectory: Trajectory) -> Trajectory:
        """Return a truncated trajectory with the ids of its final observation, if they fit into the context."""
        next_view = None
        if trajectory.truncated and not trajectory.final_ids:
            next_view = following(trajectory, self.context, self.policy.count)
        if next_view is None:
            return trajectory
        ids, fresh = self.policy.prompt(next_view)
        before = 0 if fresh else sum(len(spoken.prompt_ids) + len(spoken.ids) for spoken in next_view.spoken)
        if before + len(ids) > self.policy.context:
            return trajectory
        pictures = self.policy.pictures(next_view, ids, fresh=fresh)
        return replace(trajectory, final_ids=tuple(ids), final_fresh=fresh, final_pictures=pictures)

    def counted(self) -> int:
        """Return the number of tokens made by `sample` since the last call."""
        self.sampled, count = 0, self.sampled
        return count

    def sample(self, prefixes: Sequence[tuple[Trajectory, int]], *, noise: Sequence[int]) -> list[Trajectory]:
        """Sample a fresh answer of the policy at the given turn of each trajectory, without an environment.

        Return forks of the trajectories: they share the turns before and end with the new one, which has no action and
        no reward. `noise` seeds the sampling; each prefix adds its number.
        """
        mine = self.ranks.share(range(len(prefixes)))
        own = [prefixes[n] for n in mine]
        pictures = [pictures_in(completions_until(*prefix)) for prefix in own]
        answers = self.policy.sample([view(*prefix) for prefix in own], noise=noise, numbers=mine, pictures=pictures)
        completions = dict(self.ranks.gathered(zip(mine, answers, strict=True)))
        self.sampled += sum(len(each.ids) for each in completions.values())
        return [_fork(*prefix, completions[number], number) for number, prefix in enumerate(prefixes)]


def view(trajectory: Trajectory, turn: int) -> list[int]:
    """Return the ids that the policy saw before its answer in `turn`."""
    *before, last = completions_until(trajectory, turn)
    return [*(i for past in before for i in (*past.prompt_ids, *past.ids)), *last.prompt_ids]


def completions_until(trajectory: Trajectory, turn: int) -> list[Completion]:
    """Return the completions in the segment of `turn`, up to and including it."""
    start = max((n for n in range(turn + 1) if trajectory.turns[n].fresh), default=0)
    return [past.completion for past in trajectory.turns[start : turn + 1]]


def _fork(trajectory: Trajectory, turn: int, answer: Completion, number: int) -> Trajectory:
    """Return the fork of a trajectory that ends with `answer` in place of `turn`."""
    replaced = trajectory.turns[turn]
    before = replaced.completion
    completion = replace(answer, prompt_ids=before.prompt_ids, fresh=before.fresh, pictures=before.pictures)
    last = Turn(observation=replaced.observation, completion=completion, action=None, fresh=replaced.fresh)
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
