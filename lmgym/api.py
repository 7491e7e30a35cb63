"""Functions of the Python API, reached as attributes of `lmgym`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lmgym.evaluation.config import EvalConfig
from lmgym.evaluation.plan import EvalPlan
from lmgym.evaluation.play import INTERRUPTED
from lmgym.evaluation.runner import Report
from lmgym.policy.base import Policy
from lmgym.train.load import load_policy


def evaluate(
    task: str,
    policy: str | Policy,
    *,
    split: str = "test",
    episodes: int = 100,
    tries: int = 1,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    temperature: float = 1.0,
    max_tokens: int | None = None,
    context: str = "full",
    tools: str = "auto",
    system: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    **more: Any,
) -> Report:
    """Evaluate a policy on a split of a task, as `lmgym eval` does, and return the report.

    A run that a budget stops has a partial report, whose `stopped` says why; an error of the policy or of a backend is
    raised, and a run with `out` can be resumed after it.

    Args:
        task: Id or folder of the task, such as "wordle" or "lmgym/Wordle-v0".
        policy: Model string as `lmgym eval --model` takes it, or a Policy object, which is used as it is: with its own
            sampling, and without tools.
        split: Split to play.
        episodes: Number of instances; the whole split if it has fewer.
        tries: Episodes per instance.
        seed: Seed of the environments and of local sampling.
        options: Options of the task.
        temperature: Sampling temperature.
        max_tokens: Limit of tokens in an answer; None is what the task needs (32 or more) for local models, 256 or more
            for those that talk, and 2048 for endpoints.
        context: History shown to the model, such as "full" or "window:4".
        tools: How tools are offered: "auto", "native", "template", "text" or "none".
        system: System prompt.
        out: Folder for the run's record (episodes, calls, report); None keeps nothing on disk.
        resume: Continue the run in `out`.
        more: Further fields of `lmgym.evaluation.config.EvalConfig`, such as `seats`, `concurrency` or `budget_cost`.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())) / "run" if out is None else Path(out)
        config = EvalConfig(
            tasks=[task],
            model=policy if isinstance(policy, str) else f"object:{policy.name}",
            split=split,
            episodes=episodes,
            tries=tries,
            seed=seed,
            options=options or {},
            temperature=temperature,
            max_tokens=max_tokens,
            context=context,
            tools=tools,
            system=system,
            out=folder,
            resume=resume,
            **more,
        )
        loaded = {} if isinstance(policy, str) else {config.model: policy}
        evaluation = stack.enter_context(EvalPlan.of(config, task).open(config.budget(), load_policy, loaded))
        report = evaluation.play()
        if evaluation.error is not None:
            raise evaluation.error
        if report.stopped == INTERRUPTED:
            raise KeyboardInterrupt
        return report
