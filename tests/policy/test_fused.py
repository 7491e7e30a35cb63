"""Gradients written by hand are those of autograd."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from lmgym.policy.local.fused import MAX_PLAIN, causal, rms


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


@pytest.mark.parametrize("weight", [(6, 8), (8,)])
def test_gradient_of_the_norm_is_that_of_finite_differences(weight):
    assert gradcheck(lambda x, w: rms(x, w, 1e-6), (normal(5, 6, 8), normal(*weight, seed=1)))


def test_norm_is_the_one_of_torch():
    x, weight = normal(7, 16), normal(16, seed=1)
    torch.testing.assert_close(rms(x, weight, 1e-6), F.rms_norm(x, (16,), weight, 1e-6), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_attention_by_plain_products_is_the_fused_one(heads):
    parts = [normal(3, count, 9, 8, seed=i) for i, count in enumerate((heads[0], heads[1], heads[1]))]
    ours = causal(*parts)
    theirs = F.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    grads = [torch.autograd.grad(made.square().sum(), parts) for made in (ours, theirs)]
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-10, atol=1e-10)


def test_long_rows_go_by_the_fused_kernel():
    parts = [normal(1, 1, MAX_PLAIN + 1, 4, seed=i, dtype=torch.float32) for i in range(3)]
    assert "ScaledDotProduct" in type(causal(*parts).grad_fn).__name__
