"""Runs a block of docs/how-to/interop.md in its library's venv, and tells of the names that it leaves behind."""

import json
import sys
from dataclasses import asdict


def given(library):
    """The names that the page takes as given: the embedded model, all of whose answers are actions."""
    if library != "trl":
        return {}
    import torch

    from lmgym.interop import trl as interop
    from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer

    torch.set_num_threads(1)
    tokenizer = interop.plain(tiny_tokenizer(), begin="<|assistant|>", end="<|end|>")
    return {"model": tiny_model("1m", vocab=len(tokenizer)), "tokenizer": tokenizer}


TOLD = {
    "trl": lambda left: {},
    "inspect": lambda left: {"status": left["log"].status, "error": left["log"].error and left["log"].error.message},
    "openenv": lambda left: {
        "text": left["text"],
        "observation": left["result"].observation.model_dump(),
        "reward": left["result"].reward,
        "done": left["result"].done,
    },
    "verifiers": lambda left: {"pushed": left["config"].push, "report": asdict(left["report"])},
}


def main():
    """Read a job, print what came of it."""
    job = json.load(sys.stdin)
    names = given(job["library"])
    exec(compile(job["block"], "docs/how-to/interop.md", "exec"), names)
    sys.stdout.write("\n" + json.dumps(TOLD[job["library"]](names)) + "\n")


main()
