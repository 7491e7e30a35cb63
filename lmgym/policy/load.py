"""Policies by one string: `tiny`, `hf:NAME_OR_PATH`, `oracle`, `random`, `python:module:function` ..."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from lmgym.errors import MissingExtra, PolicyError
from lmgym.policy import scripted
from lmgym.policy.base import Policy

if TYPE_CHECKING:
    from lmgym.policy.endpoints.calls import Provider
    from lmgym.policy.endpoints.openai import Asking
    from lmgym.policy.endpoints.pace import Patience
    from lmgym.policy.endpoints.remote import RemotePolicy
    from lmgym.policy.local.policy import LocalPolicy
    from lmgym.policy.local.sampling import Sampling
    from lmgym.policy.models.vision import Vision

KINDS = (
    "tiny, tiny:10m, tiny?seed=N, tiny?words=webshop, tiny-vl, hf:NAME_OR_PATH, http://HOST/v1#MODEL, anthropic:MODEL, "
    "litellm:PROVIDER/MODEL, cmd:PROGRAM, oracle, demonstrator, random, null, human, python:module:function"
)
REMOTE = ("http", "https", "anthropic", "litellm", "cmd")  # kinds that somebody else computes


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
    if kind in REMOTE:
        return load_remote(name)
    if kind.partition("?")[0] in ("tiny", "tiny-vl") or kind == "hf":
        return load_local(
            name, sampling=sampling, device=device, dtype=dtype, context=context, seed=seed, options=options
        )
    raise PolicyError(f"There is no policy {name!r}; known: {KINDS}")


def load_remote(
    name: str,
    *,
    asking: Asking | None = None,
    pictures: Mapping[str, bytes] | None = None,
    patience: Patience | None = None,
    **book: Any,
) -> RemotePolicy:
    """The same for endpoints and programs; `book` are further arguments of RemotePolicy.

    `pictures` are PNGs by digest, where messages have any: those of the engine that plays.
    """
    from lmgym.policy.endpoints.openai import Asking
    from lmgym.policy.endpoints.pace import Patience
    from lmgym.policy.endpoints.secrets import Secrets, without_secrets

    try:
        from lmgym.policy.endpoints.remote import RemotePolicy
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{name.partition(':')[0]}: needs {error.name}: pip install 'lmgym[eval]'") from error
    asking, patience = asking or Asking(), patience or Patience()
    secrets = book.setdefault("secrets", Secrets.of_environment(key=asking.key))
    kind, _, rest = name.partition(":")
    if kind not in REMOTE or not rest:
        raise PolicyError(f"{secrets.struck(name)} is no endpoint or program; known: {KINDS}")
    shown: Mapping[str, bytes] = {} if pictures is None else pictures
    provider: Provider
    if kind == "cmd":
        from lmgym.policy.endpoints.command import Command

        provider = Command(rest, asking=asking, pictures=shown)
    elif kind in ("http", "https"):
        from lmgym.policy.endpoints.openai import Endpoint

        address = without_secrets(name, secrets)
        provider = Endpoint(address, asking=asking, pictures=shown, timeout=patience.timeout)
    elif kind == "anthropic":
        from lmgym.policy.endpoints.anthropic import Anthropic

        provider = Anthropic(rest, asking=asking, pictures=shown, timeout=patience.timeout)
    else:
        from lmgym.policy.endpoints.litellm import LiteLlm

        provider = LiteLlm(rest, asking=asking, pictures=shown, timeout=patience.timeout)
    return RemotePolicy(provider, patience=patience, **book)


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
    """The same for `tiny`, `tiny-vl` and `hf:` alone: a policy that also scores and learns."""
    try:
        import torch

        from lmgym.policy.local.policy import LocalPolicy
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{name} needs: pip install 'lmgym[train]' ({error})") from error
    model, tokenizer, vision = _hugging_face(name[3:]) if name.startswith("hf:") else _tiny(name, seed)
    return LocalPolicy(
        model,
        tokenizer,
        name=name,
        sampling=sampling,
        device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
        dtype=None if dtype is None else _dtype(dtype),
        context=context,
        options=options,
        vision=vision,
    )


def _vision(model: Any, tokenizer: Any, path: str) -> Vision | None:
    """How the model of a folder takes pictures; None for one that takes none."""
    from lmgym.policy.models.families import sees, vision_of
    from lmgym.policy.models.tiny_vl import TinyVlConfig, tiny_vision

    if isinstance(model.config, TinyVlConfig):
        return tiny_vision(model.config)
    return vision_of(model.config, tokenizer, path) if sees(model.config) else None


def _tiny(name: str, seed: int) -> tuple[Any, Any, Vision | None]:
    """The embedded model that `tiny[:SIZE][?seed=N&words=TASK]` or `tiny-vl[:SIZE][?seed=N]` names."""
    from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer

    kind, _, query = name.partition("?")
    fields = parse_qs(query, keep_blank_values=True)
    family, _, size = kind.partition(":")
    given = fields.pop("seed", [str(seed)])[0]
    words = fields.pop("words", ["tiny"])[0] if family == "tiny" else "tiny"
    if fields or not given.isdecimal():
        options = "seed=N, N a whole number" + (", and words=TASK" if family == "tiny" else "")
        raise PolicyError(f"{name}: after the question mark goes {options}")
    if family == "tiny-vl":
        from lmgym.policy.models.tiny_vl import tiny_vision, tiny_vl_model, tiny_vl_tokenizer

        sighted = tiny_vl_tokenizer()
        model = tiny_vl_model(size, tokenizer=sighted, seed=int(given))
        return model, sighted, tiny_vision(model.config)
    tokenizer = tiny_tokenizer(words)
    return tiny_model(size, vocab=len(tokenizer), seed=int(given)), tokenizer, None


def _hugging_face(path: str) -> tuple[Any, Any, Vision | None]:
    """Model, tokenizer and eyes of a folder, or of a name in the local cache or on the hub."""
    from huggingface_hub import constants
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

    from lmgym.policy.local.policy import no_progress_bars
    from lmgym.policy.models.families import sees
    from lmgym.policy.models.tiny_vl import register

    register()
    if not path:
        raise PolicyError("hf: needs a folder or a name, such as hf:runs/x/checkpoints/last")
    try:
        with no_progress_bars():
            config = AutoConfig.from_pretrained(_base(path))
            kind = AutoModelForImageTextToText if sees(config) else AutoModelForCausalLM
            model, tokenizer = _aligned(kind.from_pretrained(path, dtype="auto")), _tokenizer(path)
            return model, tokenizer, _vision(model, tokenizer, path)
    except PolicyError:
        raise
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        if Path(path).is_dir():
            raise PolicyError(f"hf:{path} is a folder without a causal language model: {reason}") from error
        offline = constants.HF_HUB_OFFLINE
        where = "not in the local cache (HF_HUB_OFFLINE is set)" if offline else f"not to be fetched: {reason}"
        raise PolicyError(f"hf:{path} is no folder here and {where}") from error


def _base(path: str) -> str:
    """Where the configuration is: of an adapter, that of its base."""
    from transformers.utils.peft_utils import find_adapter_config_file

    adapter = find_adapter_config_file(path)
    if adapter is None:
        return path
    return str(json.loads(Path(adapter).read_text(encoding="utf-8"))["base_model_name_or_path"])


def _aligned(model: Any) -> Any:
    """The model with weights where an allocator puts them: as mapped from a file they round otherwise in products."""
    for weight in model.parameters():
        weight.data = weight.data.clone()
    return model


class _NamedErrors:
    """Makes a ValueError of Exception itself, which the tokenizers library raises for a file that it cannot read."""

    def __enter__(self) -> None:
        """Nothing to open."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Leave every other error as it is."""
        if kind is Exception:
            raise ValueError(str(error)) from error


def _tokenizer(path: str) -> Any:
    """The tokenizer as it was saved: an automatic choice goes by the model and may cut words otherwise."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    plain = get_tokenizer_config(path).get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
    try:
        with _NamedErrors():
            return (PreTrainedTokenizerFast if plain else AutoTokenizer).from_pretrained(path)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise PolicyError(f"hf:{path}: its tokenizer cannot be read ({type(error).__name__}: {reason})") from error


def _dtype(name: str) -> Any:
    import torch

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in known:
        raise PolicyError(f"dtype is one of {', '.join(known)}; got {name!r}")
    return known[name]
