"""Parts of the forward pass with hand-written gradients.

On a CPU a small model spends more time in the many small steps of autograd's versions than in its matrix products: a
root-mean-square norm and its gradient cost twice a projection of the same size.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

MAX_PLAIN = 1024  # tokens of a row up to which all attention scores are computed at once


class _Rms(torch.autograd.Function):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension; weight is (D,) or (H, D)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=wide)
        scale = (norm.square() / x.shape[-1] + eps).rsqrt().to(x.dtype)
        ctx.save_for_backward(x, weight, scale)
        return x * scale * weight

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, scale = ctx.saved_tensors
        scaled = x * scale
        by_weight = grads[0] * weight
        drift = (by_weight * scaled).sum(-1, keepdim=True) / x.shape[-1]
        gradient = torch.addcmul(by_weight, scaled, drift, value=-1).mul_(scale)
        of_weight = (grads[0] * scaled).flatten(0, -1 - weight.ndim).sum(0)
        return gradient, of_weight, None


def rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return the root-mean-square norm over the last dimension times `weight`, (D,) or (H, D)."""
    if x.device.type == "cuda":  # one kernel there
        size = x.shape[-1:]
        return F.rms_norm(x, size, weight, eps) if weight.ndim == 1 else F.rms_norm(x, size, eps=eps) * weight
    return _Rms.apply(x, weight, eps)  # type: ignore[no-any-return, no-untyped-call]


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return causal attention of q (B, Hq, T, D) to k and v (B, Hk, T, D).

    Short rows on a CPU use plain products, whose backward pass is twice as fast as the fused kernel's.
    """
    batch, heads, width, size = q.shape
    if q.device.type != "cpu" or width > MAX_PLAIN or not torch.is_grad_enabled():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    groups = k.shape[1]
    future = torch.full((width, width), -torch.inf, dtype=q.dtype).triu(1).repeat(heads // groups, 1)
    keys, values = (x.reshape(batch * groups, width, size) for x in (k, v))
    queries = q.reshape(batch * groups, heads // groups * width, size)
    scores = torch.baddbmm(future.expand(len(keys), -1, -1), queries, keys.transpose(1, 2), alpha=size**-0.5)
    return torch.bmm(scores.softmax(-1), values).view(q.shape)
