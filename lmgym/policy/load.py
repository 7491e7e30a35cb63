"""Policies by name: `tiny`, `hf:NAME_OR_PATH`, `oracle`, `random`, `python:module:function` and others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from lmgym.errors import MissingExtra, PolicyError
from lmgym.policy import scripted
from lmgym.policy.base import Policy
from lmgym.policy.endpoints.calls import CallLedger, PictureSource, Provider, RequestOptions
from lmgym.policy.endpoints.secrets import Secrets, without_secrets
from lmgym.policy.select import selection_of

if TYPE_CHECKING:
    from lmgym.policy.endpoints.pace import RetryLimits
    from lmgym.policy.endpoints.remote import RemotePolicy
    from lmgym.policy.local.policy import LocalPolicy
    from lmgym.policy.local.sampling import Sampling
    from lmgym.policy.models.vision import Vision

WITH_WEIGHTS = "tiny, tiny:10m, tiny?seed=N, tiny?words=webshop, tiny-vl, smollm2, hf:NAME_OR_PATH"
KINDS = (
    f"{WITH_WEIGHTS}, http://HOST/v1#MODEL, anthropic:MODEL, litellm:PROVIDER/MODEL, cmd:PROGRAM, majority:N:MODEL, "
    "verified:N:MODEL, oracle, demonstrator, random, null, human, python:module:function"
)
LOCAL = ("tiny", "tiny-vl", "smollm2", "hf")  # kinds with weights: they also score and learn
REMOTE = ("http", "https", "anthropic", "litellm", "cmd")  # kinds that are computed outside this process
UNSENT = {"top_p": 1.0, "top_k": 0, "stop": ()}  # settings of sampling and the values at which they are off
TRUST = "?trust_remote_code=1"  # suffix of hf: names whose own Python code may run


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
    """Load the policy `name`.

    `device` defaults to the accelerator if there is one; `dtype` ("bfloat16") is the precision of sampling; `seed`
    makes the weights of `tiny` and the choices of `random`; `options` go to the chat template.
    """
    if (selection := selection_of(name)) is not None:
        policy = load_policy(
            selection.model,
            sampling=sampling,
            device=device,
            dtype=dtype,
            context=context,
            seed=seed,
            options=options,
        )
        return selection.select(policy, temperature=None if sampling is None else sampling.temperature)
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
        return load_remote(name, request=None if sampling is None else _request(name, sampling))
    if kind.partition("?")[0] in LOCAL:
        return load_local(
            name, sampling=sampling, device=device, dtype=dtype, context=context, seed=seed, options=options
        )
    raise PolicyError(f"unknown policy {name!r}; choose one of {KINDS}")


def load_remote(
    name: str,
    *,
    request: RequestOptions | None = None,
    pictures: Mapping[str, bytes] | None = None,
    retries: RetryLimits | None = None,
    secrets: Secrets | None = None,
    ledger: CallLedger | None = None,
    concurrency: int = 64,
    costs: Callable[[Mapping[str, Any]], float | None] = lambda usage: usage.get("cost"),
) -> RemotePolicy:
    """Load a policy behind an endpoint or in another program.

    `pictures` maps digests to PNGs until an engine gives its own mapping; for the rest see RemotePolicy.
    """
    request = request or RequestOptions()
    secrets = secrets or Secrets.of_environment(key=request.key_variable)
    kind, _, rest = name.partition(":")
    if kind not in REMOTE or not rest:
        raise PolicyError(f"{secrets.struck(name)} is not an endpoint or program; choose one of {KINDS}")
    try:
        from lmgym.policy.endpoints import http
        from lmgym.policy.endpoints.pace import RetryLimits
        from lmgym.policy.endpoints.remote import RemotePolicy
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{kind}: needs {error.name}: pip install 'lmgym[eval]'") from error
    retries = retries or RetryLimits()
    source = PictureSource({} if pictures is None else pictures)
    provider: Provider
    if kind == "cmd":
        from lmgym.policy.endpoints.command import Command

        provider = Command(rest, options=request, pictures=source)
    elif kind == "litellm":
        from lmgym.policy.endpoints.litellm import LiteLlm

        provider = LiteLlm(rest, options=request, pictures=source, timeout=retries.timeout)
    elif kind == "anthropic":
        provider = http.anthropic_endpoint(rest, options=request, pictures=source, timeout=retries.timeout)
    else:
        address = without_secrets(name, secrets)
        provider = http.chat_endpoint(address, options=request, pictures=source, timeout=retries.timeout)
    return RemotePolicy(
        provider,
        ledger=ledger,
        retries=retries,
        concurrency=concurrency,
        secrets=secrets,
        costs=costs,
        pictures=source,
    )


def _request(name: str, sampling: Sampling) -> RequestOptions:
    """Return the options of requests for `sampling`; raise PolicyError for what an endpoint is not sent."""
    unsent = [f"{key}={value}" for key, off in UNSENT.items() if (value := getattr(sampling, key)) != off]
    if unsent:
        raise PolicyError(
            f"{name.partition(':')[0]}: endpoints and programs are sent temperature and max_tokens only; "
            f"leave out {', '.join(unsent)}, or call load_remote with RequestOptions(extra=...)"
        )
    return RequestOptions(temperature=sampling.temperature, max_tokens=sampling.max_tokens)


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
    """Load `tiny`, `tiny-vl`, `smollm2` or `hf:`: a policy that also scores and learns."""
    if (selection := selection_of(name)) is not None:
        raise PolicyError(f"{selection.kind}:N:MODEL has no weights of its own to train or score; name MODEL alone")
    if (kind := name.partition(":")[0].partition("?")[0]) not in LOCAL:
        raise PolicyError(f"{kind!r} has no weights at hand; choose one of {WITH_WEIGHTS}")
    if kind == "hf" and not name.startswith("hf:"):
        raise PolicyError(f"{name!r} names no model; write hf:FOLDER or hf:NAME, such as hf:runs/x/policy")
    if kind == "smollm2" and name != kind:
        raise PolicyError(f"{name!r}: smollm2 has one size and no options; write smollm2")
    try:
        import torch

        from lmgym.policy.local.policy import LocalPolicy
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{name} needs: pip install 'lmgym[train]' ({error})") from error
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype is not None and dtype not in dtypes:
        raise PolicyError(f"unknown dtype {dtype!r}; choose one of {', '.join(dtypes)}")
    if name == "smollm2":
        model, tokenizer, vision = _hugging_face(_place(name))
    else:
        model, tokenizer, vision = _hugging_face(name[3:]) if name.startswith("hf:") else _tiny(name, seed)
    return LocalPolicy(
        model,
        tokenizer,
        name=name,
        sampling=sampling,
        device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
        dtype=None if dtype is None else dtypes[dtype],
        context=context,
        options=options,
        vision=vision,
    )


def _tiny(name: str, default_seed: int) -> tuple[Any, Any, Vision | None]:
    """Make the embedded model `tiny[:SIZE][?seed=N&words=TASK]` or `tiny-vl[:SIZE][?seed=N]`."""
    from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer

    kind, _, query = name.partition("?")
    fields = parse_qs(query, keep_blank_values=True)
    family, _, size = kind.partition(":")
    seed = fields.pop("seed", [str(default_seed)])[0]
    words = fields.pop("words", ["tiny"])[0] if family == "tiny" else "tiny"
    if fields or not seed.isdecimal():
        options = "seed=N with a whole number N" + (" and words=TASK" if family == "tiny" else "")
        raise PolicyError(f"{name}: the options after the question mark are {options}")
    if family == "tiny-vl":
        from lmgym.policy.models.tiny_vl import tiny_vision, tiny_vl_model, tiny_vl_tokenizer

        tokenizer = tiny_vl_tokenizer()
        model = tiny_vl_model(size, tokenizer=tokenizer, seed=int(seed))
        return model, tokenizer, tiny_vision(model.config)
    tokenizer = tiny_tokenizer(words)
    return tiny_model(size, vocab=len(tokenizer), seed=int(seed)), tokenizer, None


def _hugging_face(name: str) -> tuple[Any, Any, Vision | None]:
    """Load model, tokenizer and vision from a folder, the local cache or the hub."""
    from huggingface_hub import constants
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.utils.peft_utils import find_adapter_config_file

    from lmgym.policy.local.lora import load_adapter
    from lmgym.policy.models.families import supports, vision_of
    from lmgym.policy.models.progress import no_progress_bars
    from lmgym.policy.models.tiny_vl import TinyVlConfig, register, tiny_vision

    register()
    path, trust = name.removesuffix(TRUST), name.endswith(TRUST)
    if not path:
        raise PolicyError("hf: needs a folder or a name, such as hf:runs/x/checkpoints/last")
    try:
        with no_progress_bars():
            adapter = find_adapter_config_file(path)
            base = json.loads(Path(adapter).read_text(encoding="utf-8"))["base_model_name_or_path"] if adapter else path
            base = _place(base)
            config = AutoConfig.from_pretrained(base, trust_remote_code=trust)
            kind = AutoModelForImageTextToText if supports(config) else AutoModelForCausalLM
            model = kind.from_pretrained(base, dtype="auto", trust_remote_code=trust)
            if adapter:
                load_adapter(model, path, base=base)
            for weight in model.parameters():  # weights mapped from a file are not aligned: products round otherwise
                weight.data = weight.data.clone()
            tokenizer = _tokenizer(path, trust=trust)
            if isinstance(model.config, TinyVlConfig):
                return model, tokenizer, tiny_vision(model.config)
            return model, tokenizer, vision_of(model.config, tokenizer, path) if supports(model.config) else None
    except (PolicyError, MissingExtra):
        raise
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        if "trust_remote_code" in str(error):
            raise PolicyError(f"hf:{path} contains Python code of its own; hf:{path}{TRUST} runs it") from error
        if Path(path).is_dir():
            raise PolicyError(f"hf:{path} is a folder without a causal language model: {reason}") from error
        offline = constants.HF_HUB_OFFLINE
        where = "is not in the local cache (HF_HUB_OFFLINE is set)" if offline else f"cannot be downloaded: {reason}"
        raise PolicyError(f"hf:{path} is not a folder and {where}") from error


def _place(name: str) -> str:
    """Return where the model `name` lies: the folder of smollm2, else `name` itself."""
    from lmgym.policy.models.smollm2 import smollm2_folder

    return str(smollm2_folder()) if name == "smollm2" else name


def _tokenizer(path: str, *, trust: bool) -> Any:
    """Load the tokenizer as it was saved; AutoTokenizer would choose by the model and may split words otherwise."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    plain = get_tokenizer_config(path).get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
    try:
        if plain:
            return PreTrainedTokenizerFast.from_pretrained(path)
        return AutoTokenizer.from_pretrained(path, trust_remote_code=trust)
    except Exception as error:  # the tokenizers library raises bare Exceptions
        malformed = type(error) is Exception or isinstance(error, ValueError | TypeError | KeyError | AttributeError)
        if not malformed or "trust_remote_code" in str(error):
            raise
        reason = str(error).strip().partition("\n")[0]
        raise PolicyError(f"hf:{path}: the tokenizer cannot be read ({type(error).__name__}: {reason})") from error
