"""Our own forward pass over a Hugging Face model's weights, for the architectures we know: Qwen2, Qwen3 and Llama.

It takes tokens packed one after another, without padding, and leaves attention to its caller: the decoder attends to
its key-value cache, the learner to the row itself. Query, key and value weights are fused, gate and up as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmgym.policy.local.fused import causal, rms
from lmgym.policy.local.lora import weight_of
from lmgym.policy.models.vision import Sight

KNOWN = ("qwen2", "qwen3", "llama", "tiny_vl")
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]  # (layer, q (N, Hq, D), k (N, Hk, D), v) -> (N, Hq * D)
See = Callable[[Sequence[Sight]], Tensor]  # pictures -> embeddings (n, H) of all their places
Seen = tuple[Tensor, Sequence[Sight]]  # which of N tokens are a picture's (N,) bool, and the pictures in their order


@dataclass(frozen=True, kw_only=True)
class Block:
    """The weights of one layer; biases and the norm of queries and keys where the architecture has them."""

    norm: Tensor  # (H,)
    qkv: Tensor  # ((Hq + 2 Hk) D, H)
    qkv_bias: Tensor | None
    qk_norm: Tensor | None  # (Hq + Hk, D)
    out: Tensor  # (H, Hq D)
    out_bias: Tensor | None
    mlp_norm: Tensor  # (H,)
    gate_up: Tensor  # (2 I, H)
    gate_up_bias: Tensor | None
    down: Tensor  # (H, I)
    down_bias: Tensor | None


@dataclass(frozen=True, kw_only=True)
class Network:
    """A model as the forward pass needs it."""

    blocks: list[Block]
    embed: Tensor  # (V, H)
    norm: Tensor  # (H,)
    head: Tensor  # (V, H)
    frequency: Tensor  # (D / 2,), of the rotary embedding
    scaling: float  # of its sines
    heads: int  # Hq
    kv_heads: int  # Hk
    eps: float
    see: See | None = None  # where it takes pictures
    recompute: bool = False  # activations of a layer in the backward pass, in place of keeping them

    def rotary(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines (N, 1, D) of positions (N,), such that x cos + swapped(x) sin turns x."""
        angle = positions[:, None].float() * self.frequency
        cos, sin = angle.cos() * self.scaling, angle.sin() * self.scaling
        dtype = self.embed.dtype
        return torch.cat((cos, cos), -1)[:, None].to(dtype), torch.cat((-sin, sin), -1)[:, None].to(dtype)

    def hidden(self, ids: Tensor, positions: Tensor, attend: Attend, seen: Seen | None = None) -> Tensor:
        """Last hidden states (N, H), normalised, of tokens `ids` (N,) at `positions` (N,)."""
        cos, sin = self.rotary(positions)
        x = F.embedding(ids, self.embed) if seen is None else self._with_pictures(ids, *seen)
        recompute = self.recompute and torch.is_grad_enabled()
        layer = partial(checkpoint, self._layer, use_reentrant=False) if recompute else self._layer
        for index in range(len(self.blocks)):
            x = layer(x, cos, sin, index, attend)
        return rms(x, self.norm, self.eps)

    def _with_pictures(self, ids: Tensor, shown: Tensor, sights: Sequence[Sight]) -> Tensor:
        """Embeddings (N, H) of `ids` (N,), those of the places `shown` (N,) as pictures give them."""
        assert self.see is not None, "pictures for a model that takes none"
        words = F.embedding(ids.masked_fill(shown, 0), self.embed)
        return words.index_copy(0, shown.nonzero()[:, 0], self.see(sights).to(words.dtype))

    def _layer(self, x: Tensor, cos: Tensor, sin: Tensor, index: int, attend: Attend) -> Tensor:
        """States (N, H) after layer `index`."""
        block = self.blocks[index]
        q, k, v = self._project(block, rms(x, block.norm, self.eps), cos, sin)
        x = x + F.linear(attend(index, q, k, v), block.out, block.out_bias)
        gate, up = F.linear(rms(x, block.mlp_norm, self.eps), block.gate_up, block.gate_up_bias).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, block.down, block.down_bias)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token (N, V) in fp32."""
        return F.linear(hidden, self.head).float()

    def _project(self, block: Block, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries (N, Hq, D), turned keys and plain values (N, Hk, D)."""
        turned = self.heads + self.kv_heads
        qkv = F.linear(x, block.qkv, block.qkv_bias).view(x.shape[0], turned + self.kv_heads, -1)
        qk, v = qkv[:, :turned], qkv[:, turned:]
        if block.qk_norm is not None:
            qk = rms(qk, block.qk_norm, self.eps)
        qk = turn(qk, cos, sin)
        return qk[:, : self.heads], qk[:, self.heads :], v


