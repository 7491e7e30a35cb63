"""A verifiers taskset (its `v1` API) of lmgym tasks, played on this machine, and reports from its episodes.

    import asyncio
    from verifiers.v1.cli.eval.runner import run_eval
    from lmgym.interop import verifiers as interop

    config = interop.config("wordle", model="qwen3", base_url="http://localhost:8000/v1", episodes=50)
    report = interop.report(config, asyncio.run(run_eval(config)))

Nothing is uploaded. The environment runs in the harness, in this process; every answer passes the interception of
verifiers, so that its traces, limits and trainers see it. All rollouts of an instance use the same environment seed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lmgym.errors import BackendError, MissingExtra
from lmgym.evaluation import runner
from lmgym.evaluation.runner import Outcome, Report
from lmgym.interop.episode import TextEpisode
from lmgym.types import Job

try:
    import verifiers.v1 as vf
    from openai import APIStatusError, AsyncOpenAI
    from verifiers.v1.configs.cli.eval import EvalConfig
except ModuleNotFoundError as error:
    needed = "lmgym.interop.verifiers needs: pip install 'lmgym[verifiers]' in a venv of its own"
    raise MissingExtra(f"{needed} ({error})") from error

__all__ = ["LmgymHarness", "LmgymTaskset"]  # verifiers looks these up in a plug-in
ID = "lmgym"
T = TypeVar("T")


class LmgymTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The task and its instances."""

    lmgym_task: str = ""
    split: str = "test"
    episodes: int | None = None  # instances; None: all of the split
    seed: int = 0
    prompt: str | None = None  # system prompt
    max_turns: int | None = None
    options: dict[str, Any] = {}


class InstanceData(vf.TaskData):  # type: ignore[misc]
    """The name of an instance; its observation is read when the episode starts."""

    lmgym_task: str
    split: str
    index: int
    seed: int  # of the environment
    max_turns: int | None = None
    options: dict[str, Any] = {}


class OutcomeState(vf.State):  # type: ignore[misc]
    """The outcome of an episode."""

    outcome: dict[str, Any] = {}


class LmgymTask(vf.Task[InstanceData, OutcomeState, vf.TaskConfig]):  # type: ignore[misc]
    """An instance and its score."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def task_score(self, trace: vf.Trace) -> float:
        """Return the benchmark's score, in [0, 1]."""
        return float(_outcome(trace)["score"])

    @vf.metric  # type: ignore[untyped-decorator]
    async def played(self, trace: vf.Trace) -> dict[str, float]:
        """Return success, the sum of rewards, turns and invalid turns."""
        outcome = _outcome(trace)
        return {name: float(outcome[name]) for name in ("success", "reward", "turns", "invalid")}


def _outcome(trace: vf.Trace) -> dict[str, Any]:
    outcome: dict[str, Any] = trace.state.outcome
    if not outcome:
        raise BackendError("the rollout ended before its episode began; there is nothing to score")
    return outcome


class LmgymTaskset(vf.Taskset[LmgymTask, LmgymTasksetConfig]):  # type: ignore[misc]
    """The instances that `lmgym eval` plays."""

    def load(self) -> Iterable[LmgymTask]:
        """Yield a task per instance."""
        chosen = self.config
        name, split = runner.id_of(chosen.lmgym_task), chosen.split
        size = runner.size_of(name, split, chosen.options)
        count = size if chosen.episodes is None else chosen.episodes
        for job in runner.episodes(name, split=split, size=size, count=count, seed=chosen.seed, options=chosen.options):
            data = InstanceData(
                name=f"{name} {split}/{job.index}",
                prompt=f"{name} {split}/{job.index}",
                system_prompt=chosen.prompt,
                lmgym_task=name,
                split=split,
                index=job.index,
                seed=job.seed,
                max_turns=chosen.max_turns,
                options=chosen.options,
            )
            yield LmgymTask(data, chosen.task)


class LmgymHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """A harness that alternates between model and environment, in this process."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: InstanceData,
    ) -> vf.ProgramResult:
        """Play one episode. A BackendError becomes an error of the trace, which is then not scored."""
        make = partial(TextEpisode, data.lmgym_task, split=data.split, max_turns=data.max_turns, **data.options)
        thread = ThreadPoolExecutor(1)  # the environment's own, so that the end of an episode waits for its last action
        episode = await _called(thread, make)
        client = AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0)  # verifiers retries itself
        stop = "timeout"  # verifiers cancels this task at its timeout
        try:
            stop = await _play(episode, thread, client, ctx.model, trace, data)
        finally:
            await client.close()
            try:
                if episode.broken is None and episode.info:
                    trace.state.outcome = asdict(await _called(thread, partial(episode.end, stop)))
            finally:
                await _called(thread, episode.close)
                thread.shutdown(wait=False)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


async def _called(thread: Executor, call: Callable[[], T]) -> T:
    """Make a call in the environment's thread and return its result."""
    return await asyncio.get_running_loop().run_in_executor(thread, call)


async def _play(
    episode: TextEpisode, thread: Executor, client: AsyncOpenAI, model: str, trace: vf.Trace, data: InstanceData
) -> str:
    """Play until the episode is over; return the limit that ended it early, or ""."""
    messages: list[Any] = [] if data.system_prompt is None else [{"role": "system", "content": data.system_prompt}]
    text = await _called(thread, partial(episode.begin, index=data.index, seed=data.seed))
    while True:
        messages.append({"role": "user", "content": text})
        if episode.over:
            return ""
        try:
            reply = await client.chat.completions.create(model=model, messages=messages)
        except APIStatusError:
            if trace.stop_condition is None:
                raise
            return str(trace.stop_condition)  # a limit of verifiers ended the episode
        answer = reply.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": answer})
        text = await _called(thread, partial(episode.act, answer))


def config(
    task: str,
    *,
    model: str,
    base_url: str,
    key: str = "OPENAI_API_KEY",
    tries: int = 1,
    folder: Path = Path("runs/verifiers"),
    agent: dict[str, Any] | None = None,
    **settings: Any,
) -> EvalConfig:
    """Configure an evaluation with local rollouts and no upload; `settings` are fields of `LmgymTasksetConfig`.

    `key` is the environment variable with the endpoint's key; `agent` has further fields of verifiers' agent.
    """
    for group in ("tasksets", "harnesses"):  # verifiers imports plug-ins by these names
        sys.modules[f"verifiers.v1.{group}.{ID}"] = sys.modules[__name__]
    return EvalConfig(
        env={
            "taskset": {"id": ID, "lmgym_task": task, **settings},
            "agent": {"runtime": {"type": "subprocess"}, **(agent or {})},
        },
        model=model,
        client={"type": "eval", "base_url": base_url, "api_key_var": key},
        num_rollouts=tries,
        output_dir=folder,
        push=False,
        rich=None,
    )


def report(config: EvalConfig, episodes: Sequence[vf.Episode]) -> Report:
    """Make a report from an evaluation. Rollouts with an error are void: counted, but in no mean."""
    chosen = config.env.taskset
    name = runner.id_of(chosen.lmgym_task)
    outcomes: list[Outcome] = []
    attempts: dict[int, int] = {}
    for episode in episodes:
        (trace,) = episode.traces
        index = trace.task.data.index
        attempt = attempts[index] = attempts.get(index, -1) + 1
        if trace.ok and trace.state.outcome:
            one = Outcome(**{**trace.state.outcome, "attempt": attempt})
            if (usage := trace.usage) is not None:
                one = replace(one, tokens_in=usage.input_tokens, tokens_out=usage.completion_tokens)
            outcomes.append(one)
        else:
            outcomes.append(runner.void(Job(task=name, index=index, attempt=attempt)))
    return Report(
        task=name,
        split=chosen.split,
        policy=config.model,
        seed=chosen.seed,
        options=chosen.options,
        outcomes=tuple(sorted(outcomes, key=lambda outcome: (outcome.index or 0, outcome.attempt))),
        planned=len(episodes),
    )
