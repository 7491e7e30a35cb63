"""Policies by one string: `tiny`, `hf:NAME_OR_PATH`, `oracle`, `random`, `python:module:function` ..."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from lmgym.errors import MissingExtra, PolicyError
from lmgym.policy import scripted
from lmgym.policy.base import Policy

if TYPE_CHECKING:
    from lmgym.policy.local import LocalPolicy
    from lmgym.policy.sampling import Sampling

KINDS = (
    "tiny, tiny:10m, tiny?seed=N, hf:NAME_OR_PATH, oracle, demonstrator, random, null, human, python:module:function"
)


def load_policy(
    name: str,
    *,
    sampling: Sampling | None = None,
    device: str | None = None,
    dtype: str | None = None,
    context: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy that `name` stands for.

    `device` is the accelerator where there is one unless given; `dtype` ("bfloat16") is of the weights that sample;
    `seed` makes the weights of `tiny` and the choices of `random`; `options` go to the chat template.
    """
    kind, _, rest = name.partition(":")
    if kind in ("oracle", "demonstrator") and not rest:
        return scripted.hinted(kind)
    if name == "random":
        return scripted.random(seed)
    if name == "null":
        return scripted.null()
    if name == "human":
        return scripted.human()
    if kind == "python":
        return scripted.python(rest)
    if kind in ("http", "https"):
        raise PolicyError(f"{name}: endpoints are not part of this version; use one of {KINDS}")
    if kind.partition("?")[0] == "tiny" or kind == "hf":
        return load_local(
            name, sampling=sampling, device=device, dtype=dtype, context=context, seed=seed, options=options
        )
    raise PolicyError(f"There is no policy {name!r}; known: {KINDS}")


def load_local(
    name: str,
    *,
    sampling: Sampling | None = None,
    device: str | None = None,
    dtype: str | None = None,
    context: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> LocalPolicy:
    """The same for `tiny` and `hf:` alone: a policy that also scores and learns."""
    try:
        import torch

        from lmgym.policy.local import LocalPolicy
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{name} needs: pip install 'lmgym[train]' ({error})") from error
    model, tokenizer = _hugging_face(name[3:]) if name.startswith("hf:") else _tiny(name, seed)
    return LocalPolicy(
        model,
        tokenizer,
        name=name,
        sampling=sampling,
        device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
        dtype=None if dtype is None else _dtype(dtype),
        context=context,
        options=options,
    )


def _tiny(name: str, seed: int) -> tuple[Any, Any]:
    """The embedded model that `tiny[:SIZE][?seed=N]` names."""
    from lmgym.policy.tiny import tiny_model, tiny_tokenizer

    kind, _, query = name.partition("?")
    fields = parse_qs(query, keep_blank_values=True)
    given = fields.pop("seed", [str(seed)])[0]
    if fields or not given.isdecimal():
        raise PolicyError(f"{name}: after the question mark goes seed=N, N a whole number")
    tokenizer = tiny_tokenizer()
    return tiny_model(kind.removeprefix("tiny").removeprefix(":"), vocab=len(tokenizer), seed=int(given)), tokenizer


def _hugging_face(path: str) -> tuple[Any, Any]:
    """Model and tokenizer of a folder, or of a name in the local cache or on the hub."""
    from huggingface_hub import constants
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    from lmgym.policy.local import no_progress_bars

    if not path:
        raise PolicyError("hf: needs a folder or a name, such as hf:runs/x/checkpoints/last")
    try:
        with no_progress_bars():
            return AutoModelForCausalLM.from_pretrained(path, dtype="auto"), _tokenizer(path)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        if Path(path).is_dir():
            raise PolicyError(f"hf:{path} is a folder without a causal language model: {reason}") from error
        offline = constants.HF_HUB_OFFLINE
        where = "not in the local cache (HF_HUB_OFFLINE is set)" if offline else f"not to be fetched: {reason}"
        raise PolicyError(f"hf:{path} is no folder here and {where}") from error


def _tokenizer(path: str) -> Any:
    """The tokenizer as it was saved: an automatic choice goes by the model and may cut words otherwise."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    plain = get_tokenizer_config(path).get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
    return (PreTrainedTokenizerFast if plain else AutoTokenizer).from_pretrained(path)


def _dtype(name: str) -> Any:
    import torch

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in known:
        raise PolicyError(f"dtype is one of {', '.join(known)}; got {name!r}")
    return known[name]
