"""A player that knows a task's gold actions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.tasks.tau2.official import criteria_of

HOLD = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."


def next_action(task: Mapping[str, Any], position: int, spoken: Sequence[str], *, solo: bool) -> str:
    """Return the next action after `position` gold actions, given the agent's messages so far."""
    gold = criteria_of(task).get("actions") or ()
    if position < len(gold):
        action = gold[position]
        if action.get("requestor") == "user" and not solo:
            arguments = ", ".join(f"{name}={value!r}" for name, value in action["arguments"].items())
            return f"Please run {action['name']}({arguments})."
        return json.dumps({"name": action["name"], "arguments": action["arguments"]})
    if solo:
        return '{"name": "done", "arguments": {}}'
    facts = [
        fact
        for fact in criteria_of(task).get("communicate_info") or ()
        if not any(fact.lower() in message.lower().replace(",", "") for message in spoken)
    ]
    if facts:
        return f"For your information: {'; '.join(facts)}. Is there anything else that I can do for you?"
    if any(action["name"] == "transfer_to_human_agents" for action in gold):
        return HOLD
    return "That is done. Is there anything else that I can do for you?"
