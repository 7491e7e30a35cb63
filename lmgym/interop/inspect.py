"""Tasks of lmgym as tasks of Inspect, and Inspect's logs as our reports.

    from inspect_ai import eval
    from lmgym.interop import inspect as interop

    (log,) = eval(interop.task("wordle", episodes=50, tries=4), model="openai/gpt-5")
    report.write(Path("runs/inspect"), interop.report(log))  # lmgym compare reads it

The same instances and seeds as `lmgym eval` plays. The tries of an instance are Inspect's epochs, reduced by the mean,
so that Inspect's standard error and intervals are over instances, as ours are.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lmgym.errors import InstanceError, MissingExtra
from lmgym.evaluation import runner
from lmgym.evaluation.runner import Outcome, Report
from lmgym.interop.episode import Episode
from lmgym.types import Job

try:
    from anyio import CancelScope, to_thread
    from inspect_ai import Epochs, Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import Score, ci, ci_wilson, mean, scorer, stderr
    from inspect_ai.solver import solver
    from inspect_ai.util import LimitExceededError
except ModuleNotFoundError as error:
    needed = "lmgym.interop.inspect needs: pip install 'lmgym[inspect]' in a venv of its own"
    raise MissingExtra(f"{needed} ({error})") from error

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import Generate, Solver, TaskState

KEPT = "lmgym"  # where an outcome stands in a sample's store


def task(
    name: str,
    *,
    split: str = "test",
    episodes: int | None = None,
    tries: int = 1,
    seed: int = 0,
    prompt: str | None = None,
    max_turns: int | None = None,
    **options: Any,
) -> Task:
    """An Inspect task of `episodes` instances of a split (None: all), `tries` of each; `prompt` is the system's."""
    size = runner.size_of(name, split, options)
    name = runner.id_of(name)
    jobs = runner.episodes(
        name, split=split, size=size, count=size if episodes is None else episodes, seed=seed, options=options
    )
    known = {"task": name, "split": split, "seed": seed, "max_turns": max_turns, "options": dict(options)}
    return Task(
        dataset=MemoryDataset([_sample(job) for job in jobs], name=f"{name} {split}"),
        solver=play(name, split=split, seed=seed, prompt=prompt, max_turns=max_turns, **options),
        scorer=outcome(),
        epochs=Epochs(tries, "mean"),
        name=name.replace("/", "-"),
        metadata={**known, "tries": tries},
    )


def _sample(job: Job) -> Sample:
    """An instance by its name: what it shows is known when it is opened."""
    return Sample(
        input=f"{job.task} {job.split}/{job.index}", id=f"{job.split}-{job.index}", metadata={"index": job.index}
    )


@solver  # type: ignore[untyped-decorator]
def play(name: str, *, split: str, seed: int, prompt: str | None, max_turns: int | None, **options: Any) -> Solver:
    """Let the model and an environment take turns until the episode is over."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        index, attempt = state.metadata["index"], state.epoch - 1
        make = partial(Episode, name, split=split, max_turns=max_turns, **options)
        episode = await to_thread.run_sync(make)
        spoken: list[ModelOutput] = []
        stop = "left"
        try:
            chance = runner.try_seed(name, split, index, attempt, seed=seed)
            begin = partial(episode.begin, index=index, attempt=attempt, seed=chance)
            state.messages = [] if prompt is None else [ChatMessageSystem(content=prompt)]
            state.messages.append(ChatMessageUser(content=await to_thread.run_sync(begin)))
            while not episode.over:
                state = await generate(state)
                spoken.append(state.output)
                text = await to_thread.run_sync(episode.act, state.output.completion)
                state.messages.append(ChatMessageUser(content=text))
        except LimitExceededError as limit:
            stop = limit.type
            raise
        finally:
            if episode.broken is None:
                state.store.set(KEPT, asdict(_billed(episode.end(stop), spoken)))
            with CancelScope(shield=True):
                await to_thread.run_sync(episode.close)
        return state

    return solve


def _billed(found: Outcome, spoken: list[ModelOutput]) -> Outcome:
    """With what the answers took."""
    usages = [output.usage for output in spoken if output.usage is not None]
    return replace(
        found,
        tokens_in=sum(usage.input_tokens for usage in usages),
        tokens_out=sum(usage.output_tokens for usage in usages),
        seconds=sum(output.time or 0.0 for output in spoken),
        cut=sum(output.stop_reason in ("max_tokens", "model_length") for output in spoken),
        filtered=sum(output.stop_reason == "content_filter" for output in spoken),
    )


@scorer(metrics=[mean(), stderr(), ci(), ci_wilson()])  # type: ignore[untyped-decorator]
def outcome() -> Scorer:
    """The episode's score; whether it was a success and the rest of its outcome are in the metadata."""

    async def score(state: TaskState, target: Target) -> Score:
        found = state.store.get(KEPT)
        return Score(value=found["score"], answer=state.output.completion, metadata=found)

    return score


def report(log: EvalLog) -> Report:
    """Our report of an Inspect log. An episode that an error broke is void: counted, and in no mean."""
    known = log.eval.metadata or {}
    if "tries" not in known or log.samples is None:
        raise InstanceError(f"{log.location or 'this log'} is none of a task of lmgym, or has no samples")
    found: list[Outcome] = []
    for sample in sorted(log.samples, key=lambda sample: (sample.metadata["index"], sample.epoch)):
        score = (sample.scores or {}).get("outcome")
        index, attempt = sample.metadata["index"], sample.epoch - 1
        broken = runner.void(Job(task=known["task"], index=index, attempt=attempt))
        found.append(broken if sample.error or score is None else Outcome(**(score.metadata or {})))
    return Report(
        task=known["task"],
        split=known["split"],
        policy=log.eval.model,
        seed=known["seed"],
        options=known["options"],
        outcomes=tuple(found),
        planned=(log.eval.dataset.samples or 0) * known["tries"],
    )
