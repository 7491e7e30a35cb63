"""Valid ranges of settings by name, for options of algorithms, optimisers and limits of stages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from lmgym.errors import RecipeError
from lmgym.train.math import Penalty


@dataclass(frozen=True)
class Range:
    """An interval of finite numbers from `least` to `most`."""

    least: float
    most: float = math.inf
    open: bool = False  # exclude `least`

    def __contains__(self, value: float) -> bool:
        above = value > self.least if self.open else value >= self.least
        return above and value <= self.most and math.isfinite(value)

    def __str__(self) -> str:
        if self.open:
            return f"a number above {self.least:g}"
        return f"{self.least:g} or more" if self.most == math.inf else f"in [{self.least:g}, {self.most:g}]"


def _named(words: str, range_: Range) -> Iterable[tuple[str, Range]]:
    return ((name, range_) for name in words.split())


RANGES: Mapping[str, Range] = dict(
    (
        *_named("lr muon_lr final_norm_lr warmup_lr critic_lr final_lr", Range(0, 1e6)),  # torch overflows far above
        *_named("weight_decay", Range(0, 1e6)),
        *_named("steps seconds warmup warmup_seconds fit critic_steps demonstrated sampled", Range(0)),
        *_named("clip clip_high whiten_floor value_coef kl kl_reward", Range(0)),
        *_named(
            "negative_advantage_weight state_advantage_weight invalid_penalty invalid_cost observation_weight cql beta",
            Range(0),
        ),
        *_named("interject stumbles gamma turn_gamma lam critic_lam", Range(0, 1)),
        *_named("epochs minibatches warmup_minibatches critic_epochs micro_tokens updates_per_step", Range(1)),
        *_named("capacity hidden critic_draws critic_batch actor_draws summed_batches critic_tokens", Range(1)),
        *_named("longest kl_horizon tries", Range(1)),
        *_named("eps adam_eps value_clip kl_target eta", Range(0, open=True)),
        *_named("dual", Range(1, open=True)),
    )
)


def check(settings: Mapping[str, Any]) -> None:
    """Raise RecipeError for the first value outside the range of its name (None is allowed), and for kl_kind k1."""
    for name, value in settings.items():
        if name in RANGES and value is not None and value not in RANGES[name]:
            raise RecipeError(f"{name} is {RANGES[name]}; got {value}")
    if (kind := settings.get("kl_kind", "k2")) not in get_args(Penalty):
        raise RecipeError(f"kl_kind is k2 or k3, for as a loss k1 has no gradient and is noise alone; got {kind}")
