"""One task of an evaluation: its episodes, settings, run folder and estimate, and the `Evaluation` that plays it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmgym.env.registry import find, offers_tools
from lmgym.errors import InstanceError, RecipeError
from lmgym.evaluation import runner
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.config import EvalConfig
from lmgym.evaluation.estimate import PILOT, Estimate, Weighed, estimate
from lmgym.evaluation.play import Evaluation
from lmgym.evaluation.policies import (
    TALKING_TOKENS,
    LoadPolicy,
    Policies,
    build_policies,
    check_template,
    default_max_tokens,
    kind_of,
    run_folder,
    talks,
    weights_state,
)
from lmgym.evaluation.protocol import protocol
from lmgym.evaluation.record import CALLS, FACTS, Record, read_facts
from lmgym.evaluation.runner import Outcome
from lmgym.evaluation.settings import SCRIPTED, Settings, ToolMode, context_rule
from lmgym.policy import scripted
from lmgym.policy.base import Policy
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.policy.load import load_remote
from lmgym.policy.select import model_of, selection_of, tries_of
from lmgym.rollout.answers import AnswerFormat, system_prompt
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.types import FIRST_SEAT, Job

if TYPE_CHECKING:
    from lmgym.policy.endpoints.calls import RequestOptions
    from lmgym.policy.endpoints.remote import RemotePolicy

RUNS = Path("runs/eval")
PLAYERS = ("oracle", "demonstrator", "random", "null")


@dataclass(frozen=True, kw_only=True)
class EvalPlan:
    """The evaluation of a policy on one task."""

    config: EvalConfig
    jobs: Sequence[Job]  # all episodes, in order
    settings: Settings  # everything the score depends on besides the policy

    @classmethod
    def of(cls, config: EvalConfig, task: str) -> EvalPlan:
        """Plan the episodes of a task. Raises RecipeError for options that do not fit the task or the policy."""
        jobs = _jobs(config, task)
        tries = 1 + max((job.attempt for job in jobs), default=0)
        if config.k is not None and not 1 <= config.k <= tries:
            raise RecipeError(
                f"neither pass@{config.k} nor pass^{config.k} can be estimated without bias from {tries} tries of an "
                f"instance: evaluate with --tries {max(config.k, 1)}"
            )
        answers = _answers(config, jobs[0].task)
        talking = answers == "action" or talks(config.model)
        max_tokens = config.max_tokens or _max_tokens(config.model, jobs[0].task, talking=talking)
        settings = Settings(
            task=jobs[0].task,
            split=jobs[0].split,
            options=dict(jobs[0].options),
            instances=tuple(sorted({job.index for job in jobs if job.index is not None})),
            tries=tries,
            seed=config.seed,
            temperature=config.temperature,
            max_tokens=max_tokens,
            seat_max_tokens=_seat_max_tokens(config, jobs[0].task, max_tokens),
            context=config.context,
            tools=_tool_mode(config, jobs[0].task),
            prompt=_prompt(config, jobs[0].task),
            answers=answers,
            seats=_seats(config, jobs[0].task),
            request=_request(config),
        )
        return cls(config=config, jobs=jobs, settings=settings)

    def facts(self) -> dict[str, Any]:
        """Return the content of `run.json`, with which a resumed run must agree."""
        price = self.config.price(self.config.model)
        return {
            "policy": self.config.model,
            "settings": self.settings.state_dict(),
            "identity": self.settings.identity(),
            "standard": self.config.standard,
            "price": None if price is None else vars(price),
            "weights": {model: weights_state(model) for model in self.config.models},
        }

    def folder(self) -> Path:
        """Return the run's folder: `--out`, else a new one named after task and model.

        A resumed run without `--out` continues the latest folder with the same settings. Of several tasks, each has a
        folder within `--out`.
        """
        config, name = self.config, find(self.settings.task).name
        if config.out is not None:
            if len(config.tasks) == 1:
                return config.out
            folders = {find(task).id: config.out / _task_folder(config, task) for task in config.tasks}
            if config.resume and not any((folder / FACTS).exists() for folder in folders.values()):
                raise RecipeError(
                    f"nothing to resume: {config.out} has no run of these tasks; leave --resume out to start there"
                )
            return folders[self.settings.task]
        base = f"{name}-{_slug(config.model)}"
        numbered = [RUNS / base, *(RUNS / f"{base}-{number}" for number in range(2, len(list(RUNS.glob("*"))) + 3))]
        taken = [folder for folder in numbered if (folder / FACTS).exists()]
        if config.resume:
            identity = self.settings.identity()
            same = [folder for folder in taken if read_facts(folder).get("identity") == identity]
            if same:
                return same[-1]
            if len(config.tasks) == 1:
                raise RecipeError(f"nothing to resume: no run in {RUNS}/{base}* has these settings; name it with --out")
        return next(folder for folder in numbered if folder not in taken)

    @contextmanager
    def open(self, budget: Budget, load: LoadPolicy, local: dict[str, Policy]) -> Iterator[Evaluation]:
        """Open the run's folder, its calls and its policies, and close them at the end.

        `local` keeps loaded policies for the next task. If a policy cannot be had, a new run leaves no folder behind.
        """
        config, folder = self.config, self.folder()
        resume = config.resume and (len(config.tasks) == 1 or (folder / FACTS).exists())  # the first of many that began
        secrets = Secrets.of_environment(key=config.key_env)
        with ExitStack() as stack:
            record = Record(folder, self.facts(), resume=resume, secrets=secrets)
            stack.callback(record.close)
            with ExitStack() as undo:
                undo.callback(record.discard)
                calls = self._calls(folder, budget)
                if calls is not None:
                    undo.callback(calls.close)
                policies = self._policies(record, calls, load, local)
                undo.pop_all()
            if calls is not None:
                stack.callback(calls.close)
            stack.callback(policies.close)
            yield Evaluation(
                record=record,
                policies=policies,
                jobs=self.jobs[:PILOT] if config.pilot else self.jobs,
                engine=Engine(
                    context=context_rule(config.context),
                    seats=policies.seats,
                    concurrency=config.max_episodes,
                    pictures=record.pictures,
                ),
                budget=budget,
                settings=self.settings,
                calls=calls,
            )

    def dry_run(self) -> tuple[Estimate, str]:
        """Estimate the run without its model, from a player of the task; return the estimate and the player's name.

        Raises InstanceError if the task has no player of its own.
        """
        for player in (scripted.hinted("demonstrator"), scripted.random()):
            model = self.config.model
            weighed = Weighed(
                player.name, player.answer, player.wants, costs=self.config.costs(model), tries=tries_of(model)
            )
            engine = Engine(
                context=context_rule(self.config.context), seats={FIRST_SEAT: SeatConfig(tools=self.settings.tools)}
            )
            try:
                report = runner.evaluate(weighed, list(self.jobs[:PILOT]), engine=engine)
            except InstanceError:
                continue
            return self.estimate(report.outcomes), player.name
        raise InstanceError(
            f"{self.settings.task} has no demonstrator and lists no actions to estimate from: use --pilot"
        )

    def estimate(self, pilot: Sequence[Outcome]) -> Estimate:
        """Estimate the whole run from the outcomes of its first episodes."""
        turns = self.settings.options.get("max_turns") or find(self.settings.task).max_turns
        played = [outcome for outcome in pilot if not outcome.voided]
        return estimate(
            played,
            len(self.jobs),
            max_turns=turns,
            max_tokens=self.settings.max_tokens or 0,
            tries=tries_of(self.config.model),
        )

    def _calls(self, folder: Path, budget: Budget) -> Calls | None:
        """Open the log of calls if any policy is remote."""
        remote = [model_of(model) for model in self.config.models if kind_of(model) == "remote"]
        unpriced = [model for model in remote if self.config.price(model) is None and not model.startswith("cmd:")]
        if self.config.budget_cost is not None and unpriced:
            raise RecipeError(f"--budget-cost needs the price of {unpriced[0]}: give it in a table with --prices FILE")
        return Calls(folder / CALLS, budget) if remote else None

    def _policies(self, record: Record, calls: Calls | None, load: LoadPolicy, local: dict[str, Policy]) -> Policies:
        from lmgym.policy.endpoints.pace import RetryLimits

        config = self.config
        retries = RetryLimits(timeout=config.timeout, attempts=config.retries, first_wait=config.retry_wait)

        def connect(model: str, request: RequestOptions) -> RemotePolicy:
            return load_remote(
                model,
                request=request,
                pictures=record.pictures,
                retries=retries,
                concurrency=config.max_episodes,
                ledger=calls,
                costs=config.costs(model),
            )

        policies = build_policies(config.model, self.settings, connect, load, local, key=config.key_env)
        if config.tools == "template" and (model := model_of(config.model)) in local:
            check_template(local[model])
        return policies


def _task_folder(config: EvalConfig, task: str) -> str:
    """Return the name of a task's folder within `--out`: the task's own, or its id if several tasks share the name."""
    names = [find(each).name for each in config.tasks]
    spec = find(task)
    return spec.name if names.count(spec.name) == 1 else spec.id.replace("/", "-")


def _jobs(config: EvalConfig, task: str) -> list[Job]:
    if config.standard:
        if config.options or config.seed:
            raise RecipeError("--standard takes neither --option nor --seed: the leaderboard fixes both")
        jobs = protocol(task).jobs()
    else:
        jobs = runner.episodes(
            runner.id_of(task),
            split=config.split,
            size=runner.size_of(task, config.split, config.options),
            options=config.options,
            count=config.episodes,
            tries=config.tries,
            seed=config.seed,
        )
    return [replace(job, prompt=_prompt(config, job.task)) for job in jobs]


def _prompt(config: EvalConfig, task: str) -> str | None:
    return system_prompt(config.system, find(task).instructions, _answers(config, task))


def _answers(config: EvalConfig, task: str) -> AnswerFormat:
    """Return the format of the agent's answers. Raises RecipeError where it does not fit the policy or the task.

    By default a model that talks ends its answers in an action, if the task's actions are commands in words.
    """
    if config.answers == "auto":
        return "action" if talks(config.model) and not (find(task).prose or offers_tools(find(task))) else "plain"
    if config.answers == "action" and config.model in PLAYERS:
        raise RecipeError(f"--answers action is for models; {config.model} answers with the action alone")
    if config.answers == "action" and offers_tools(find(task)):
        raise RecipeError(f"--answers action is for actions in words; those of {task} are tool calls, see --tools")
    return cast(AnswerFormat, config.answers)


def _seats(config: EvalConfig, task: str) -> dict[str, str]:
    """Return the models of other seats; those named `scripted` stay with the task's own players."""
    spec = find(task)
    if unknown := sorted(set(config.seats) - set(spec.seats)):
        listed = f"choose from {', '.join(spec.seats)}" if spec.seats else "it has the agent's only"
        if not spec.remote:
            raise RecipeError(f"{spec.id} has no seat {unknown[0]!r}: {listed}")
    return {seat: model for seat, model in config.seats.items() if model != SCRIPTED}


