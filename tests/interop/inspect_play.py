"""Runs in Inspect's venv: Wordle as a task of its, played by its mock model with words drawn at random."""

import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import asdict

from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from wordle import break_backend  # of this folder

from lmgym.interop import inspect as interop
from lmgym.tasks.wordle.env import Wordle


def guessing(words, wait):
    """The mock model, which guesses; every conversation's second answer is one that was cut, and takes `wait` seconds.

    The wait holds up Inspect's event loop, so that its limits of time act when it is over.
    """
    noise = random.Random(0)

    def say(messages, tools, choice, config):
        second = sum(message.role == "assistant" for message in messages) == 1
        stop = "max_tokens" if second else "stop"
        time.sleep(wait * second)
        output = ModelOutput.from_content("mockllm/model", noise.choice(words), stop_reason=stop)
        output.usage = ModelUsage(
            input_tokens=10, output_tokens=2, total_tokens=12
        )  # else it would download a tokenizer
        return output

    return get_model("mockllm/model", custom_outputs=say)


def watched():
    """Threads by environment, of all its actions and of the cut that ends it."""
    seen = {}

    def watching(method):
        def watch(self, *arguments):
            seen.setdefault(id(self), (self, set()))[1].add(threading.current_thread().name)
            return method(self, *arguments)

        return watch

    for name in ("begin", "act", "score_if_cut"):
        setattr(Wordle, name, watching(getattr(Wordle, name)))
    return seen


def results(log):
    """Return the scores as Inspect aggregates them."""
    found = {}
    for score in log.results.scores if log.results else ():
        for name, metric in score.metrics.items():
            found[name] = metric.value
    return found


def main():
    """Read a job, print the report and the figures."""
    job = json.load(sys.stdin)
    if "breaks" in job:
        break_backend(job["breaks"])
    seen = watched()
    with tempfile.TemporaryDirectory() as folder:
        task = interop.task("wordle", **job["task"])
        model = guessing(job["words"], job.get("wait", 0))
        (log,) = evaluate(task, model=model, log_dir=folder, display="none", **job.get("eval", {}))
        found = {
            "status": log.status,
            "error": log.error.message if log.error else "",
            "figures": results(log),
            "threads": [sorted(names) for _, names in seen.values()],
            "report": asdict(interop.report(log)),
            "samples": [
                {"index": s.metadata["index"], "epoch": s.epoch, "said": [(m.role, m.text) for m in s.messages]}
                for s in log.samples
            ],
        }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


main()
