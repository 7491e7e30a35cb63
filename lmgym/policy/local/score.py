"""Log-probabilities and entropies of given tokens under a model, which the learner differentiates.

Entry t belongs to token t and comes from the state before it. Logits are computed in fp32, and only for the tokens that
need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmgym.policy.local.forward import Rows, head_of, is_supported, network
from lmgym.policy.local.prefixes import shared_rows
from lmgym.policy.models.vision import Media

PIECE = 1 << 26  # logits computed at a time; larger batches go piece by piece, and again in the backward pass


class TokenRows(NamedTuple):
    """Rows of tokens to score."""

    ids: Tensor  # (B, T)
    attention: Tensor  # (B, T) bool
    positions: Tensor  # (B, T)
    media: Media | None  # None for a model without vision


def positions_of(attention: Tensor) -> Tensor:
    """Return positions (B, T) that count real tokens only, so that left and right padding agree."""
    return (attention.long().cumsum(-1) - 1).clamp(min=0)


def rows_of(ids: Tensor, attention: Tensor, media: Media | None = None) -> TokenRows:
    """Return rows to score, with positions counted from `attention`."""
    return TokenRows(ids, attention.bool(), positions_of(attention.bool()), media)


def score(
    model: nn.Module,
    ids: Tensor,
    attention: Tensor,
    *,
    temperature: float = 1.0,
    mask: Tensor | None = None,
    media: Media | None = None,
) -> tuple[Tensor, Tensor]:
    """Return log-probs and entropies (nats) of `ids` (B, T), both (B, T) in fp32 and 0 where not computed.

    Computed are the tokens in `mask` (default: all) with a real token before them. `attention` (B, T) is 1 for real
    tokens, which are contiguous; padding is on either side, and on the right if there are `media`.
    """
    rows = rows_of(ids, attention, media)
    scored = _scored(rows.attention, mask)
    zeros = torch.zeros(ids.numel(), device=ids.device)
    if not scored.numel():
        return zeros.view(ids.shape), zeros.view(ids.shape).clone()
    if is_supported(model):
        hidden, place, source = _packed_states(model, rows)
        before = torch.searchsorted(place, scored) - 1  # packed: the state before is that of the previous token
        own = hidden.index_select(0, before if source is None else source[before])
        logp, entropy = _score_states(own, head_of(model), ids.flatten()[scored], temperature)
    else:  # the model's own forward pass, with logits at every column that any row needs
        row, column = scored // ids.shape[1], scored % ids.shape[1] - 1
        columns = torch.unique(column)
        inputs = model_inputs(rows)
        with _recomputing(model):
            output = model(attention_mask=rows.attention.long(), logits_to_keep=columns, use_cache=False, **inputs)
        logits = output.logits[row, torch.searchsorted(columns, column)].float()
        logp, entropy = _score_logits(logits, ids.flatten()[scored], temperature)
    return zeros.index_put((scored,), logp).view(ids.shape), zeros.index_put((scored,), entropy).view(ids.shape)


def states(model: nn.Module, ids: Tensor, attention: Tensor, *, media: Media | None = None) -> Tensor:
    """Return the last hidden states (B, T, H), 0 at padding, for value heads."""
    rows = rows_of(ids, attention, media)
    if is_supported(model):
        hidden, place, source = _packed_states(model, rows)
        packed = hidden if source is None else hidden.index_select(0, source)  # sums of its gradient have an order
        flat = packed.new_zeros(ids.numel(), packed.shape[-1]).index_copy(0, place, packed)
        return flat.view(*ids.shape, -1)
    inner: Any = model.base_model
    with _recomputing(model):
        output = inner(attention_mask=rows.attention.long(), use_cache=False, **model_inputs(rows))
    return output.last_hidden_state * rows.attention[..., None]  # type: ignore[no-any-return]


def score_states(
    model: nn.Module,
    ids: Tensor,
    attention: Tensor,
    *,
    temperature: float = 1.0,
    mask: Tensor | None = None,
    media: Media | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the results of `score` and `states`, from one forward pass if the architecture is supported."""
    hidden = states(model, ids, attention, media=media)
    scored = _scored(attention.bool(), mask)
    if not is_supported(model) or not scored.numel():
        return (*score(model, ids, attention, temperature=temperature, mask=mask, media=media), hidden)
    zeros = torch.zeros(ids.numel(), device=ids.device)
    columns = _score_states(hidden.flatten(0, 1)[scored - 1], head_of(model), ids.flatten()[scored], temperature)
    logp, entropy = (zeros.index_put((scored,), column).view(ids.shape) for column in columns)
    return logp, entropy, hidden


