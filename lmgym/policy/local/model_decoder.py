"""The decoder of all other architectures: the model's own forward pass over our key-value cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Cache

from lmgym.errors import PolicyError
from lmgym.policy.local.decoder import Chunk, Decoder, Pack
from lmgym.policy.local.kv_cache import KVCache
from lmgym.policy.models.vision import PICTURE_IDS, Vision, neutral_id

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FULL, SLIDING = "full_attention", "sliding_attention"


class ModelDecoder(Decoder):
    """A decoder that feeds chunks of similar length, padded on the right, to the model's forward pass."""

    def __init__(self, model: PreTrainedModel, cache: KVCache, *, vision: Vision | None = None) -> None:
        """Raise PolicyError for a model with layers other than attention: their state cannot be kept by position."""
        self.model = model
        self.cache = cache
        self._vision = vision
        config = model.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        types = getattr(config, "layer_types", None) or [FULL if self._window is None else SLIDING]
        self._types = sorted(set(types))
        if not {FULL, SLIDING}.issuperset(types):
            raise PolicyError(
                f"{config.model_type} has layers of type {self._types}; only {FULL} and {SLIDING} are supported"
            )

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of a token, if all layers are alike."""
        config: Any = self.model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return int(config.num_hidden_layers * 2 * heads * width * self.model.dtype.itemsize)

    @torch.inference_mode()
    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Return hidden states (R, H) and fp32 logits (R, V) after the last token of each chunk."""
        self.cache.reserve(max(c.slot for c in chunks) + 1, max(c.start + len(c.ids) for c in chunks))
        order = sorted(range(len(chunks)), key=lambda i: (chunks[i].kind, len(chunks[i].ids)))
        groups = Pack([chunks[i] for i in order], self.model.device).groups()
        hidden, logits = zip(*(self._run(part) for _, part in groups), strict=True)
        back = torch.tensor(order).argsort().to(self.model.device)
        return torch.cat(hidden)[back], torch.cat(logits)[back]

    def _run(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Feed chunks of similar length."""
        pack = Pack(chunks, self.model.device)
        width = max(len(c.ids) for c in chunks)
        real = torch.arange(width) < torch.tensor([[len(c.ids)] for c in chunks])  # (R, T)
        ids = torch.zeros(real.shape, dtype=torch.long)
        ids[real] = pack.ids.cpu()
        starts = torch.tensor([[c.start] for c in chunks])
        positions = starts + torch.arange(width)
        device = self.model.device
        view = CacheView(self.cache, pack, real.to(device), [c.slot for c in chunks])
        columns, which = torch.unique(torch.tensor([len(c.ids) - 1 for c in chunks]), return_inverse=True)
        states: list[Tensor] = []
        head: Any = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]
        hook = head.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
        try:
            output = self.model(
                **{name: part.to(device) for name, part in self._inputs(chunks, ids, positions).items()},
                attention_mask=self._mask(positions, view.length),
                past_key_values=view,
                logits_to_keep=columns.to(device),
                use_cache=True,
            )
        finally:
            hook.remove()
        rows, which = torch.arange(len(chunks), device=device), which.to(device)
        return states[0][rows, which], output.logits[rows, which].float()

    def _inputs(self, chunks: Sequence[Chunk], ids: Tensor, positions: Tensor) -> dict[str, Tensor]:
        """Return ids and positions (R, T), and pictures, as the model takes them."""
        if self._vision is None:
            return {"input_ids": ids, "position_ids": positions}
        token = self._vision.token
        ids = ids.masked_fill(ids == token, neutral_id(self._vision)).masked_fill(ids >= PICTURE_IDS, token)
        if any(chunk.rotary is not None for chunk in chunks):
            positions = positions.repeat(3, 1, 1)
            for row, chunk in enumerate(chunks):
                if chunk.rotary is not None:
                    positions[:, row, : len(chunk.ids)] = chunk.rotary
        pictures = [picture for chunk in chunks for picture in chunk.pictures]
        inputs = self._vision.inputs(pictures) if pictures else {}
        return {"input_ids": ids, "position_ids": positions, **inputs}

    def _mask(self, positions: Tensor, length: int) -> Tensor | dict[str, Tensor]:
        """Return additive masks (R, 1, T, length) of tokens at `positions` (R, T), by type of layer."""
        ahead = torch.arange(length) - positions[..., None]
        hidden = {FULL: ahead > 0}
        if self._window is not None:
            hidden[SLIDING] = (ahead > 0) | (ahead <= -self._window)
        least = torch.finfo(self.model.dtype).min
        zero = torch.zeros((), dtype=self.model.dtype)
        masks = {kind: zero.where(~hidden[kind], least)[:, None].to(self.model.device) for kind in self._types}
        return masks[self._types[0]] if len(masks) == 1 else masks


class CacheView(Cache):
    """Some slots as a cache of the transformers library, which takes padded rows and keeps the real tokens."""

    def __init__(self, cache: KVCache, pack: Pack, real: Tensor, slots: Sequence[int]) -> None:
        super().__init__(layers=[])
        self._cache, self._pack, self._real = cache, pack, real
        self._rows = torch.tensor(slots, device=real.device)
        self.length = int(pack.positions.max()) + 1

    def update(  # the signature of the library
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values (R, Hk, T, D) of a layer, and return all that the rows hold, (R, Hk, length, D)."""
        keys, values = (x.transpose(1, 2)[self._real] for x in (key_states, value_states))
        self._cache.write(layer_idx, self._pack.slots, self._pack.positions, keys, values)
        return self._cache.read(layer_idx, self._rows, self.length)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of positions in use."""
        return self.length