class Rows:
    """Packed tokens of rows of unequal length, as attention takes them: padded on the right."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        self.count, self.width = len(lengths), max(lengths)  # R, T
        self.tokens = sum(lengths)  # N
        self.index: Tensor | None = None  # (N,), where the tokens stand among R T places
        if self.tokens < self.count * self.width:
            real = torch.arange(self.width) < torch.tensor(lengths)[:, None]
            self.index = real.flatten().nonzero()[:, 0].to(device)

    def pad(self, x: Tensor) -> Tensor:
        """Packed x (N, heads, D) as rows (R, heads, T, D)."""
        if self.index is not None:
            x = x.new_zeros(self.count * self.width, *x.shape[1:]).index_copy(0, self.index, x)
        return x.reshape(self.count, self.width, *x.shape[1:]).transpose(1, 2)

    def unpad(self, x: Tensor) -> Tensor:
        """Rows (R, heads, T, D) as packed (N, heads D)."""
        x = x.transpose(1, 2).reshape(self.count * self.width, -1)
        return x if self.index is None else x.index_select(0, self.index)

    def causal(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal attention within the rows, for packed q (N, Hq, D), k and v (N, Hk, D); (N, Hq D)."""
        q, k, v = self.pad(q), self.pad(k), self.pad(v)
        return self.unpad(causal(q, k, v))


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x (N, heads, D)."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat((x[..., half:], x[..., :half]), -1) * sin


def known(model: nn.Module) -> bool:
    """Whether `network` computes what `model` does."""
    config: Any = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in KNOWN
        and config.hidden_act == "silu"
        and rope.get("rope_type", "default") in ("default", "linear", "llama3", "yarn")
        and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    )


def network(model: nn.Module, dtype: torch.dtype | None = None) -> Network:
    """The weights of a known `model`, fused; differentiable where grad is on. `dtype` casts them."""
    config: Any = model.config
    inner: Any = model.model

    def cast(weight: Any) -> Any:
        return weight if dtype is None or weight is None else weight.to(dtype)

    return Network(
        blocks=[_block(layer, config, cast) for layer in inner.layers],
        embed=cast(inner.embed_tokens.weight),
        norm=cast(inner.norm.weight),
        head=cast(head_of(model)),
        frequency=inner.rotary_emb.inv_freq,
        scaling=float(inner.rotary_emb.attention_scaling),
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        eps=config.rms_norm_eps,
        see=getattr(model, "see", None),
        recompute=any(getattr(module, "gradient_checkpointing", False) for module in model.modules()),
    )


def head_of(model: nn.Module) -> Tensor:
    """The output embedding of a model, (V, H)."""
    embeddings: Any = model.get_output_embeddings()  # type: ignore[operator]
    return embeddings.weight  # type: ignore[no-any-return]


def gain_of(model: nn.Module) -> Tensor | None:
    """The gain (H,) of the norm before the output embedding of a model; None where it has none."""
    decoder: Any = model.get_decoder()  # type: ignore[operator]
    found = [getattr(child, "weight", None) for child in decoder.children()]
    gains = [weight for weight in found if weight is not None and weight.ndim == 1]
    return gains[-1] if gains else None


def _block(layer: Any, config: Any, cast: Callable[[Any], Any]) -> Block:
    attention, mlp = layer.self_attn, layer.mlp
    project = (attention.q_proj, attention.k_proj, attention.v_proj)
    norms = None
    if hasattr(attention, "q_norm"):
        heads = (config.num_attention_heads, config.num_key_value_heads)
        weights = (attention.q_norm.weight, attention.k_norm.weight)
        norms = torch.cat([w.expand(n, -1) for w, n in zip(weights, heads, strict=True)])
    return Block(
        norm=cast(layer.input_layernorm.weight),
        qkv=cast(torch.cat([weight_of(part) for part in project])),
        qkv_bias=cast(_biases(*project)),
        qk_norm=cast(norms),
        out=cast(weight_of(attention.o_proj)),
        out_bias=cast(attention.o_proj.bias),
        mlp_norm=cast(layer.post_attention_layernorm.weight),
        gate_up=cast(torch.cat([weight_of(mlp.gate_proj), weight_of(mlp.up_proj)])),
        gate_up_bias=cast(_biases(mlp.gate_proj, mlp.up_proj)),
        down=cast(weight_of(mlp.down_proj)),
        down_bias=cast(mlp.down_proj.bias),
    )


def _biases(*parts: Any) -> Tensor | None:
    return None if parts[0].bias is None else torch.cat([part.bias for part in parts])
