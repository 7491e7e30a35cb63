"""Optimiser steps on a batch; gradients are accumulated over micro-batches and equal those of the whole batch."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lmgym.errors import RecipeError
from lmgym.policy.local.forward import final_norm_of, is_supported
from lmgym.policy.local.prefixes import families
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.interfaces import Optimiser, ScoredBatch, StatefulLoss, Term
from lmgym.train.math import aggregation
from lmgym.train.muon import Float32Muon
from lmgym.train.ranks import ALONE, Ranks, added
from lmgym.train.schedule import StageProgress

Score = Callable[[Batch], tuple[Tensor, ...]]  # log-probs, entropies [and values] (B, T) of the tokens with a weight
Share = tuple[Tensor, float]  # (B, 1) factor of the loss, and scale of the figures
ADAM_ONLY = ("embed", "lm_head", "value")  # embeddings and heads, which Muon does not train


@dataclass
class Updater:
    """The weights that a stage trains, with their optimisers."""

    model: nn.Module
    score: Score
    spec: Optimiser
    terms: Sequence[Term]
    beside: Sequence[nn.Module] = ()  # further modules that the terms train
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        self.terms = copy.deepcopy(list(self.terms))  # losses with state are this stage's own
        self.weights = nn.ModuleList([self.model, *self.beside])
        self.optimisers = optimisers(self.weights, self.spec)
        self.device = next(self.model.parameters()).device
        self.autocast = halves(self.device) if self.spec.autocast is None else self.spec.autocast
        self.micro_tokens = self.spec.micro_tokens or fitting_tokens(self.model, self.device)
        if self.autocast and self.device.type == "cuda":  # for the logits, the one product in float32
            torch.set_float32_matmul_precision("high")
        if self.spec.checkpointing:
            recompute_activations(self.model)
        together = [term.together for term in self.terms if term.together is not None]
        assert len(together) <= 1, "at most one term of the loss may set together"
        self.together = together[0] if together else None  # keys (B,) of rows that belong into one micro-batch
        self.steps = 0  # optimiser steps in this stage
        self.pace = 1.0  # factor of the learning rates
        self.scores_old = False  # use the detached log-probs of the single step as old log-probs

    def update(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> dict[str, float]:
        """Train on a batch and return mean figures; `seed` determines the order of its episodes."""
        batch = batch.rows(batch.weight.any(1).nonzero()[:, 0]) if bool(batch.weight.any()) else batch
        if not bool(batch.mask.any()):
            return {"trained_tokens": 0.0}
        unit = None if self.together is None else self.together(batch)
        sums: dict[str, float] = defaultdict(float)
        norms: list[float] = []
        ratios = Ratios()
        for epoch in range(self.spec.epochs):
            for part in minibatches(batch, self.spec.minibatches, seed=[*seed, epoch], unit=unit):
                norms.append(self._step(part, progress, sums, ratios))
                ratios.first = False
        check_finite(self.weights.parameters())
        for loss in self._stateful():
            loss.update(batch)
        sums = added(self.ranks.gathered([dict(sums)]))
        ratios = Ratios.of_all(self.ranks.gathered([ratios]))
        tokens = sums.pop("trained_tokens")
        return {
            **{name: total / tokens for name, total in sums.items()},
            **(ratios.figures() if bool(batch.logprobs.any()) else {}),  # demonstrations have no old log-probs
            "gradient_norm": sum(norms) / len(norms),
            "lr": self.spec.lr * self.pace,
            "trained_tokens": tokens,
            "optimiser_steps": self.steps,
        }

    def _step(self, batch: Batch, progress: StageProgress, sums: dict[str, float], ratios: Ratios) -> float:
        """Take an optimiser step; add to `sums` over tokens and return the gradient norm before clipping."""
        counted = [term.tokens(batch) for term in self.terms]
        factors = [
            aggregation(mask, batch.episode, term.aggregation, longest=term.longest)
            * (term.coef(progress) * term.rows(batch)[:, None])
            for term, mask in zip(self.terms, counted, strict=True)
        ]
        trained = float(batch.mask.sum())  # figures are means over trained tokens
        scales = [trained / max(1.0, float(mask.sum())) for mask in counted]
        unit = self._families(batch) if self.together is None else self.together(batch)
        runs = micro_batches(batch.lengths, self.micro_tokens // self.ranks.size, unit)
        for rows in self.ranks.share(runs):
            part = batch.rows(rows)
            own = [(factor[rows].to(self.device), scale) for factor, scale in zip(factors, scales, strict=True)]
            self._backward(part.to(self.device), own, sums, ratios)
        self.ranks.add_gradients(self.weights)
        norm = float(nn.utils.clip_grad_norm_(self.weights.parameters(), self.spec.clip or math.inf))
        if not math.isfinite(norm):
            raise RecipeError(f"the gradient is {norm}; {ADVICE}")
        self.steps += 1
        rise = min(1.0, self.steps / self.spec.warmup) if self.spec.warmup else 1.0
        self.pace = rise * self.spec.schedule(progress)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * self.pace
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return norm

    def _families(self, batch: Batch) -> Tensor | None:
        """Return numbers (B,) of rows that begin alike, if there are forks and the model computes that part once."""
        supported = hasattr(self.model, "config") and is_supported(self.model)
        if batch.media or not bool(batch.forked.any()) or not supported:
            return None
        rows = zip(batch.ids.numpy(), batch.lengths.tolist(), strict=True)
        return families([row[:length] for row, length in rows])

    def _backward(self, batch: Batch, shares: list[Share], sums: dict[str, float], ratios: Ratios) -> None:
        """Accumulate the gradient of a micro-batch; `shares` has the factors of each term in loss and figures."""
        logprobs, entropy, *value = self.scored(batch)
        stored = batch.stored[:, None]
        old = torch.where(stored, batch.logprobs, logprobs.detach()) if self.scores_old else batch.logprobs
        own = replace(batch, logprobs=old)
        scored = ScoredBatch(batch=own, logprobs=logprobs, entropy=entropy, value=value[0] if value else None)
        loss = torch.zeros((), dtype=torch.float64, device=self.device)
        for term, (factor, scale) in zip(self.terms, shares, strict=True):
            tokens, figures = term.loss(scored)
            loss = loss + (tokens * batch.weight * factor).sum()
            for name, values in {term.name: tokens, **figures}.items():
                sums[name] += float(values.detach()[term.tokens(batch)].double().sum()) * scale
        if not bool(torch.isfinite(loss)):
            raise RecipeError(f"the loss is {float(loss.detach())}; {ADVICE}")
        loss.backward()  # type: ignore[no-untyped-call]
        sums["trained_tokens"] += int(batch.mask.sum())
        sums["entropy"] += float(entropy.detach()[batch.mask].double().sum())
        ratios.see((logprobs.detach() - batch.logprobs)[batch.mask & ~stored])

    def scored(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return log-probs, entropies and possibly values (B, T), in the precision of this stage."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            return self.score(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return step count, optimisers and the state of losses."""
        return {
            "steps": self.steps,
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "losses": [loss.state_dict() for loss in self._stateful()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.steps = state["steps"]
        for part, saved in zip(self.optimisers, state["optimisers"], strict=True):
            part.load_state_dict(saved)
        for loss, saved in zip(self._stateful(), state["losses"], strict=True):
            loss.load_state_dict(saved)

    def _stateful(self) -> list[StatefulLoss]:
        """Return the losses that keep a state."""
        return [term.loss for term in self.terms if isinstance(term.loss, StatefulLoss)]


ADVICE = "the weights before this step are in the last checkpoint; try a smaller lr"


@dataclass
class Ratios:
    """Log-ratios to the sampling policy: the gap before the first optimiser step, and the extremes over all steps."""

    least: float = 0.0  # logarithms
    most: float = 0.0
    tokens: int = 0  # of the first step
    total: float = 0.0  # of absolute differences there
    largest: float = 0.0
    first: bool = True

    def see(self, difference: Tensor) -> None:
        """Record log-ratios (N,)."""
        if not difference.numel():
            return
        self.least = min(self.least, float(difference.min()))
        self.most = max(self.most, float(difference.max()))
        if self.first:
            self.tokens += difference.numel()
            self.total += float(difference.abs().double().sum())
            self.largest = max(self.largest, float(difference.abs().max()))

    @classmethod
    def of_all(cls, parts: Sequence[Ratios]) -> Ratios:
        """Return the combined record of several processes."""
        return cls(
            least=min(part.least for part in parts),
            most=max(part.most for part in parts),
            tokens=sum(part.tokens for part in parts),
            total=sum(part.total for part in parts),
            largest=max(part.largest for part in parts),
        )

    def figures(self) -> dict[str, float]:
        """Return extremes of the ratios, and the gap of the first step."""
        least, most = (math.exp(min(max(x, -20.0), 20.0)) for x in (self.least, self.most))
        gap = {"gap_mean": self.total / max(1, self.tokens), "gap_max": self.largest}
        return {"ratio_min": least, "ratio_max": most, **gap}


def minibatches(batch: Batch, count: int, *, seed: Sequence[int], unit: Tensor | None = None) -> Iterator[Batch]:
    """Split a batch by episodes, or by `unit` (B,), at random into at most `count` parts; one part is the batch."""
    if count == 1:
        yield batch
        return
    unit = batch.episode if unit is None else unit
    units = np.random.default_rng(list(seed)).permutation(torch.unique(unit).numpy())
    for part in np.array_split(units, min(count, len(units))):
        rows = torch.isin(unit, torch.from_numpy(part)).nonzero()[:, 0]
        if bool(batch.mask[rows].any()):
            yield batch.rows(rows)


@torch.no_grad()
def logprobs_of(batch: Batch, score: Score, device: torch.device, *, tokens: int, ranks: Ranks = ALONE) -> Tensor:
    """Return log-probs (B, T) of the batch under `score`, in passes of `tokens` padded tokens over all processes."""
    logprobs = torch.zeros_like(batch.logprobs)
    for rows in ranks.share(micro_batches(batch.lengths, tokens // ranks.size)):
        part = batch.rows(rows)
        logprobs[rows, : part.ids.shape[1]] = score(part.to(device))[0].to(logprobs)
    return ranks.summed(logprobs)


def optimisers(model: nn.Module, spec: Optimiser) -> list[torch.optim.Optimizer]:
    """Return AdamW for all weights, or Muon for the hidden matrices and AdamW for the rest."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    matrices: list[Tensor] = []
    if spec.kind == "muon":
        matrices = [weight for name, weight in named if weight.ndim == 2 and not any(w in name for w in ADAM_ONLY)]
    ids = {id(weight) for weight in matrices}
    rest = [weight for _, weight in named if id(weight) not in ids]
    gain = None if spec.final_norm_lr is None else trained_gain(model)
    result: list[torch.optim.Optimizer] = []
    if matrices:
        muon = torch.optim.Muon if halves(matrices[0].device) else Float32Muon
        decay, scale = spec.weight_decay, "match_rms_adamw"
        result.append(muon(matrices, lr=spec.muon_lr, weight_decay=decay, adjust_lr_fn=scale))
    if rest:  # empty for adapters, which are all matrices
        groups: list[dict[str, Any]] = [{"params": [weight for weight in rest if weight is not gain]}]
        if gain is not None:
            groups.append({"params": [gain], "lr": spec.final_norm_lr})
        decay, eps = spec.weight_decay, spec.eps
        result.append(torch.optim.AdamW(groups, lr=spec.lr, betas=spec.betas, eps=eps, weight_decay=decay))
    for optimiser in result:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return result


def trained_gain(weights: nn.Module) -> Tensor:
    """Return the gain of the norm before the output embedding; raise RecipeError if it is missing or frozen."""
    models = (part for part in weights.modules() if hasattr(part, "get_decoder"))
    gain = next((final_norm_of(model) for model in models), None)
    if gain is None or not gain.requires_grad:
        raise RecipeError(
            "final_norm_lr needs a trained norm before the output embedding, which this model lacks; leave it out"
        )
    return gain


def recompute_activations(model: nn.Module) -> None:
    """Enable activation checkpointing in a Hugging Face model."""
    model_: Any = model
    enable = getattr(model_, "activation_checkpointing_enable", None) or model_.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def halves(device: torch.device) -> bool:
    """Return True if the device multiplies bfloat16 matrices in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in torch 2.11
    return device.type == "cpu" and any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16"))


def fitting_tokens(model: nn.Module, device: torch.device) -> int:
    """Return the padded tokens of a pass: 4,096 on a CPU; on a GPU what a quarter of its memory holds, up to 32,768."""
    if device.type != "cuda":
        return 4096
    memory = torch.cuda.get_device_properties(device).total_memory // 4
    return min(32_768, max(1024, memory // token_bytes(model)))


def token_bytes(model: nn.Module) -> int:
    """Return about the bytes that a training pass in bfloat16 keeps for a token.

    Each layer keeps 18 vectors of the hidden and 4 of the intermediate size: 38 GB for 32,768 tokens of a model of
    135 million weights on an H100 (`python -m tests.bench.gpu`).
    """
    config: Any = next(part.config for part in model.modules() if hasattr(part, "config"))
    sizes = config.get_text_config()
    between = getattr(sizes, "intermediate_size", None) or 4 * sizes.hidden_size
    return int(2 * sizes.num_hidden_layers * (18 * sizes.hidden_size + 4 * between))


def check_finite(weights: Iterable[Tensor], of: str = "") -> None:
    """Raise RecipeError for NaN or infinite weights, which must not replace the last good checkpoint."""
    if not bool(torch.stack([weight.isfinite().all() for weight in weights]).all()):
        raise RecipeError(f"the weights{of} are NaN or infinite; {ADVICE}{of}")