def model_inputs(rows: TokenRows) -> dict[str, Tensor]:
    """Return ids, positions and pictures as a model's own forward pass takes them."""
    ids, _, positions, media = rows
    if media is None:
        return {"input_ids": ids, "position_ids": positions}
    placeholders = media.placeholders(ids)
    inputs = {"input_ids": media.model_ids(ids, placeholders), "position_ids": positions}
    if not media:
        return inputs
    rotary = media.positions(placeholders)
    if rotary is not None:
        inputs["position_ids"] = rotary
    pictures = media.gallery.vision.inputs(media.prepared())
    return inputs | {name: part.to(ids.device) for name, part in pictures.items()}


def _scored(attention: Tensor, mask: Tensor | None) -> Tensor:
    """Return the flat indices (n,) of the tokens in `mask` with a real token before them."""
    chosen = attention if mask is None else mask.bool() & attention
    return (chosen & F.pad(attention, (1, -1))).flatten().nonzero()[:, 0]


def _packed_states(model: nn.Module, rows: TokenRows) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return states (M, H), the flat indices (N,) of the real tokens among B T places, and their states' indices (N,).

    The last are None if every token has a state of its own.
    """
    ids, attention, positions, media = rows
    kind = ids.device.type
    net = network(model, torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None)
    place = attention.flatten().nonzero()[:, 0]
    lengths = [n for n in attention.sum(-1).tolist() if n]
    pictures = (media.placeholders(ids).flatten()[place], media.prepared()) if media else None
    tokens, at = ids.flatten()[place], positions.flatten()[place]
    shared = None if media else shared_rows(tokens, lengths)
    if shared is not None:
        tokens, at = tokens[shared.order], at[shared.order]
    attend = Rows(lengths, ids.device).causal if shared is None else shared.attend
    with torch.autocast(kind, enabled=False):  # weights are cast once instead of once an operation
        hidden = net.hidden(tokens, at, lambda _, q, k, v: attend(q, k, v), pictures)
    return hidden, place, None if shared is None else shared.source


@contextmanager
def _recomputing(model: nn.Module) -> Iterator[None]:
    """Let layers with gradient checkpointing recompute activations, which they do in training mode only."""
    layers = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    for layer in layers:
        layer.training = torch.is_grad_enabled()
    yield
    for layer in layers:
        layer.training = False


def _score_states(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Return log-probs and entropies of `targets` (n,) after states (n, H), a piece of the logits at a time."""
    head = head.to(torch.promote_types(head.dtype, torch.float32))  # half-precision logits are off by a per cent

    def piece(part: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(part.device.type, enabled=False):
            logits = F.linear(part.to(head.dtype), head).float()
        return _score_logits(logits, target, temperature)

    size = max(1, PIECE // head.shape[0])
    if len(targets) <= size:
        return piece(hidden, targets)
    pieces = [
        checkpoint(piece, *parts, use_reentrant=False)
        for parts in zip(torch.split(hidden, size), torch.split(targets, size), strict=True)
    ]
    logp, entropy = (torch.cat(column) for column in zip(*pieces, strict=True))
    return logp, entropy


def _score_logits(logits: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Return log-probs and entropies (n,) of `targets` under fp32 logits (n, V)."""
    logp = torch.log_softmax(logits / temperature if temperature != 1 else logits, dim=-1)
    return logp.gather(-1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(-1)
