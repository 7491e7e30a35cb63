"""lmgym tasks as Inspect tasks, and reports from Inspect logs.

    from inspect_ai import eval
    from lmgym.interop import inspect as interop

    (log,) = eval(interop.task("wordle", episodes=50, tries=4), model="openai/gpt-5")
    report.write(Path("runs/inspect"), interop.report(log))  # lmgym compare reads it

Instances and seeds are those of `lmgym eval`. Tries are Inspect's epochs with the mean as reducer, so that Inspect's
standard error and intervals are over instances, as in lmgym.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lmgym.errors import InstanceError, MissingExtra
from lmgym.evaluation import runner
from lmgym.evaluation.runner import Outcome, Report
from lmgym.interop.episode import TextEpisode
from lmgym.types import Job

try:
    from anyio import CancelScope, to_thread
    from inspect_ai import Epochs, Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import Score, ci, ci_wilson, mean, scorer, stderr
    from inspect_ai.solver import solver
except ModuleNotFoundError as error:
    needed = "lmgym.interop.inspect needs: pip install 'lmgym[inspect]' in a venv of its own"
    raise MissingExtra(f"{needed} ({error})") from error

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import Generate, Solver, TaskState

STORE_KEY = "lmgym"  # of the outcome in a sample's store
T = TypeVar("T")


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
    """Make an Inspect task of `episodes` instances of a split (default: all) with `tries` each."""
    size = runner.size_of(name, split, options)
    name = runner.id_of(name)
    jobs = runner.episodes(
        name, split=split, size=size, count=size if episodes is None else episodes, seed=seed, options=options
    )
    metadata = {"task": name, "split": split, "seed": seed, "max_turns": max_turns, "options": dict(options)}
    samples = [  # observations are read when their episodes start
        Sample(input=f"{name} {split}/{job.index}", id=f"{split}-{job.index}", metadata={"index": job.index})
        for job in jobs
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{name} {split}"),
        solver=play(name, split=split, seed=seed, prompt=prompt, max_turns=max_turns, **options),
        scorer=outcome(),
        epochs=Epochs(tries, "mean"),
        name=name.replace("/", "-"),
        metadata={**metadata, "tries": tries},
    )


@solver  # type: ignore[untyped-decorator]
def play(name: str, *, split: str, seed: int, prompt: str | None, max_turns: int | None, **options: Any) -> Solver:
    """Alternate between model and environment until the episode is over."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        index, attempt = state.metadata["index"], state.epoch - 1
        thread = ThreadPoolExecutor(1)  # the environment's own, so that the end of an episode waits for its last action
        try:
            make = partial(TextEpisode, name, split=split, max_turns=max_turns, **options)
            episode = await _called(thread, make)
            outputs: list[ModelOutput] = []
            try:
                chance = runner.try_seed(name, split, index, attempt, seed=seed)
                begin = partial(episode.begin, index=index, attempt=attempt, seed=chance)
                state.messages = [] if prompt is None else [ChatMessageSystem(content=prompt)]
                state.messages.append(ChatMessageUser(content=await _called(thread, begin)))
                while not episode.over:
                    state = await generate(state)
                    outputs.append(state.output)
                    text = await _called(thread, partial(episode.act, state.output.completion))
                    state.messages.append(ChatMessageUser(content=text))
            finally:
                with CancelScope(shield=True):  # time and working limits cancel this task
                    try:
                        if episode.broken is None and episode.info:
                            state.store.set(STORE_KEY, asdict(_with_usage(await _called(thread, episode.end), outputs)))
                    finally:
                        await _called(thread, episode.close)
        finally:
            thread.shutdown(wait=False)
        return state

    return solve


async def _called(thread: Executor, call: Callable[[], T]) -> T:
    """Make a call in the environment's thread and return its result, on either of Inspect's event loops."""
    return await to_thread.run_sync(lambda: thread.submit(call).result())


def _with_usage(outcome: Outcome, outputs: list[ModelOutput]) -> Outcome:
    """Add the usage of the model's outputs to an outcome."""
    usages = [output.usage for output in outputs if output.usage is not None]
    return replace(
        outcome,
        tokens_in=sum(usage.input_tokens for usage in usages),
        tokens_out=sum(usage.output_tokens for usage in usages),
        seconds=sum(output.time or 0.0 for output in outputs),
        cut=sum(output.stop_reason in ("max_tokens", "model_length") for output in outputs),
        filtered=sum(output.stop_reason == "content_filter" for output in outputs),
    )


@scorer(metrics=[mean(), stderr(), ci(), ci_wilson()])  # type: ignore[untyped-decorator]
def outcome() -> Scorer:
    """Score a sample by its episode; the metadata has success and the rest of the outcome."""

    async def score(state: TaskState, target: Target) -> Score:
        result = state.store.get(STORE_KEY)
        return Score(value=result["score"], answer=state.output.completion, metadata=result)

    return score


def report(log: EvalLog) -> Report:
    """Make a report from an Inspect log. Samples with an error are void: counted, but in no mean."""
    settings = log.eval.metadata or {}
    if "tries" not in settings or log.samples is None:
        raise InstanceError(f"{log.location or 'this log'} is not the log of an lmgym task, or has no samples")
    outcomes: list[Outcome] = []
    for sample in sorted(log.samples, key=lambda sample: (sample.metadata["index"], sample.epoch)):
        score = (sample.scores or {}).get("outcome")
        index, attempt = sample.metadata["index"], sample.epoch - 1
        if sample.error or score is None:
            outcomes.append(runner.void(Job(task=settings["task"], index=index, attempt=attempt)))
            continue
        one = Outcome(**(score.metadata or {}))
        left = sample.limit is not None and one.stop == "left"  # only Inspect knows which limit ended it
        outcomes.append(replace(one, stop=sample.limit.type) if left else one)
    return Report(
        task=settings["task"],
        split=settings["split"],
        policy=log.eval.model,
        seed=settings["seed"],
        options=settings["options"],
        outcomes=tuple(outcomes),
        planned=(log.eval.dataset.samples or 0) * settings["tries"],
    )
