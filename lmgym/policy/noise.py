"""Counter-based sampling noise: a draw depends on the run's seed, the conversation and the token's index alone.

A row's tokens therefore do not depend on its neighbours in the batch, nor on the order in which rows finish.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def stream(seed: int, name: Sequence[int]) -> int:
    """Return the 64-bit key of the noise stream `name` under the run's `seed`."""
    key = _mix(seed & _MASK)
    for number in (len(name), *name):
        key = _mix((key + _GOLDEN) & _MASK ^ _mix(number & _MASK))
    return key


def uniform(keys: npt.NDArray[np.uint64], counters: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    """Return draw number `counters[i]` of stream `keys[i]`, in [0, 1) on a grid of 2^-24; all (R,)."""
    with np.errstate(over="ignore"):
        x = keys + (counters + np.uint64(1)) * np.uint64(_GOLDEN)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)  # the last step changes lower bits alone
    return np.asarray((x >> np.uint64(40)) * np.float64(2.0**-24), dtype=np.float32)


def _mix(x: int) -> int:
    """Apply the finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
