"""A short training run on a toy policy that can be made to kill itself: `-m tests.train.victim FOLDER MOMENT`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from lmgym.baselines import grpo
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer
from lmgym.train import checkpoint, loop

ARGS = grpo.Args(
    warmup=4, warmup_episodes=8, steps=4, instances=4, group=4, minibatches=2, kl=0.1, evaluate=10, drop_flat=False
)


def toy_policy() -> LocalPolicy:
    tokenizer = tiny_tokenizer()
    changes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
               "head_dim": 16, "intermediate_size": 64}  # fmt: skip
    model = tiny_model(vocab=len(tokenizer), changes=changes)
    return LocalPolicy(model, tokenizer, name="toy", sampling=Sampling(max_tokens=4))


def train(folder: Path, *, resume: bool = False, args=ARGS, recipe=None, **more) -> loop.RunResult:
    return loop.run(
        recipe or grpo.recipe(args),
        toy_policy(),
        task="guess_number",
        options={"highest": 8, "max_turns": 4},
        folder=folder,
        resume=resume,
        arguments=vars(args),
        save_seconds=0.0,
        quiet=True,
        **more,
    )


def die_at(moment: str) -> None:
    """Arrange for SIGKILL at the third call of what `moment` names, in the midst of it."""
    targets = {
        "rollout": (LocalPolicy, "session"),
        "demonstration": (LocalPolicy, "encode"),
        "update": (torch.optim.AdamW, "step"),
        "checkpoint": (checkpoint, "digest"),  # the state is written, its digest is not
        "log": (loop.Training, "save"),  # the line is written, the checkpoint is not
    }
    place, name = targets[moment]
    original, calls = getattr(place, name), []

    def dying(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(place, name, dying)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, moment = Path(sys.argv[1]), sys.argv[2]
    if moment != "none":
        die_at(moment)
    train(folder, resume=(folder / "run.json").exists())
