"""Muon for processors without bfloat16 arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor


class Float32Muon(torch.optim.Muon):
    """Iterate in float32 where PyTorch's Muon iterates in bfloat16, which CPUs without such instructions only emulate.

    The state is that of `torch.optim.Muon`, so either reads the other's checkpoints. Matrices only; rates are scaled
    as by `adjust_lr_fn="match_rms_adamw"` (Liu et al. 2025, arXiv 2502.16982).
    """

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update the weights that have a gradient."""
        for group in self.param_groups:
            for weight in (weight for weight in group["params"] if weight.grad is not None):
                grad, state = weight.grad, self.state[weight]
                average = state.setdefault("momentum_buffer", torch.zeros_like(grad))
                average.lerp_(grad, 1 - group["momentum"])
                direction = orthogonal(
                    grad.lerp(average, group["momentum"]) if group["nesterov"] else average,
                    group["ns_coefficients"],
                    group["ns_steps"],
                    eps=group["eps"],
                )
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(direction, alpha=-0.2 * group["lr"] * max(weight.shape) ** 0.5)


def orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, *, eps: float) -> Tensor:
    """Return U V^T of the matrix (n, m) = U S V^T, roughly: S becomes 0.5 to 1.5 (Jordan et al. 2024, Muon)."""
    tall = matrix.shape[0] > matrix.shape[1]
    result = matrix.T if tall else matrix
    result = result / result.norm().clamp(min=eps)
    a, b, c = coefficients
    for _ in range(steps):
        gram = result @ result.T
        result = torch.addmm(result, torch.addmm(gram, gram, gram, beta=b, alpha=c), result, beta=a)
    return result.T if tall else result
