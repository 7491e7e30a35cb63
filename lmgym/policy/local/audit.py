"""Rescoring of recorded ids, by which a check decides whether a policy sampled them itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from lmgym.policy.local.forward import head_of, is_supported
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import truncate
from lmgym.policy.local.score import TokenRows, model_inputs, rows_of, states
from lmgym.policy.models.vision import Media
from lmgym.policy.noise import stream, uniform
from lmgym.policy.tools import split_thinking
from lmgym.types import Picture

TOKENS = 8192  # padded tokens of one forward pass
PIECE = 1 << 25  # logits computed at a time

TOLERANCE = 1e-3  # of cumulative probabilities: a draw may miss its token on other hardware
HALF_TOLERANCE = 1e-2  # in 16-bit precision

RecordedRow = tuple[  # ids of a segment, which of them were sampled, their noise, and the located pictures
    Sequence[int], Sequence[bool], Sequence[float], tuple[Picture, ...]
]


@dataclass(frozen=True)
class Rescored:
    """Figures of the sampled tokens of a segment under the model, each (N,) in float64."""

    logprobs: npt.NDArray[np.float64]  # as sampled: after temperature, top-k and top-p
    entropy: npt.NDArray[np.float64]  # nats
    variance: npt.NDArray[np.float64]  # of the surprisal
    root: npt.NDArray[np.float64]  # log of the sum of the square roots of all probabilities
    gap: npt.NDArray[np.float64]  # logit of the likeliest token less that of this one
    drawn: npt.NDArray[np.float64]  # 1 where the noise draws this token


class Auditor:
    """A local policy without sampling, for checks: prompts, text and scores."""

    def __init__(self, policy: LocalPolicy, *, temperature: float, top_p: float, top_k: int, seed: int = 0) -> None:
        """The settings are those of the answers to check."""
        self.policy = policy
        self.sampling = replace(policy.sampling, temperature=temperature, top_p=top_p, top_k=top_k, seed=seed)
        self._tolerance = TOLERANCE if in_fp32(policy) else HALF_TOLERANCE

    @property
    def vocabulary(self) -> int:
        """Number of ids."""
        return int(self.policy.model.get_input_embeddings().weight.shape[0])

    def text(self, prompt: Sequence[int], answer: Sequence[int]) -> tuple[str, str]:
        """Return the thinking and the words of an answer to a prompt."""
        return split_thinking(self.policy.text(answer), opened=self.policy.template.opens_thinking(prompt))

    def end(self, answer: Sequence[int]) -> int | None:
        """Return the number of tokens after which the policy ends this answer; None if it would continue."""
        for count, token in enumerate(answer, 1):
            if token in self.policy.stops or self.policy.stopped(answer[:count]):
                return count
        return None

    def noise(self, name: Sequence[int], count: int) -> list[float]:
        """Return the first `count` draws of the noise stream `name`."""
        keys = np.full(count, stream(self.sampling.seed, name), np.uint64)
        return [float(draw) for draw in uniform(keys, np.arange(count, dtype=np.uint64))]

    @torch.inference_mode()
    def rescore(self, rows: Sequence[RecordedRow]) -> list[Rescored]:
        """Score the sampled tokens of segments, teacher-forced."""
        results: dict[int, Rescored] = {}
        for part in _passes([len(row[0]) for row in rows]):
            results |= dict(zip(part, self._pass([rows[i] for i in part]), strict=True))
        return [results[i] for i in range(len(rows))]

    def _pass(self, rows: Sequence[RecordedRow]) -> Iterator[Rescored]:
        rests = [max(len(row[0]) for row in rows) - len(row[0]) for row in rows]
        padded = list(zip(rows, rests, strict=True))
        ids = torch.tensor([[*row[0], *[0] * rest] for row, rest in padded], device=self.policy.device)
        attention = torch.tensor([[1] * len(row[0]) + [0] * rest for row, rest in padded], device=ids.device)
        sampled = torch.tensor([[*row[1], *[False] * rest] for row, rest in padded], device=ids.device)
        at = sampled.nonzero()  # (N, 2)
        noise = torch.tensor([draw for row in rows for draw in row[2]], device=ids.device)  # (N,)
        gallery = self.policy.gallery
        media = None if gallery is None else Media(tuple(row[3] for row in rows), gallery)
        pieces = self._pieces(rows_of(ids, attention, media), at)
        figures = [self._score(logits, targets, noise[start:]) for start, logits, targets in pieces]
        columns = torch.cat(figures, 1).double().cpu()
        ends = np.cumsum(sampled.sum(-1).cpu().numpy())[:-1]
        for own in np.split(columns.numpy(), ends, axis=1):
            yield Rescored(*own)

    def _pieces(self, rows: TokenRows, at: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield the start of each piece, the logits (n, V) before its tokens, and these tokens (n,)."""
        model = self.policy.model
        targets = rows.ids[at[:, 0], at[:, 1]]
        if not is_supported(model):
            logits = model(attention_mask=rows.attention.long(), use_cache=False, **model_inputs(rows)).logits
            yield 0, logits[at[:, 0], at[:, 1] - 1].float(), targets
            return
        head = head_of(model)
        hidden = states(model, rows.ids, rows.attention, media=rows.media)[at[:, 0], at[:, 1] - 1]
        size = max(1, PIECE // head.shape[0])
        for start in range(0, len(targets), size):
            part = hidden[start : start + size].to(head.dtype)
            yield start, F.linear(part, head).float(), targets[start : start + size]

    def _score(self, logits: Tensor, targets: Tensor, noise: Tensor) -> Tensor:
        """Return the six figures (6, n) of `targets` (n,) under `logits` (n, V) with draws `noise` (n or more,)."""
        own = logits.gather(-1, targets[:, None])[:, 0]
        gap = logits.max(-1).values - own
        heat = self.sampling.temperature or 1.0
        logp = torch.log_softmax(truncate(logits / heat, self.sampling), dim=-1)
        probs, finite = logp.exp(), logp.nan_to_num(neginf=0.0)
        entropy = -(probs * finite).sum(-1)
        variance = ((probs * finite**2).sum(-1) - entropy**2).clamp(min=0.0)
        root = torch.logsumexp(logp / 2, dim=-1)
        total = probs.cumsum(-1)
        above = total.gather(-1, targets[:, None])[:, 0]
        below = above - probs.gather(-1, targets[:, None])[:, 0]
        draw = noise[: len(targets)] * total[:, -1]
        drawn = ((draw >= below - self._tolerance) & (draw <= above + self._tolerance)).float()
        return torch.stack([logp.gather(-1, targets[:, None])[:, 0], entropy, variance, root, gap, drawn])


def in_fp32(policy: LocalPolicy) -> bool:
    """Return True if a policy samples and is scored in 32-bit precision."""
    return {policy.dtype, *(weight.dtype for weight in policy.model.parameters())} == {torch.float32}


def weights_digest(policy: LocalPolicy) -> str:
    """Return the SHA-256 over the names, types, shapes and bits of a model's weights."""
    digest = hashlib.sha256()
    for name, weight in sorted(policy.model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}\n".encode())
        digest.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def parameters(policy: LocalPolicy) -> int:
    """Return the number of parameters, shared ones counted once."""
    return sum(weight.numel() for weight in policy.model.parameters())


def _passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of rows of similar length that go through the model together."""
    part: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if part and lengths[index] * (len(part) + 1) > TOKENS:
            yield part
            part = []
        part.append(index)
    if part:
        yield part
