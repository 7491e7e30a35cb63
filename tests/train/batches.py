"""Batches made by hand."""

from __future__ import annotations

from dataclasses import fields

import torch

from lmgym.train.batch import Batch

BOOLEAN = {"cut", "invalid", "stored"}
INTEGER = {"ids", "turn", "episode", "segment", "group", "seat", "parent", "forked", "version"}
ROW = {"episode", "segment", "group", "seat", "parent", "forked", "version", "boot", "cut", "stored"}


def make_batch(mask, **columns) -> Batch:
    """A batch with these trained tokens (B, T); each row an episode of one group unless `columns` say otherwise."""
    trained = torch.tensor(mask, dtype=torch.bool)
    rows, length = trained.shape
    defaults = {
        "mask": trained,
        "attention": torch.ones_like(trained),
        "weight": trained.float(),
        "episode": torch.arange(rows),
        "parent": torch.full((rows,), -1),
    }
    for field in (each for each in fields(Batch) if each.name != "media"):
        shape = (rows,) if field.name in ROW else (rows, length)
        dtype = torch.long if field.name in INTEGER else torch.bool if field.name in BOOLEAN else torch.float32
        defaults.setdefault(field.name, torch.zeros(shape, dtype=dtype))
    given = {name: torch.as_tensor(value) for name, value in columns.items()}
    return Batch(**{**defaults, **given})
