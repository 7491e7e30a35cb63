"""Tasks of lmgym as tasks of Inspect, and Inspect's logs as our reports.

    from inspect_ai import eval
    from lmgym.interop import inspect as interop

    (log,) = eval(interop.task("wordle", episodes=50, tries=4), model="openai/gpt-5")
    report.write(Path("runs/inspect"), interop.report(log))  # lmgym compare reads it

The same instances and seeds as `lmgym eval` plays. The tries of an instance are Inspect's epochs, reduced by the mean,
so that Inspect's standard error and intervals are over instances, as ours are.
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

KEPT = "lmgym"  # where an outcome stands in a sample's store
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
        thread = ThreadPoolExecutor(1)  # the environment's own: what ends an episode waits for its last action
        try:
            make = partial(TextEpisode, name, split=split, max_turns=max_turns, **options)
            episode = await _called(thread, make)
            spoken: list[ModelOutput] = []
            try:
                chance = runner.try_seed(name, split, index, attempt, seed=seed)
                begin = partial(episode.begin, index=index, attempt=attempt, seed=chance)
                state.messages = [] if prompt is None else [ChatMessageSystem(content=prompt)]
                state.messages.append(ChatMessageUser(content=await _called(thread, begin)))
                while not episode.over:
                    state = await generate(state)
                    spoken.append(state.output)
                    text = await _called(thread, partial(episode.act, state.output.completion))
                    state.messages.append(ChatMessageUser(content=text))
            finally:
                with CancelScope(shield=True):  # limits of time and work arrive as cancellations
                    try:
                        if episode.broken is None and episode.info:
                            state.store.set(KEPT, asdict(_billed(await _called(thread, episode.end), spoken)))
                    finally:
                        await _called(thread, episode.close)
        finally:
            thread.shutdown(wait=False)
        return state

    return solve


async def _called(thread: Executor, call: Callable[[], T]) -> T:
    """What a call in the environment's thread returns, on either of Inspect's event loops."""
    return await to_thread.run_sync(lambda: thread.submit(call).result())


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
        if sample.error or score is None:
            found.append(runner.void(Job(task=known["task"], index=index, attempt=attempt)))
            continue
        one = Outcome(**(score.metadata or {}))
        left = sample.limit is not None and one.stop == "left"  # which limit cut it is known to Inspect alone
        found.append(replace(one, stop=sample.limit.type) if left else one)
    return Report(
        task=known["task"],
        split=known["split"],
        policy=log.eval.model,
        seed=known["seed"],
        options=known["options"],
        outcomes=tuple(found),
        planned=(log.eval.dataset.samples or 0) * known["tries"],
    )
