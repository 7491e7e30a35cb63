"""Low-rank adapters through peft: the base is frozen and can be used without them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lmgym.errors import MissingExtra, PolicyError
from lmgym.policy.models.smollm2 import smollm2_folders

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def adapt(model: PreTrainedModel, *, rank: int, alpha: int | None = None, seed: int = 0) -> None:
    """Add a trainable adapter, scaled by `alpha / rank` (2 by default), to every linear layer and freeze the base.

    Raise PolicyError for a rank below 1, for a model that has adapters, and for one made in code, which an adapter
    cannot name as its base.
    """
    if adapted(model):
        raise PolicyError("the model already has adapters, which are trained: leave out --lora")
    if rank < 1:
        raise PolicyError(f"the rank of an adapter must be 1 or more; got {rank}")
    if not model.name_or_path:
        raise PolicyError("an adapter needs a base that can be loaded, hf:NAME_OR_PATH; this model was made in code")
    try:
        from peft import LoraConfig
    except ModuleNotFoundError as error:
        raise MissingExtra(f"adapters need: pip install 'lmgym[train]' ({error})") from error
    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank if alpha is None else alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        base_model_name_or_path=model.name_or_path,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.add_adapter(config)
    model.train(False)  # the adapters as well


def adapted(model: nn.Module) -> bool:
    """Return True if a model has adapters."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


def load_adapter(model: PreTrainedModel, place: str, *, base: str) -> None:
    """Add the saved adapters at `place` to their base, the model at `base`, and leave them trainable."""
    model.load_adapter(place, is_trainable=True)
    for settings in model.peft_config.values():
        settings.base_model_name_or_path = base  # where peft looks for the base when it saves
    model.train(False)


def save_adapter(model: PreTrainedModel, folder: Path) -> None:
    """Write a model's adapters; smollm2 is named as their base, since its folder differs between machines."""
    model.save_pretrained(folder)
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if Path(config["base_model_name_or_path"]) in smollm2_folders():
        config["base_model_name_or_path"] = "smollm2"
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")


@contextmanager
def without_adapter(model: Any) -> Iterator[None]:
    """Disable the adapters within the block; models without adapters stay as they are."""
    if not adapted(model):
        yield
        return
    model.disable_adapters()
    try:
        yield
    finally:
        model.enable_adapters()


def weight_of(linear: Any) -> Tensor:
    """Return the matrix (out, in) of a layer with its adapter included; differentiable in the adapter."""
    weight: Tensor = linear.weight
    if not hasattr(linear, "lora_A") or linear.disable_adapters or linear.merged:
        return weight
    for name in linear.active_adapters:
        weight = weight + linear.get_delta_weight(name)  # in fp32 where the adapter is: 16 bits round it away
    return weight