def _max_tokens(model: str, task: str, *, talking: bool) -> int:
    """Return the limit of tokens in an answer of a model, unless one is set."""
    needed = find(task).answer_tokens
    return default_max_tokens(model, least=max(needed, TALKING_TOKENS) if talking else needed)


def _seat_max_tokens(config: EvalConfig, task: str, limit: int) -> dict[str, int]:
    """Return the default limits of the models in other seats that differ from `limit`, the agent's."""
    if config.max_tokens:
        return {}
    models = {seat: model for seat, model in _seats(config, task).items() if kind_of(model) != "scripted"}
    limits = {seat: _max_tokens(model, task, talking=talks(model)) for seat, model in models.items()}
    return {seat: own for seat, own in limits.items() if own != limit}


def _tool_mode(config: EvalConfig, task: str) -> ToolMode:
    """Return how the task's tools are offered to the policy."""
    kind, mode = kind_of(config.model), config.tools
    if mode == "auto":
        mode = {"remote": "native", "local": "template", "scripted": "none"}[kind]
    if mode == "template" and kind == "remote":
        raise RecipeError(f"--tools template is for local models; {config.model} takes native, text or none")
    if mode == "native" and kind == "local":
        raise RecipeError(f"--tools native is for endpoints; {config.model} takes template, text or none")
    return cast(ToolMode, mode) if offers_tools(find(task)) else "none"


def _request(config: EvalConfig) -> dict[str, Any]:
    """Return the extra request fields. Raises RecipeError without an endpoint, or for values that JSON cannot hold."""
    if config.request and not any(kind_of(model) == "remote" for model in config.models):
        raise RecipeError(f"--request is for endpoints; {' and '.join(config.models)} takes no request fields")
    try:
        json.dumps(config.request, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"--request takes JSON values: {error}") from error
    return dict(config.request)


def _slug(model: str) -> str:
    """Return the distinctive part of a model string as part of a folder's name."""
    if (selection := selection_of(model)) is not None:
        return f"{selection.kind}-{selection.tries}-{_slug(selection.model)}"
    if kind_of(model) == "remote":
        model = model.rpartition("#")[2] if "#" in model else model.partition(":")[2]
    elif (folder := run_folder(model)) is not None:
        model = folder.name
    elif model.startswith("hf:"):
        path = Path(model[3:])
        model = path.parent.name if path.name == "policy" else path.name
    return re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")[:60] or "policy"
