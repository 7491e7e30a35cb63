"""Runs in litellm's venv: a model that litellm reaches plays a task of tool calls, or its price table is told."""

import json
import os
import sys
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from lmgym.evaluation import runner
from lmgym.policy.endpoints.calls import EndpointRefused
from lmgym.policy.endpoints.pace import RetryLimits
from lmgym.policy.load import load_remote
from lmgym.rollout.engine import Engine


def played(job):
    """The report of Jars, or what stopped the run."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.evaluation import jars
    from tests.plugins import installed

    with tempfile.TemporaryDirectory() as folder, installed(jars, Path(folder)):
        policy = load_remote("litellm:openai/fake", retries=RetryLimits(first_wait=0.01))
        jobs = runner.episodes("test/Jars-v0", split="test", size=200, count=job["count"], options={})
        try:
            return {"report": asdict(runner.evaluate(policy, jobs, engine=Engine(concurrency=job["concurrency"])))}
        except EndpointRefused as refused:
            return {"refused": str(refused)}
        finally:
            policy.close()


def prices(models):
    """US dollars for a token, as the table that litellm ships has them."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it would fetch one
    from litellm import model_cost

    fields = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    return {model: [model_cost[model][field] for field in fields] for model in models}


def main():
    """Read a job, print what came of it."""
    job = json.load(sys.stdin)
    found = prices(job["models"]) if "models" in job else played(job)
    sys.stdout.write("\n" + json.dumps({**found, "version": version("litellm")}) + "\n")


main()
