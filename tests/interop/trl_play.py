"""Runs in TRL's venv: two steps of its GRPO on Wordle, by a model whose every word is an action, or by tool calls."""

import json
import os
import sys
import tempfile

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from lmgym.interop import trl as interop
from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer

GROUP = 4


class Scripted(GRPOTrainer):
    """Calls of the tool with the words of a script, in place of what the model would say."""

    words = ()

    def _generate_single_turn(self, prompt_ids, *others, **more):
        texts = [self._tokenizer.decode(ids) for ids in prompt_ids]
        return [self._tokenizer(self._said(text))["input_ids"] for text in texts], None

    def _said(self, text):
        turns = text.count("<tool_response>")
        if turns == len(self.words) or "g g g g g" in text:
            return "I stop here.<|im_end|>"
        call = json.dumps({"name": "act", "arguments": {"action": self.words[turns]}})
        return f"<tool_call>\n{call}\n</tool_call><|im_end|>"


def in_words():
    """The tokenizer of the embedded model, and how its answers end."""
    tokenizer = interop.plain(tiny_tokenizer(), begin="<|assistant|>", end="<|end|>")
    return GRPOTrainer, tokenizer, {"max_tool_calling_iterations": 6, "generation_kwargs": {"max_new_tokens": 6}}


def by_calls():
    """The same with a template that has tool calls."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = qwen3_chat_template
    return Scripted, tokenizer, {}


def train(job, folder):
    """Return the episodes of two steps, their log and the distance of the weights."""
    kind, tokenizer, more = {"words": in_words, "calls": by_calls}[job["how"]]()
    Scripted.words = job["words"]
    model = tiny_model("1m", vocab=len(tokenizer))
    before = [weight.detach().clone() for weight in model.parameters()]
    episodes = []

    def watch(prompts, completions, completion_ids, environments, index, **columns):
        texts = tokenizer.batch_decode(completion_ids)
        rewards = [environment.get_reward() for environment in environments]
        names = ("prompt", "said", "text", "reward", "index")
        played = zip(prompts, completions, texts, rewards, index, strict=True)
        episodes.extend(dict(zip(names, row, strict=True)) for row in played)
        return [len(text) / 1000 for text in texts]  # random words do not win: something must differ in a group

    data = [row for row in interop.rows("wordle", 372) if row["index"] in job["indices"]]
    trainer = kind(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[watch],
        args=GRPOConfig(
            output_dir=folder,
            max_steps=2,
            per_device_train_batch_size=len(job["indices"]) * GROUP,
            num_generations=GROUP,
            max_completion_length=400,
            learning_rate=1e-3,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            **more,
        ),
        train_dataset=Dataset.from_list(data),
        environment_factory=interop.factory("wordle"),
    )
    trainer.train()
    moved = max(float((new.detach() - old).abs().max()) for new, old in zip(model.parameters(), before, strict=True))
    return {"episodes": episodes, "log": trainer.state.log_history, "moved": moved}


def main():
    """Read a job, print what came of it."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = train(json.load(sys.stdin), folder)
    sys.stdout.write(json.dumps(found) + "\n")


main()
