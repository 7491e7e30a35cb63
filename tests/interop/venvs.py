"""Venvs of their own for libraries that do not go with others; made on demand, kept under `.cache/interop`."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".cache" / "interop"
NEEDS = {
    "inspect": ["inspect-ai==0.3.285", "openai"],
    "litellm": ["litellm==1.106.2", "mcp==2.3.0", "openai", "tenacity"],
    "openenv": ["openenv==0.10.0"],
    "trl": ["trl==1.16.0", "torch==2.13.0", "transformers==5.23.0"],
    "verifiers": ["verifiers==0.4.0"],
}


def python(name: str) -> Path:
    """The interpreter of a library's venv, with this tree as an editable installation."""
    home = HOME / name
    made, wanted = home / ".made", "\n".join(NEEDS[name])
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not made.exists() or made.read_text() != wanted:
            venv.create(home, with_pip=True, clear=True)
            pip = [home / "bin" / "python", "-m", "pip", "install", "-q", *NEEDS[name], "-e", ROOT]
            subprocess.run(pip, check=True, stdout=sys.stderr)
            made.write_text(wanted)
    return home / "bin" / "python"


def play(name: str, script: str, job: Any, *, timeout: float = 600) -> Any:
    """Run a script of this folder with a library's interpreter; return the JSON on its last line of output."""
    path = Path(__file__).parent / script
    done = subprocess.run(
        [python(name), path], input=json.dumps(job), capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
