"""Log-probabilities and entropies of given tokens under a model: what the learner differentiates.

Everything is in token position space: entry t belongs to token t, and comes from the state before it. Logits are made
only where they are asked for, and in fp32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmgym.policy.local.forward import Rows, head_of, known, network
from lmgym.policy.models.vision import Media

PIECE = 1 << 26  # logits made at a time; what is beyond is made piece by piece, and again in the backward pass


class Given(NamedTuple):
    """Rows of tokens and what goes with them."""

    ids: Tensor  # (B, T)
    attention: Tensor  # (B, T) bool
    positions: Tensor | None  # (B, T); None: as `attention` counts
    media: Media | None  # of a model that takes pictures, be there any or none

    def places(self) -> Tensor:
        """Positions (B, T)."""
        return positions_of(self.attention) if self.positions is None else self.positions


def positions_of(attention: Tensor) -> Tensor:
    """Positions (B, T) that count real tokens only, so that left and right padding agree."""
    return (attention.long().cumsum(-1) - 1).clamp(min=0)


def score(
    model: nn.Module,
    ids: Tensor,
    attention: Tensor,
    *,
    positions: Tensor | None = None,
    temperature: float = 1.0,
    mask: Tensor | None = None,
    media: Media | None = None,
) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies (nats) of `ids` (B, T), both (B, T) in fp32 and 0 where not computed.

    Computed are the tokens with `mask` set (all without one) that have a real token before them. `attention` (B, T)
    is 1 for real tokens, which stand together; padding is on either side, and on the right where there are `media`.
    """
    attention = attention.bool()
    at = _computed(attention, mask)
    zeros = torch.zeros(ids.numel(), device=ids.device)
    if not at.numel():
        return zeros.view(ids.shape), zeros.view(ids.shape).clone()
    make = _known_logits if known(model) else _model_logits
    logp, entropy = make(model, Given(ids, attention, positions, media), at, temperature)
    return zeros.index_put((at,), logp).view(ids.shape), zeros.index_put((at,), entropy).view(ids.shape)


def states(
    model: nn.Module,
    ids: Tensor,
    attention: Tensor,
    *,
    positions: Tensor | None = None,
    media: Media | None = None,
) -> Tensor:
    """Last hidden states (B, T, H), 0 at padding: what a value head reads."""
    given = Given(ids, attention.bool(), positions, media)
    if known(model):
        packed, place = _packed_states(model, given)
        rows = packed.new_zeros(ids.numel(), packed.shape[-1]).index_copy(0, place, packed)
        return rows.view(*ids.shape, -1)
    inner: Any = model.base_model
    with _recomputing(model):
        output = inner(attention_mask=given.attention.long(), use_cache=False, **inputs(given))
    return output.last_hidden_state * given.attention[..., None]  # type: ignore[no-any-return]


def score_states(
    model: nn.Module,
    ids: Tensor,
    attention: Tensor,
    *,
    temperature: float = 1.0,
    mask: Tensor | None = None,
    media: Media | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """What `score` and `states` say, from one forward pass where the architecture is known."""
    hidden = states(model, ids, attention, media=media)
    at = _computed(attention.bool(), mask)
    if not known(model) or not at.numel():
        return (*score(model, ids, attention, temperature=temperature, mask=mask, media=media), hidden)
    zeros = torch.zeros(ids.numel(), device=ids.device)
    found = _by_pieces(hidden.flatten(0, 1)[at - 1], head_of(model), ids.flatten()[at], temperature)
    logp, entropy = (zeros.index_put((at,), each).view(ids.shape) for each in found)
    return logp, entropy, hidden


def _computed(attention: Tensor, mask: Tensor | None) -> Tensor:
    """Where among B T places the tokens of `mask` stand that have a real one before them; (n,)."""
    asked = attention if mask is None else mask.bool() & attention
    return (asked & F.pad(attention, (1, -1))).flatten().nonzero()[:, 0]


def _packed_states(model: nn.Module, given: Given) -> tuple[Tensor, Tensor]:
    """States (N, H) of the real tokens, and where these stand among B T places (N,)."""
    ids, attention, _, media = given
    kind = ids.device.type
    net = network(model, torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None)
    place = attention.flatten().nonzero()[:, 0]
    rows = Rows([n for n in attention.sum(-1).tolist() if n], ids.device)
    seen = (media.shown(ids).flatten()[place], media.sights()) if media else None
    tokens, at = ids.flatten()[place], given.places().flatten()[place]
    with torch.autocast(kind, enabled=False):  # the weights are cast once instead of once an operation
        hidden = net.hidden(tokens, at, lambda _, q, k, v: rows.causal(q, k, v), seen)
    return hidden, place


def _known_logits(model: nn.Module, given: Given, at: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies of the tokens `at` (n,) by our own forward pass."""
    hidden, place = _packed_states(model, given)
    before = torch.searchsorted(place, at) - 1  # packed, the token before is the state before
    return _by_pieces(hidden[before], head_of(model), given.ids.flatten()[at], temperature)


def _model_logits(model: nn.Module, given: Given, at: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The same by the model's own forward pass, with logits at the columns that any row asks for."""
    ids = given.ids
    row, column = at // ids.shape[1], at % ids.shape[1] - 1
    columns = torch.unique(column)
    with _recomputing(model):
        output = model(
            attention_mask=given.attention.long(),
            logits_to_keep=columns,
            use_cache=False,
            **inputs(given),
        )
    logits = output.logits[row, torch.searchsorted(columns, column)].float()
    return _of_tokens(logits, ids.flatten()[at], temperature)


def inputs(given: Given) -> dict[str, Tensor]:
    """Ids, positions and pictures as a model's own forward pass takes them."""
    ids, _, _, media = given
    if media is None:
        return {"input_ids": ids, "position_ids": given.places()}
    shown = media.shown(ids)
    if not media:
        return {"input_ids": media.fed(ids, shown), "position_ids": given.places()}
    positions = media.positions(shown)
    positions = given.places() if positions is None else positions
    pictures = {name: part.to(ids.device) for name, part in media.gallery.vision.inputs(media.sights()).items()}
    return {"input_ids": media.fed(ids, shown), "position_ids": positions, **pictures}


@contextmanager
def _recomputing(model: nn.Module) -> Iterator[None]:
    """Let the layers of a model that shall keep no activations do so: they obey in training only, which stays off."""
    layers = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    for layer in layers:
        layer.training = torch.is_grad_enabled()
    yield
    for layer in layers:
        layer.training = False


def _by_pieces(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies of `targets` (n,) after states (n, H), a piece of the logits at a time."""

    def piece(part: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(part.device.type, enabled=False):  # half-precision logits are off by a per cent
            logits = F.linear(part.to(head.dtype), head).float()
        return _of_tokens(logits, target, temperature)

    size = max(1, PIECE // head.shape[0])
    if len(targets) <= size:
        return piece(hidden, targets)
    pieces = [
        checkpoint(piece, *parts, use_reentrant=False)
        for parts in zip(torch.split(hidden, size), torch.split(targets, size), strict=True)
    ]
    logp, entropy = (torch.cat(column) for column in zip(*pieces, strict=True))
    return logp, entropy


def _of_tokens(logits: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies (n,) of `targets` under logits (n, V) in fp32."""
    logp = torch.log_softmax(logits / temperature if temperature != 1 else logits, dim=-1)
    return logp.gather(-1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(-1)
