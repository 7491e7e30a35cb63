"""The evaluators of tau2-bench: the score is the product of the checks that a task's `reward_basis` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmgym.tasks.tau2.official import OfficialDomain, basis_of, criteria_of, needs_judge
from lmgym.tasks.tau2.world import Tau2World


@dataclass
class Transcript:
    """Input of the evaluators: the agent's messages, and the tool calls of both sides."""

    agent_messages: list[str] = field(default_factory=list)
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)  # name, arguments
    lines: list[tuple[str, str]] = field(default_factory=list)  # role and words, for a judge


def evaluate(
    domain: OfficialDomain,
    task: Mapping[str, Any],
    world: Tau2World,
    transcript: Transcript,
    *,
    verdicts: Sequence[bool] | None = None,
) -> dict[str, float]:
    """Return the checks of a dialogue that was properly ended by name: 1 or 0 each.

    `world` is the final state. `verdicts` are a judge's on the task's assertions in natural language.
    """
    criteria, basis = criteria_of(task), basis_of(task)
    checks: dict[str, float] = {}
    if "DB" in basis:
        checks["DB"] = float(_databases_equal(domain, task, world))
    if "ENV_ASSERTION" in basis:
        checks["ENV_ASSERTION"] = float(all(map(world.holds, criteria.get("env_assertions") or ())))
    if "ACTION" in basis:
        checks["ACTION"] = float(all(_called(action, transcript.calls) for action in criteria.get("actions") or ()))
    if "COMMUNICATE" in basis:
        facts = criteria.get("communicate_info") or ()
        checks["COMMUNICATE"] = float(all(_communicated(fact, transcript.agent_messages) for fact in facts))
    if "NL_ASSERTION" in basis:
        judged = verdicts is not None and len(verdicts) == len(criteria.get("nl_assertions") or ()) and all(verdicts)
        checks["NL_ASSERTION"] = float(judged or not needs_judge(task))
    return checks


def _databases_equal(domain: OfficialDomain, task: Mapping[str, Any], world: Tau2World) -> bool:
    """Return True if both databases equal those after the gold actions."""
    criteria = criteria_of(task)
    if criteria.get("actions") is None and criteria.get("env_assertions") is None:
        return True  # tau2-bench has nothing to compare with
    gold = domain.world(task)
    replay_history(gold, history_of(task))
    gold.replay_gold(criteria.get("actions") or ())
    return gold.canonical() == world.canonical()


def _called(action: Mapping[str, Any], calls: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
    """Return True if a gold action was called; without `compare_args`, the arguments that were passed are compared."""
    for name, arguments in calls:
        if name != action["name"]:
            continue
        names = arguments.keys() if action.get("compare_args") is None else action["compare_args"]
        passed = {key: value for key, value in arguments.items() if key in names}
        if passed == {key: value for key, value in action["arguments"].items() if key in names}:
            return True
    return False


def _communicated(fact: str, messages: Sequence[str]) -> bool:
    return any(fact.lower() in message.lower().replace(",", "") for message in messages)


def history_of(task: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages that were exchanged before a task begins."""
    return list((task.get("initial_state") or {}).get("message_history") or ())


def replay_history(world: Tau2World, history: Sequence[Mapping[str, Any]]) -> None:
    """Make the tool calls of a message history."""
    for message in history:
        for call in message.get("tool_calls") or ():
            requestor = "user" if message["role"] == "user" else "assistant"
            world.respond(requestor, call["name"], call.get("arguments") or {})  # type: ignore[arg-type]  # the two words
