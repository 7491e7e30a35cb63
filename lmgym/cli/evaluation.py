"""From the words of `lmgym eval` to a session: settings, folder, policy, engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from lmgym.cli.options import json_or_literal, task_options
from lmgym.cli.policies import answer_of, kind_of, run_folder
from lmgym.cli.seats import Reach, Seats, seats_of
from lmgym.env.registry import find, load
from lmgym.errors import PolicyError, RecipeError
from lmgym.evaluation import prices as price_table
from lmgym.evaluation import runner, settings
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.protocol import protocol
from lmgym.evaluation.record import CALLS, FACTS, Record, read_facts
from lmgym.policy.endpoints.secrets import Secrets, without_secrets
from lmgym.policy.load import load_remote

if TYPE_CHECKING:
    from lmgym.evaluation.budget import Budget
    from lmgym.policy.base import Policy
    from lmgym.policy.endpoints.openai import Asking
    from lmgym.policy.endpoints.remote import RemotePolicy
    from lmgym.rollout.engine import Engine
    from lmgym.types import Job

RUNS = Path("runs/eval")
MANY = {"remote": 32, "local": 64}  # episodes at once


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """What was said on the command line."""

    tasks: list[str]
    model: str
    split: str
    standard: bool
    episodes: int
    tries: int
    k: int | None
    temperature: float
    max_tokens: int | None
    context: str
    tools: str
    system: str | None
    seat: list[str] | None
    request: list[str] | None
    seed: int
    option: list[str] | None
    out: Path | None
    resume: bool
    dry_run: bool
    pilot: bool
    budget_episodes: int | None
    budget_tokens: int | None
    budget_cost: float | None
    budget_seconds: float | None
    prices: Path | None
    key_env: str | None
    concurrency: int | None
    timeout: float
    retries: int
    retry_wait: float
    quiet: bool

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.tries < 1:
            raise RecipeError(f"--episodes and --tries must be at least 1; got {self.episodes} and {self.tries}")
        if self.tools not in ("auto", *get_args(settings.ToolMode)):
            raise RecipeError(f"--tools is one of auto, {', '.join(get_args(settings.ToolMode))}; got {self.tools!r}")
        if len(set(map(runner.id_of, self.tasks))) < len(self.tasks):
            raise RecipeError(f"a task is named twice: {' '.join(self.tasks)}")
        settings.context_rule(self.context)
        said = [self.split, self.context, str(self.out or ""), *(self.option or []), *(self.request or [])]
        models = [self.model, *pairs(self.seat, "--seat takes seat=MODEL").values()]
        check_keys(models, [*said, system_prompt(self.system) or ""], key=self.key_env)

    @property
    def kind(self) -> str:
        """Of the policy: remote, local, or scripted."""
        return kind_of(self.model)

    @property
    def options(self) -> dict[str, Any]:
        """Of the task."""
        return task_options(self.option or [])

    @property
    def answer(self) -> int:
        """Tokens of an answer at most."""
        return self.max_tokens or answer_of(self.model)

    @property
    def many(self) -> int:
        """Episodes at once."""
        return self.concurrency or MANY["remote" if self.kind == "remote" else "local"]

    def price(self, model: str) -> price_table.Price | None:
        """Of a policy."""
        return price_table.find_price(model, [self.prices] if self.prices else [])


def check_keys(models: list[str], others: list[str], *, key: str | None = None) -> None:
    """Raise PolicyError, which repeats no key, where one stands in what would be recorded; `key` names its variable."""
    secrets = Secrets.of_environment(key=key)
    for model in models:
        if model.startswith(("http:", "https:")):
            without_secrets(model, secrets)
    if any(secrets.struck(word) != word for word in (*models, *others)):
        raise PolicyError(
            "a key stands on the command line or in the system prompt: keys come from the environment only, "
            "see --key-env"
        )


def jobs_of(config: EvalConfig, task: str) -> list[Job]:
    """The episodes of a task, as asked for."""
    if config.standard:
        if config.options or config.seed:
            raise RecipeError("--standard is played without --option and --seed: the board fixes them")
        found = protocol(task).jobs()
    else:
        split, options = config.split, config.options
        size = runner.size_of(task, split, options)
        chosen: Mapping[str, Any] = {"count": config.episodes, "tries": config.tries, "seed": config.seed}
        found = runner.episodes(runner.id_of(task), split=split, size=size, options=options, **chosen)
    _check_k(config, 1 + max((job.attempt for job in found), default=0))
    return [replace(job, prompt=system_prompt(config.system)) for job in found]


def _check_k(config: EvalConfig, tries: int) -> None:
    """Refuse, before anything is played, what so many tries cannot tell."""
    if config.k is not None and not 1 <= config.k <= tries:
        raise RecipeError(
            f"neither pass@{config.k} nor pass^{config.k} can be estimated without bias from {tries} tries of an "
            f"instance: evaluate with --tries {max(config.k, 1)}"
        )


def system_prompt(text: str | None) -> str | None:
    """A system prompt, or that of a file where it begins with @."""
    return Path(text[1:]).read_text(encoding="utf-8-sig") if text is not None and text.startswith("@") else text


def settings_of(config: EvalConfig, jobs: list[Job]) -> settings.Settings:
    """What the score will depend on."""
    spec = find(jobs[0].task)
    offers = getattr(load(spec), "tools").__module__ != "lmgym.env.env"  # noqa: B009  (of a class not known here)
    mode = (
        {"remote": "native", "local": "template"}.get(config.kind, "none") if config.tools == "auto" else config.tools
    )
    if mode == "template" and config.kind == "remote":
        raise RecipeError(f"--tools template is for local models; {config.model} takes native, text or none")
    if mode == "native" and config.kind == "local":
        raise RecipeError(f"--tools native is for endpoints; {config.model} takes template, text or none")
    known: Any = mode if offers else "none"
    return settings.Settings(
        task=spec.id,
        split=jobs[0].split,
        options=dict(jobs[0].options),
        instances=tuple(sorted({job.index for job in jobs if job.index is not None})),
        tries=1 + max(job.attempt for job in jobs),
        seed=config.seed,
        temperature=config.temperature,
        max_tokens=config.answer,
        context=config.context,
        tools=known,
        prompt=jobs[0].prompt,
        seats=pairs(config.seat, "--seat takes seat=MODEL"),
        request=request_of(config),
    )


def request_of(config: EvalConfig) -> dict[str, Any]:
    """Further members of a request. Raises RecipeError where no endpoint is asked, and for what JSON cannot say."""
    given = pairs(config.request, "--request takes name=value")
    models = [config.model, *pairs(config.seat, "--seat takes seat=MODEL").values()]
    if given and not any(kind_of(model) == "remote" for model in models):
        raise RecipeError(f"--request is for endpoints; {' and '.join(models)} would not be asked so")
    found = {name: json_or_literal(value) for name, value in given.items()}
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"--request takes what JSON can say: {error}") from error
    return found


def pairs(words: list[str] | None, complaint: str) -> dict[str, str]:
    """Words such as `name=value` by their names."""
    found = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise RecipeError(f"{complaint}; got {word!r}")
        found[name] = value
    return found


def facts_of(config: EvalConfig, chosen: settings.Settings) -> dict[str, Any]:
    """What `run.json` says of the run, and what a resumed one must agree with."""
    price = config.price(config.model)
    return {
        "policy": config.model,
        "settings": chosen.state_dict(),
        "identity": chosen.identity(),
        "standard": config.standard,
        "price": None if price is None else vars(price),
    }


def folder_of(config: EvalConfig, task: str, facts: Mapping[str, Any]) -> Path:
    """Where the run is recorded: as said, or beside the others under the names of task and model.

    Where nothing is said a new run gets a new folder, and a resumed one is the latest with the same settings.
    """
    if config.out is not None:
        return config.out if len(config.tasks) == 1 else config.out / find(task).name
    base = f"{find(task).name}-{slug(config.model)}"
    numbered = [RUNS / base, *(RUNS / f"{base}-{number}" for number in range(2, 1 + len(list(RUNS.glob("*"))) + 2))]
    taken = [folder for folder in numbered if (folder / FACTS).exists()]
    if config.resume:
        same = [folder for folder in taken if read_facts(folder).get("identity") == facts["identity"]]
        if same:
            return same[-1]
        if len(config.tasks) == 1:
            raise RecipeError(f"nothing to resume: no run in {RUNS}/{base}* has these settings; name it with --out")
    return next(folder for folder in numbered if folder not in taken)


def slug(model: str) -> str:
    """A policy's name as part of a folder's: its last words."""
    if kind_of(model) == "remote":
        model = model.rpartition("#")[2] if "#" in model else model.partition(":")[2]
    elif (folder := run_folder(model)) is not None:
        model = folder.name
    elif model.startswith("hf:"):
        path = Path(model[3:])
        model = path.parent.name if path.name == "policy" else path.name
    return re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")[:60] or "policy"


def resumes(config: EvalConfig, folder: Path) -> bool:
    """Whether a run goes on; of several tasks those that were not reached begin."""
    return config.resume and (len(config.tasks) == 1 or (folder / FACTS).exists())


def _reach(config: EvalConfig, record: Record, calls: Calls | None) -> Reach:
    """How the endpoints and programs of a run are reached."""
    from lmgym.policy.endpoints.pace import Patience

    patience = Patience(timeout=config.timeout, tries=config.retries, first=config.retry_wait)

    def reached(model: str, asking: Asking) -> RemotePolicy:
        return load_remote(
            model,
            asking=asking,
            pictures=record.pictures,
            patience=patience,
            concurrency=config.many,
            ledger=calls,
            costs=price_table.costs_by(config.price(model)),
        )

    return reached


def build_policies(
    config: EvalConfig, chosen: settings.Settings, record: Record, budget: Budget, local: dict[str, Policy]
) -> tuple[Calls | None, Seats]:
    """The book of calls and the policies; where they cannot be had, the run that was to begin leaves nothing behind."""
    calls = None
    try:
        calls = book_of(config, chosen, record, budget)
        return calls, seats_of(config.model, chosen, _reach(config, record, calls), local, key=config.key_env)
    except BaseException:
        if calls is not None:
            calls.close()
        record.discard()
        raise


def engine_of(config: EvalConfig, seats: Seats, record: Record) -> Engine:
    """The engine that plays."""
    from lmgym.rollout.engine import Engine

    rule = settings.context_rule(config.context)
    return Engine(context=rule, seats=seats.parts(), concurrency=config.many, pictures=record.pictures)


def budget_of(config: EvalConfig) -> Budget:
    """What the command may use up."""
    from lmgym.evaluation.budget import Budget

    return Budget(
        episodes=config.budget_episodes,
        tokens=config.budget_tokens,
        cost=config.budget_cost,
        seconds=config.budget_seconds,
    )


def price_of(config: EvalConfig) -> Callable[[Mapping[str, Any]], float | None]:
    """US dollars of a call of the model by its usage; None: unknown."""
    return price_table.costs_by(config.price(config.model))


def book_of(config: EvalConfig, chosen: settings.Settings, record: Record, budget: Budget) -> Calls | None:
    """The book of calls, where any policy makes calls."""
    models = [config.model, *chosen.seats.values()]
    bought = [model for model in models if kind_of(model) == "remote"]
    unpriced = [model for model in bought if config.price(model) is None and not model.startswith("cmd:")]
    if config.budget_cost is not None and unpriced:
        raise RecipeError(f"--budget-cost needs the price of {unpriced[0]}: give it in a table with --prices FILE")
    return Calls(record.folder / CALLS, budget) if bought else None
