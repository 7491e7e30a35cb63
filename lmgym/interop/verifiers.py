"""A verifiers taskset (its `v1` API) of lmgym tasks, played on this machine, and reports from its episodes.

    import asyncio
    from verifiers.v1.cli.eval.runner import run_eval
    from lmgym.interop import verifiers as interop

    config = interop.config("wordle", model="qwen3", base_url="http://localhost:8000/v1", episodes=50)
    found = interop.report(config, asyncio.run(run_eval(config)))

Nothing is uploaded. The environment runs in the harness, in this process; every answer goes through the interception of
verifiers, so that its traces, limits and trainers see all of it. The rollouts of an instance share the environment's
chance.
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

__all__ = ["LmgymHarness", "LmgymTaskset"]  # what verifiers looks for in a plug-in
ID = "lmgym"
T = TypeVar("T")


class LmgymTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which instances of which task."""

    lmgym_task: str = ""
    split: str = "test"
    episodes: int | None = None  # instances; None: all of the split
    seed: int = 0
    prompt: str | None = None  # of the system
    max_turns: int | None = None
    options: dict[str, Any] = {}


class InstanceData(vf.TaskData):  # type: ignore[misc]
    """An instance by its name: what it shows is known when it is opened."""

    lmgym_task: str
    split: str
    index: int
    seed: int  # of the environment's chance
    max_turns: int | None = None
    options: dict[str, Any] = {}


class OutcomeState(vf.State):  # type: ignore[misc]
    """How an episode went."""

    outcome: dict[str, Any] = {}


class LmgymTask(vf.Task[InstanceData, OutcomeState, vf.TaskConfig]):  # type: ignore[misc]
    """An instance and its score."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def task_score(self, trace: vf.Trace) -> float:
        """The benchmark's own figure, in [0, 1]."""
        return float(_outcome(trace)["score"])

    @vf.metric  # type: ignore[untyped-decorator]
    async def played(self, trace: vf.Trace) -> dict[str, float]:
        """Success, the sum of rewards, turns, and turns whose action was none."""
        found = _outcome(trace)
        return {name: float(found[name]) for name in ("success", "reward", "turns", "invalid")}


def _outcome(trace: vf.Trace) -> dict[str, Any]:
    found: dict[str, Any] = trace.state.outcome
    if not found:
        raise BackendError("the rollout ended before its episode began: there is nothing to score")
    return found


class LmgymTaskset(vf.Taskset[LmgymTask, LmgymTasksetConfig]):  # type: ignore[misc]
    """The instances that `lmgym eval` would play."""

    def load(self) -> Iterable[LmgymTask]:
        """One task an instance."""
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
    """Lets the model and an environment take turns until the episode is over, in this process."""

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
        """Play one episode. A backend that breaks is an error of the trace, which is then not scored."""
        make = partial(TextEpisode, data.lmgym_task, split=data.split, max_turns=data.max_turns, **data.options)
        thread = ThreadPoolExecutor(1)  # the environment's own: what ends an episode waits for its last action
        episode = await _called(thread, make)
        client = AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0)  # verifiers has retries of its own
        stop = "timeout"  # by which verifiers cancels this
        try:
            stop = await _played(episode, thread, client, ctx.model, trace, data)
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
    """What a call in the environment's thread returns."""
    return await asyncio.get_running_loop().run_in_executor(thread, call)


async def _played(
    episode: TextEpisode, thread: Executor, client: AsyncOpenAI, model: str, trace: vf.Trace, data: InstanceData
) -> str:
    """What ended the episode, if it did not end itself."""
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
            return str(trace.stop_condition)  # a limit of verifiers refused the turn
        said = reply.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": said})
        text = await _called(thread, partial(episode.act, said))


def config(
    task: str,
    *,
    model: str,
    base_url: str,
    key: str = "OPENAI_API_KEY",
    tries: int = 1,
    folder: Path = Path("runs/verifiers"),
    agent: dict[str, Any] | None = None,
    **choice: Any,
) -> EvalConfig:
    """An evaluation of a task with rollouts on this machine and no upload; `choice` are fields of `LmgymTasksetConfig`.

    `key` names the environment variable with the endpoint's key, `agent` more fields of verifiers' agent.
    """
    for group in ("tasksets", "harnesses"):  # where verifiers looks for plug-ins by their ids
        sys.modules[f"verifiers.v1.{group}.{ID}"] = sys.modules[__name__]
    return EvalConfig(
        env={
            "taskset": {"id": ID, "lmgym_task": task, **choice},
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
    """Our report of an evaluation. A rollout that an error broke is void: counted, and in no mean."""
    chosen = config.env.taskset
    name = runner.id_of(chosen.lmgym_task)
    found: list[Outcome] = []
    attempts: dict[int, int] = {}
    for episode in episodes:
        (trace,) = episode.traces
        index = trace.task.data.index
        attempt = attempts[index] = attempts.get(index, -1) + 1
        if trace.ok and trace.state.outcome:
            found.append(_billed(Outcome(**{**trace.state.outcome, "attempt": attempt}), trace))
        else:
            found.append(runner.void(Job(task=name, index=index, attempt=attempt)))
    return Report(
        task=name,
        split=chosen.split,
        policy=config.model,
        seed=chosen.seed,
        options=chosen.options,
        outcomes=tuple(sorted(found, key=lambda outcome: (outcome.index or 0, outcome.attempt))),
        planned=len(episodes),
    )


def _billed(found: Outcome, trace: vf.Trace) -> Outcome:
    """With the tokens that the endpoint counted."""
    usage = trace.usage
    if usage is None:
        return found
    return replace(found, tokens_in=usage.input_tokens, tokens_out=usage.completion_tokens)
