"""The options of an evaluation, each declared once: `lmgym eval` makes its command line from these fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Argument
from typer import Option as Opt

from lmgym.errors import PolicyError, RecipeError
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.policies import kind_of
from lmgym.evaluation.prices import Price, costs_by, find_price
from lmgym.evaluation.runner import id_of
from lmgym.evaluation.settings import RULES, SCRIPTED, ToolMode, context_rule
from lmgym.policy.endpoints.secrets import Secrets, without_secrets
from lmgym.policy.select import model_of
from lmgym.rollout.answers import AnswerFormat

MODELS = (
    "tiny, smollm2, hf:PATH, run:FOLDER, http://HOST/v1#MODEL, anthropic:MODEL, litellm:PROVIDER/MODEL, cmd:PROGRAM, "
    "majority:N:MODEL, verified:N:MODEL, oracle, demonstrator, random, null, human, python:MODULE:FUNCTION."
)
CONCURRENCY = {"remote": 32, "local": 64, "scripted": 64}  # episodes at once, unless set


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Options of an evaluation on one task or several."""

    tasks: Annotated[list[str], Argument(help="Task ids or folders.")]
    model: Annotated[str, Opt(help=MODELS)]
    split: Annotated[str, Opt(help="Split to play.")] = "test"
    standard: Annotated[bool, Opt("--standard", help="Play the leaderboard's episodes of each task.")] = False
    episodes: Annotated[int, Opt(help="Number of instances; the whole split if it has fewer.")] = 100
    tries: Annotated[int, Opt(help="Episodes per instance.")] = 1
    k: Annotated[int | None, Opt("--k", help="Show pass@k and pass^k; at most the number of tries.")] = None
    temperature: Annotated[float, Opt(help="Sampling temperature.")] = 1.0
    max_tokens: Annotated[
        int | None, Opt(min=1, help="Token limit per answer, in all seats; default 2048 remote, else the task's.")
    ] = None
    context: Annotated[str, Opt(help=f"History shown to the model: {RULES}.")] = "full"
    tools: Annotated[str, Opt(help="Tool calling: auto, native, template, text or none.")] = "auto"
    system: Annotated[str | None, Opt(help="System prompt, or @FILE.")] = None
    answers: Annotated[
        str,
        Opt(help="Form of an answer: plain (the action alone), action (it ends in Action: ...), auto (by the model)."),
    ] = "auto"
    seats: Annotated[Mapping[str, str], Opt("--seat", help="Policy of another seat, SEAT=MODEL; repeatable.")] = field(
        default_factory=dict
    )
    request: Annotated[Mapping[str, Any], Opt(help="Extra request field, NAME=JSON; repeatable.")] = field(
        default_factory=dict
    )
    seed: Annotated[int, Opt(min=0, help="Seed of the environments and of local sampling.")] = 0
    options: Annotated[Mapping[str, Any], Opt("--option", help="Task option, NAME=VALUE; repeatable.")] = field(
        default_factory=dict
    )
    out: Annotated[Path | None, Opt(help="Folder of the run; default runs/eval/TASK-MODEL.")] = None
    resume: Annotated[bool, Opt("--resume", help="Continue the run; no reply is paid for twice.")] = False
    dry_run: Annotated[bool, Opt("--dry-run", help="Estimate the run without calling the model.")] = False
    pilot: Annotated[bool, Opt("--pilot", help="Play 3 episodes, keep them, and estimate the whole run.")] = False
    budget_episodes: Annotated[int | None, Opt(help="Maximum episodes over all sessions of the run.")] = None
    budget_tokens: Annotated[int | None, Opt(help="Maximum tokens, prompts and answers together.")] = None
    budget_cost: Annotated[float | None, Opt(help="Maximum cost in US dollars.")] = None
    budget_seconds: Annotated[float | None, Opt(help="Maximum seconds of this session.")] = None
    prices: Annotated[Path | None, Opt(help="JSON price table, looked up before the built-in one.")] = None
    key_env: Annotated[
        str | None, Opt(help="Environment variable with the API key of --model; LMGYM_API_KEY by default.")
    ] = None
    concurrency: Annotated[int | None, Opt(min=1, help="Maximum concurrent episodes and calls.")] = None
    timeout: Annotated[float, Opt(min=0.001, help="Seconds allowed per call.")] = 300.0
    retries: Annotated[int, Opt(min=1, help="Attempts per call; HTTP 429 does not count.")] = 8
    retry_wait: Annotated[float, Opt(min=0.0, help="Seconds before the second attempt; doubles each time.")] = 0.5
    quiet: Annotated[bool, Opt("--quiet", help="Hide the progress table.")] = False

    def __post_init__(self) -> None:
        modes = ("auto", *get_args(ToolMode))
        if self.episodes < 1 or self.tries < 1:
            raise RecipeError(f"--episodes and --tries must be at least 1; got {self.episodes} and {self.tries}")
        if self.tools not in modes:
            raise RecipeError(f"unknown --tools {self.tools!r}; choose from {', '.join(modes)}")
        forms = ("auto", *get_args(AnswerFormat))
        if self.answers not in forms:
            raise RecipeError(f"unknown --answers {self.answers!r}; choose from {', '.join(forms)}")
        if len(set(map(id_of, self.tasks))) < len(self.tasks):
            raise RecipeError(f"a task is named twice: {' '.join(self.tasks)}")
        if self.dry_run and self.pilot:
            raise RecipeError("--dry-run calls no model and --pilot plays 3 episodes with it: choose one of them")
        context_rule(self.context)
        texts = [f"{name}={value}" for values in (self.options, self.request) for name, value in values.items()]
        texts += [self.split, self.context, self.system or "", str(self.out or "")]
        check_keys(self.models, texts, key=self.key_env)
        limits = {"--budget-tokens": self.budget_tokens, "--budget-cost": self.budget_cost}
        for option, limit in limits.items():
            if limit is not None and all(kind_of(model) != "remote" for model in self.models):
                raise RecipeError(f"{option} is for endpoints; {' and '.join(self.models)} makes no calls")

    @property
    def models(self) -> list[str]:
        """Model strings of all seats, the agent's first."""
        return [self.model, *(model for model in self.seats.values() if model != SCRIPTED)]

    @property
    def max_episodes(self) -> int:
        """Limit of concurrent episodes."""
        return self.concurrency or CONCURRENCY[kind_of(self.model)]

    def budget(self) -> Budget:
        """Return the limits of the command, nothing spent."""
        return Budget(
            episodes=self.budget_episodes, tokens=self.budget_tokens, cost=self.budget_cost, seconds=self.budget_seconds
        )

    def price(self, model: str) -> Price | None:
        """Return the price of a model; None if no table lists it."""
        return find_price(model_of(model), [self.prices] if self.prices else [])

    def costs(self, model: str) -> Callable[[Mapping[str, Any]], float | None]:
        """Return the function from a call's usage to its cost in US dollars; None is an unknown cost."""
        return costs_by(self.price(model))


def check_keys(models: Sequence[str], texts: Iterable[str], *, key: str | None = None) -> None:
    """Raise PolicyError, without repeating the key, if an API key is in what would be recorded."""
    secrets = Secrets.of_environment(key=key)
    for model in map(model_of, models):
        if model.startswith(("http:", "https:")):
            without_secrets(model, secrets)
    if any(secrets.struck(text) != text for text in (*models, *texts)):
        raise PolicyError(
            "a key stands on the command line or in the system prompt: keys come from the environment only, "
            "see --key-env"
        )
