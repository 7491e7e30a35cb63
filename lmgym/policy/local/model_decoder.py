"""The decoder of architectures we do not know: the model's own forward pass over our key-value slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Cache

from lmgym.errors import PolicyError
from lmgym.policy.local.decoder import Chunk, Pack
from lmgym.policy.local.slots import KeyValues
from lmgym.policy.models.vision import NAMES, Vision, stand_in

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FULL, SLIDING = "full_attention", "sliding_attention"


class ModelDecoder:
    """Feeds groups of chunks of similar length, padded on the right, to the model's forward pass."""

    def __init__(self, model: PreTrainedModel, cache: KeyValues, *, vision: Vision | None = None) -> None:
        """`vision` is how the model takes pictures.

        Raises PolicyError for a model whose layers do more than attend: their state cannot be kept by position.
        """
        self.model = model
        self.cache = cache
        self._vision = vision
        config = model.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        types = getattr(config, "layer_types", None) or [FULL if self._window is None else SLIDING]
        self._types = sorted(set(types))
        if not {FULL, SLIDING}.issuperset(types):
            raise PolicyError(f"{config.model_type} has layers {self._types}; this sampler knows {FULL} and {SLIDING}")

    @torch.inference_mode()
    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Hidden states (R, H) and logits (R, V) in fp32 after the last token of each chunk."""
        self.cache.reserve(max(c.slot for c in chunks) + 1, max(c.start + len(c.ids) for c in chunks))
        order = sorted(range(len(chunks)), key=lambda i: (chunks[i].kind, len(chunks[i].ids)))
        groups = Pack([chunks[i] for i in order], self.model.device).groups()
        hidden, logits = zip(*(self._run(part) for _, part in groups), strict=True)
        back = torch.tensor(order).argsort().to(self.model.device)
        return torch.cat(hidden)[back], torch.cat(logits)[back]

    def copy(self, source: int, target: int, length: int) -> None:
        """Give slot `target` the first `length` tokens of slot `source`."""
        self.cache.copy(source, target, length)

    def _run(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """The same for chunks of similar length."""
        pack = Pack(chunks, self.model.device)
        width = max(len(c.ids) for c in chunks)
        real = torch.arange(width) < torch.tensor([[len(c.ids)] for c in chunks])  # (R, T)
        ids = torch.zeros(real.shape, dtype=torch.long)
        ids[real] = pack.ids.cpu()
        starts = torch.tensor([[c.start] for c in chunks])
        positions = starts + torch.arange(width)
        view = View(self.cache, pack, real.to(self.model.device), [c.slot for c in chunks])
        last = torch.tensor([len(c.ids) - 1 for c in chunks])
        return self._call(self._inputs(chunks, ids, positions), positions, view, last)

    def _inputs(self, chunks: Sequence[Chunk], ids: Tensor, positions: Tensor) -> dict[str, Tensor]:
        """Ids and places (R, T), and pictures, as the model takes them."""
        if self._vision is None:
            return {"input_ids": ids, "position_ids": positions}
        token = self._vision.token
        fed = ids.masked_fill(ids == token, stand_in(self._vision)).masked_fill(ids >= NAMES, token)
        if any(chunk.turned is not None for chunk in chunks):
            positions = positions.repeat(3, 1, 1)
            for row, chunk in enumerate(chunks):
                if chunk.turned is not None:
                    positions[:, row, : len(chunk.ids)] = chunk.turned
        sights = [sight for chunk in chunks for sight in chunk.sights]
        pictures = self._vision.inputs(sights) if sights else {}
        return {"input_ids": fed, "position_ids": positions, **pictures}

    def _call(self, inputs: dict[str, Tensor], positions: Tensor, view: View, last: Tensor) -> tuple[Tensor, Tensor]:
        """Run the model on `inputs` at places (R, T) of the cache; hidden states and logits at `last` (R,)."""
        device = self.model.device
        columns, which = torch.unique(last, return_inverse=True)
        seen: list[Tensor] = []
        head: Any = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]
        hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            output = self.model(
                **{name: part.to(device) for name, part in inputs.items()},
                attention_mask=self._mask(positions, view.used),
                past_key_values=view,
                logits_to_keep=columns.to(device),
                use_cache=True,
            )
        finally:
            hook.remove()
        rows, which = torch.arange(len(last), device=device), which.to(device)
        return seen[0][rows, which], output.logits[rows, which].float()

    def _mask(self, positions: Tensor, used: int) -> Tensor | dict[str, Tensor]:
        """What tokens at `positions` (R, T) see of `used` places, additive (R, 1, T, used), by type of layer."""
        ahead = torch.arange(used) - positions[..., None]
        hidden = {FULL: ahead > 0}
        if self._window is not None:
            hidden[SLIDING] = (ahead > 0) | (ahead <= -self._window)
        least = torch.finfo(self.model.dtype).min
        zero = torch.zeros((), dtype=self.model.dtype)
        masks = {kind: zero.where(~hidden[kind], least)[:, None].to(self.model.device) for kind in self._types}
        return masks[self._types[0]] if len(masks) == 1 else masks


class View(Cache):
    """Some slots as a cache of the transformers library: takes padded rows, keeps the real tokens."""

    def __init__(self, cache: KeyValues, pack: Pack, real: Tensor, slots: Sequence[int]) -> None:
        super().__init__(layers=[])
        self._cache, self._pack, self._real = cache, pack, real
        self._rows = torch.tensor(slots, device=real.device)
        self.used = int(pack.positions.max()) + 1

    def update(  # the signature of the library
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Put keys and values (R, Hk, T, D) of a layer, and return all the rows hold, (R, Hk, used, D)."""
        keys, values = (x.transpose(1, 2)[self._real] for x in (key_states, value_states))
        self._cache.write(layer_idx, self._pack.slots, self._pack.positions, keys, values)
        return self._cache.read(layer_idx, self._rows, self.used)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Positions in use."""
        return self.used
