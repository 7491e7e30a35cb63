"""Runs in Inspect's venv: Wordle as a task of its, played by its mock model with words drawn at random."""

import json
import random
import sys
import tempfile
from dataclasses import asdict

from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from lmgym.errors import BackendError
from lmgym.interop import inspect as interop
from lmgym.tasks.wordle.env import Wordle


def guessing(words):
    """The mock model, which guesses; every conversation's second answer is one that was cut."""
    noise = random.Random(0)

    def say(messages, tools, choice, config):
        stop = "max_tokens" if sum(message.role == "assistant" for message in messages) == 1 else "stop"
        output = ModelOutput.from_content("mockllm/model", noise.choice(words), stop_reason=stop)
        output.usage = ModelUsage(
            input_tokens=10, output_tokens=2, total_tokens=12
        )  # else it would download a tokenizer
        return output

    return get_model("mockllm/model", custom_outputs=say)


def breaking(secret):
    """Have the backend of one instance break at the first action."""
    act = Wordle.act

    def breaks(self, action):
        if self.secret == secret:
            raise BackendError("the engine is gone")
        return act(self, action)

    Wordle.act = breaks


def results(log):
    """What Inspect made of its scores."""
    found = {}
    for score in log.results.scores if log.results else ():
        for name, metric in score.metrics.items():
            found[name] = metric.value
    return found


def main():
    """Read a job, print the report and the figures."""
    job = json.load(sys.stdin)
    if "breaks" in job:
        breaking(job["breaks"])
    with tempfile.TemporaryDirectory() as folder:
        task = interop.task("wordle", **job["task"])
        (log,) = evaluate(task, model=guessing(job["words"]), log_dir=folder, display="none", **job.get("eval", {}))
        found = {
            "status": log.status,
            "error": log.error.message if log.error else "",
            "figures": results(log),
            "report": asdict(interop.report(log)),
            "samples": [
                {"index": s.metadata["index"], "epoch": s.epoch, "said": [(m.role, m.text) for m in s.messages]}
                for s in log.samples
            ],
        }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


main()
