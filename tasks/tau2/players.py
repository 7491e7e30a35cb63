"""The user's side of a dialogue: the player where no model plays, and the audit of whoever does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lmgym.backends.user.audit import UserAudit
from lmgym.errors import InstanceError
from lmgym.tasks.tau2.recorded import RecordedUser, recorded_dialogues
from lmgym.tasks.tau2.scripted import ScriptedUser
from lmgym.tasks.tau2.world import Tau2World

ENTITIES = re.compile(r"#w\d+|[\w.+-]+@[\w-]+\.\w+|\b[a-z]+_[a-z]+_\d{3,}\b|\b\d{3}-\d{3}-\d{4}\b|\b\d{5,}\b")
PARTS = ("domain", "reason_for_call", "known_info", "unknown_info", "task_instructions")


def scenario_text(task: Mapping[str, Any]) -> str:
    """Return a task's scenario as the user's instructions."""
    scenario = task.get("user_scenario") or {}
    instructions = scenario.get("instructions") or ""
    lines = [f"Persona: {scenario['persona']}"] if scenario.get("persona") else []
    if isinstance(instructions, str):
        return "\n".join([*lines, instructions])
    parts = [f"{name.replace('_', ' ').capitalize()}: {instructions[name]}" for name in PARTS if instructions.get(name)]
    return "\n".join([*lines, *parts])


class UserSide:
    """The user of one dialogue."""

    def __init__(self, task: Mapping[str, Any], world: Tau2World, *, kind: str, recording: str) -> None:
        self.player: ScriptedUser | RecordedUser
        if kind == "recorded":
            dialogues = _dialogues(recording)
            if task["id"] not in dialogues:
                raise InstanceError(f"{recording} has no dialogue of task {task['id']}")
            self.player = RecordedUser(dialogues[task["id"]])
        else:
            tools = world.user.tools if world.user is not None else ()
            self.player = ScriptedUser(task.get("user_scenario") or {}, tools)
        instructions = (task.get("user_scenario") or {}).get("instructions") or {}
        unknown = "" if isinstance(instructions, str) else str(instructions.get("unknown_info") or "")
        self.audit = UserAudit(
            instructions=scenario_text(task), entities=ENTITIES, unknown=ENTITIES.findall(unknown.lower())
        )
        self.words = ""  # of the agent, not answered yet
        self.result = ""  # of the user's own tool call, not reported yet
        self.next_answer: str | None = None

    def hear_agent(self, words: str) -> None:
        """Take what the agent told the user."""
        self.words, self.result = words, ""
        self.audit.hear_agent(words)

    def hear_tool(self, text: str) -> None:
        """Take what a tool of the user returned."""
        self.words, self.result = "", text
        self.audit.hear_source(text)

    def heard_user(self, action: str, *, has_calls: bool, broken: bool) -> None:
        """Take what the user answered, whoever plays."""
        self.next_answer = None
        if not has_calls:
            self.audit.hear_user(action, broken=broken, excused=getattr(self.player, "left", False))

    def answer(self) -> str:
        """Return the player's answer to the latest words or result; the same one if asked again."""
        if self.next_answer is None:
            if isinstance(self.player, ScriptedUser) and self.result:
                self.next_answer = self.player.after_tool(self.result)
            else:
                self.next_answer = self.player.reply(self.words)
        return self.next_answer

    def figures(self, *, failed: bool) -> dict[str, float]:
        """Return the audit, and for a recorded user where the dialogue left the record."""
        record = self.player.figures() if isinstance(self.player, RecordedUser) else {}
        return {**self.audit.figures(failed=failed), **record}


@lru_cache(maxsize=2)
def _dialogues(path: str) -> dict[str, list[Mapping[str, Any]]]:
    return recorded_dialogues(path)
