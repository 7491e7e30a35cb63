"""Steps of single tokens on a GPU, captured as CUDA graphs.

A small model's step has over a thousand kernels, and to launch them takes several times as long as they run. A graph
launches all at once. It is captured for a bucket of sizes and replayed for every step that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lmgym.policy.local.forward import Network

if TYPE_CHECKING:
    from lmgym.policy.local.kv_cache import KVCache

LENGTHS = 256  # positions that a graph attends to are a multiple of this


class StepGraphs:
    """The graphs of a network over the cache that holds them, by sizes; the tensors of both must stay in place."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.pool = torch.cuda.graph_pool_handle()
        self.graphs: dict[tuple[int, int, int], StepGraph] = {}

    def step(
        self, cache: KVCache, ids: Sequence[int], slots: Sequence[int], positions: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Return hidden states (R, H) and fp32 logits (R, V) after one token in each of `slots`.

        The next step overwrites both.
        """
        length = min(-(-(max(positions) + 1) // LENGTHS) * LENGTHS, cache.positions)
        size = (bucket(len(ids)), min(bucket(max(slots) + 1), cache.slots), length)
        spare = size[0] - len(ids)  # the first row again: it writes the same
        inputs = torch.tensor([[*column, *[column[0]] * spare] for column in (ids, slots, positions)]).pin_memory()
        if size not in self.graphs:
            step = partial(step_of, self.network, cache, slots=size[1], length=length)
            self.graphs[size] = StepGraph(step, inputs.to(self.network.embed.device), self.pool)
        hidden, logits = self.graphs[size].replay(inputs)
        return hidden[: len(ids)], logits[: len(ids)]


class StepGraph:
    """A captured step of tokens (3, R): ids, slots and positions."""

    def __init__(self, step: Callable[[Tensor], tuple[Tensor, Tensor]], inputs: Tensor, pool: Any) -> None:
        """Capture `step` on `inputs`; graphs of one `pool` share memory."""
        self.inputs = inputs
        self.graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        current = torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            step(inputs)  # libraries allocate their workspace
            self.graph.capture_begin(pool=pool)
            self.outputs = step(inputs)
            self.graph.capture_end()
        current.wait_stream(side)

    def replay(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Run the step on other tokens (3, R)."""
        self.inputs.copy_(inputs, non_blocking=True)
        self.graph.replay()
        return self.outputs


def step_of(network: Network, cache: KVCache, inputs: Tensor, *, slots: int, length: int) -> tuple[Tensor, Tensor]:
    """Return hidden states (R, H) and fp32 logits (R, V) of single tokens, with operations of constant shape alone.

    `inputs` (3, R) are ids, slots and positions. All must lie in the first `slots` slots and `length` positions.
    """
    ids, slot, position = inputs
    ends = torch.ones(slots, dtype=torch.long, device=ids.device).index_copy(0, slot, position + 1)
    visible = torch.arange(length, device=ids.device) < ends[:, None]
    mask = torch.zeros(slots, 1, 1, length, dtype=network.embed.dtype, device=ids.device)
    mask = mask.masked_fill(~visible[:, None, None], float("-inf"))

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        cache.write(layer, slot, position, k, v)
        rows = q.reshape(len(q), k.shape[1], -1, q.shape[2])  # the query heads of a group are query rows
        rows = rows.new_zeros(slots, *rows.shape[1:]).index_copy(0, slot, rows)
        keys, values = cache.read(layer, slice(0, slots), length)
        out = F.scaled_dot_product_attention(rows, keys, values, attn_mask=mask)
        return out.index_select(0, slot).reshape(len(q), -1)

    hidden = network.hidden(ids, position, attend)
    return hidden, F.linear(hidden, network.head).float()


def bucket(count: int) -> int:
    """Return the least power of two that is at least `count` and 8."""
    return max(8, 1 << (count - 1).bit_length())
