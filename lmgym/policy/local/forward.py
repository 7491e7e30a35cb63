"""Our own forward pass over a Hugging Face model's weights, for the architectures Qwen2, Qwen3 and Llama.

It takes tokens packed one after another, without padding, and leaves attention to its caller: the decoder attends to
its key-value cache, the learner to the row itself. Query, key and value weights are fused, gate and up as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmgym.policy.local.fused import causal, rms
from lmgym.policy.local.lora import weight_of
from lmgym.policy.models.vision import PreparedPicture

ARCHITECTURES = ("qwen2", "qwen3", "llama", "tiny_vl")
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]  # (layer, q (N, Hq, D), k (N, Hk, D), v) -> (N, Hq * D)
EmbedPictures = Callable[[Sequence[PreparedPicture]], Tensor]  # pictures -> embeddings (n, H) of their tokens
PictureTokens = tuple[Tensor, Sequence[PreparedPicture]]  # mask (N,) of picture tokens, and the pictures in order


@dataclass(frozen=True, kw_only=True)
class Block:
    """The weights of one layer; biases and the norm of queries and keys depend on the architecture."""

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
    """The weights of a model for the forward pass."""

    blocks: list[Block]
    embed: Tensor  # (V, H)
    norm: Tensor  # (H,)
    head: Tensor  # (V, H)
    frequency: Tensor  # (D / 2,), of the rotary embedding
    scaling: float  # of its sines
    heads: int  # Hq
    kv_heads: int  # Hk
    eps: float
    embed_pictures: EmbedPictures | None = None
    recompute: bool = False  # recompute activations in the backward pass

    def hidden(self, ids: Tensor, positions: Tensor, attend: Attend, pictures: PictureTokens | None = None) -> Tensor:
        """Return the last hidden states (N, H), normalised, of tokens `ids` (N,) at `positions` (N,)."""
        angle = positions[:, None].float() * self.frequency
        cos, sin = angle.cos() * self.scaling, angle.sin() * self.scaling
        cos = torch.cat((cos, cos), -1)[:, None].to(self.embed.dtype)  # (N, 1, D)
        sin = torch.cat((-sin, sin), -1)[:, None].to(self.embed.dtype)
        x = F.embedding(ids, self.embed) if pictures is None else self._embed(ids, *pictures)
        recompute = self.recompute and torch.is_grad_enabled()
        layer = partial(checkpoint, self._layer, use_reentrant=False) if recompute else self._layer
        for index in range(len(self.blocks)):
            x = layer(x, cos, sin, index, attend)
        return rms(x, self.norm, self.eps)

    def load(self, other: Network) -> None:
        """Copy the weights of `other`, which has the same shapes, into the tensors of this network."""
        for mine, weight in zip(self._weights(), other._weights(), strict=True):
            mine.copy_(weight)

    def _weights(self) -> list[Tensor]:
        """Return all weights, in a fixed order."""
        values = [vars(block).values() for block in self.blocks]
        tensors = [value for block in values for value in block if value is not None]
        return [*tensors, self.embed, self.norm, self.head, self.frequency]

    def _embed(self, ids: Tensor, mask: Tensor, pictures: Sequence[PreparedPicture]) -> Tensor:
        """Return embeddings (N, H) of `ids` (N,), of which those with `mask` (N,) are tokens of `pictures`."""
        assert self.embed_pictures is not None, "pictures for a model without vision"
        words = F.embedding(ids.masked_fill(mask, 0), self.embed)
        return words.index_copy(0, mask.nonzero()[:, 0], self.embed_pictures(pictures).to(words.dtype))

    def _layer(self, x: Tensor, cos: Tensor, sin: Tensor, index: int, attend: Attend) -> Tensor:
        """Return the states (N, H) after layer `index`."""
        block, rotated = self.blocks[index], self.heads + self.kv_heads
        qkv = F.linear(rms(x, block.norm, self.eps), block.qkv, block.qkv_bias)
        qkv = qkv.view(x.shape[0], rotated + self.kv_heads, -1)
        qk, v = qkv[:, :rotated], qkv[:, rotated:]
        if block.qk_norm is not None:
            qk = rms(qk, block.qk_norm, self.eps)
        half = qk.shape[-1] // 2
        qk = qk * cos + torch.cat((qk[..., half:], qk[..., :half]), -1) * sin  # the rotary embedding
        attention = attend(index, qk[:, : self.heads], qk[:, self.heads :], v)
        x = x + F.linear(attention, block.out, block.out_bias)
        gate, up = F.linear(rms(x, block.mlp_norm, self.eps), block.gate_up, block.gate_up_bias).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, block.down, block.down_bias)


class Rows:
    """Conversion of packed rows of unequal length to the right-padded form for attention."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        self.count, self.width = len(lengths), max(lengths)  # R, T
        self.tokens = sum(lengths)  # N
        self.index: Tensor | None = None  # (N,), of the tokens among R T places
        if self.tokens < self.count * self.width:
            real = torch.arange(self.width) < torch.tensor(lengths)[:, None]
            self.index = real.flatten().nonzero()[:, 0].to(device)

    def pad(self, x: Tensor) -> Tensor:
        """Convert packed x (N, heads, D) to rows (R, heads, T, D)."""
        if self.index is not None:
            x = x.new_zeros(self.count * self.width, *x.shape[1:]).index_copy(0, self.index, x)
        return x.reshape(self.count, self.width, *x.shape[1:]).transpose(1, 2)

    def pack(self, x: Tensor) -> Tensor:
        """Convert rows x (R, heads, T, D) to the packed form (N, heads D)."""
        x = x.transpose(1, 2).reshape(self.count * self.width, -1)
        return x if self.index is None else x.index_select(0, self.index)

    def causal(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return causal attention within the rows, of packed q (N, Hq, D), k and v (N, Hk, D); (N, Hq D)."""
        return self.pack(causal(self.pad(q), self.pad(k), self.pad(v)))


def is_supported(model: nn.Module) -> bool:
    """Return True if `network` computes the same as `model`."""
    config: Any = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in ARCHITECTURES
        and not is_quantised(model)
        and config.hidden_act == "silu"
        and rope.get("rope_type", "default") in ("default", "linear", "llama3", "yarn")
        and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
        and all(isinstance(part, nn.Linear) or hasattr(part, "lora_A") for part in _projections(model))
    )


def is_quantised(model: nn.Module) -> bool:
    """Return True if a model's weights mean something by their scales only (FP8, GPTQ, AWQ ...)."""
    config: Any = model.config
    return getattr(config, "quantization_config", None) is not None


def _projections(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the layers whose matrices `network` reads; adapters other than LoRA compute more than these."""
    inner: Any = model.model
    for layer in inner.layers:
        attention, mlp = layer.self_attn, layer.mlp
        yield from (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
        yield from (mlp.gate_proj, mlp.up_proj, mlp.down_proj)


def network(model: nn.Module, dtype: torch.dtype | None = None) -> Network:
    """Return the fused weights of a supported `model`; differentiable if grad is enabled.

    They are cast to `dtype`, by default the widest of the model's: adapters in fp32 may have a base in 16 bits.
    """
    config: Any = model.config
    inner: Any = model.model
    common = dtype or reduce(torch.promote_types, {weight.dtype for weight in model.parameters()})

    def cast(weight: Any) -> Any:
        return None if weight is None else weight.to(common)

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
        embed_pictures=getattr(model, "embed_pictures", None),
        recompute=any(getattr(module, "gradient_checkpointing", False) for module in model.modules()),
    )


def head_of(model: nn.Module) -> Tensor:
    """Return the output embedding of a model, (V, H)."""
    embeddings: Any = model.get_output_embeddings()  # type: ignore[operator]
    return embeddings.weight  # type: ignore[no-any-return]


def final_norm_of(model: nn.Module) -> Tensor | None:
    """Return the weight (H,) of the norm before a model's output embedding; None without one."""
    decoder: Any = model.get_decoder()  # type: ignore[operator]
    weights = [getattr(child, "weight", None) for child in decoder.children()]
    norms = [weight for weight in weights if weight is not None and weight.ndim == 1]
    return norms[-1] if norms else None


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
