"""Models small enough for a test."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lmgym.policy.local.score import score
from lmgym.policy.models.tiny import tiny_model
from lmgym.train.batch import Batch

VOCABULARY = 13


def toy_model(seed: int = 0, *, vocab: int = VOCABULARY, hidden: int = 16) -> nn.Module:
    """A transformer of a few thousand weights."""
    changes = {
        "hidden_size": hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 2 * hidden,
        "max_position_embeddings": 256,
    }
    return tiny_model(vocab=vocab, seed=seed, changes=changes).eval()


class Bigram(nn.Module):
    """Log-odds of a token after another, in float64."""

    def __init__(self, vocab: int = VOCABULARY, seed: int = 0) -> None:
        super().__init__()
        table = torch.randn(vocab, vocab, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.table = nn.Parameter(table)

    def score(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies (B, T)."""
        logp = torch.log_softmax(self.table[batch.ids[:, :-1]], -1)
        chosen = logp.gather(-1, batch.ids[:, 1:, None])[..., 0]
        entropy = -(logp.exp() * logp).sum(-1)
        return tuple(nn.functional.pad(x, (1, 0)) for x in (chosen, entropy))


def scorer(model: nn.Module):
    """A score function for an Updater."""
    return lambda batch: score(model, batch.ids, batch.attention, mask=batch.weight != 0)


def gradient(model: nn.Module) -> Tensor:
    """All gradients as one vector (N,)."""
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
