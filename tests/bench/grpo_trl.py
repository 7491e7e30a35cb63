"""TRL's side of `make bench-trl`, run by the interpreter of its venv: its GRPOTrainer over our adapter."""

import contextlib
import os
import sys
import tempfile

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
from datasets import Dataset
from grpo_side import Marks, job, letters
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from lmgym.interop import trl as interop


class Timed(GRPOTrainer):
    """Record when a rollout ends and how many tokens it sampled."""

    marks = Marks()
    sampled = ()

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        self.marks.played.append(self.marks.now())
        self.sampled = (*self.sampled, int((batch["completion_mask"] * batch.get("tool_mask", 1)).sum()))
        return batch


class Clock(TrainerCallback):
    """Record when steps begin and end."""

    def on_step_begin(self, args, state, control, **more):
        Timed.marks.begun.append(Marks.now())

    def on_step_end(self, args, state, control, **more):
        Timed.marks.ended.append(Marks.now())


def in_letters(completions, environments, **columns):
    """Return the share of letters in the answers. Plays the last one, after which TRL would ask for another."""
    found = []
    for messages, environment in zip(completions, environments, strict=True):
        said = [call["function"]["arguments"]["action"] for m in messages for call in m.get("tool_calls", ())]
        environment.act(said[-1])
        found.append(letters("".join(said)))
    return found


def trainer(settings, folder):
    """Return TRL's defaults with the job's settings and without gradient checkpointing."""
    rows = settings["groups"] * settings["group"]
    tokenizer = PreTrainedTokenizerFast.from_pretrained(settings["model"])
    longest = settings["tokens"]
    arguments = GRPOConfig(
        output_dir=folder,
        max_steps=settings["steps"] + 1,
        per_device_train_batch_size=settings["micro"],
        gradient_accumulation_steps=rows // settings["micro"],
        num_generations=settings["group"],
        max_completion_length=settings["turns"] * (longest + 32),
        max_tool_calling_iterations=settings["turns"] - 1,
        generation_kwargs={"max_new_tokens": longest, "min_new_tokens": longest},
        learning_rate=1e-5,
        use_cpu=True,
        bf16=settings["precision"] == "bfloat16",
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1,
    )
    made = interop.factory("wordle", max_turns=settings["turns"])
    data = interop.rows("wordle", settings["groups"] * (settings["steps"] + 1))
    return Timed(
        model=AutoModelForCausalLM.from_pretrained(settings["model"], dtype=torch.float32),
        processing_class=interop.plain(tokenizer, begin="<|assistant|>", end="<|end|>"),
        reward_funcs=[in_letters],
        args=arguments,
        train_dataset=Dataset.from_list(data),
        environment_factory=made,
        callbacks=[Clock()],
    )


def main():
    """Train; the first step warms up and is left out."""
    settings = job()
    torch.set_num_threads(settings["threads"])
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        found = trainer(settings, folder)
        found.train()
    Timed.marks.report(found.sampled)


main()
