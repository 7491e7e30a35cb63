"""tau2-bench as an environment: an agent and a user, both with tools, and where a task needs it a judge."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from string import Template
from typing import Any

from lmgym.backends.user.endings import ending_of
from lmgym.env.env import Reply, TextEnv
from lmgym.env.speech import Speech, parse_speech
from lmgym.errors import InstanceError
from lmgym.tasks.tau2 import SPEC
from lmgym.tasks.tau2.evaluation import Transcript, evaluate, history_of, replay_history
from lmgym.tasks.tau2.official import criteria_of, domain_folder, needs_judge, official_domain
from lmgym.tasks.tau2.oracle import next_action
from lmgym.tasks.tau2.players import UserSide, scenario_text
from lmgym.tasks.tau2.toolkit import Data
from lmgym.tasks.tau2.world import DOMAINS, Requestor
from lmgym.types import FIRST_SEAT

USER, JUDGE = "user", "judge"
GREETING = "Hi! How can I help you today?"
STEPS, ERRORS = 200, 10  # messages of all sides, and failed tool calls, that end a dialogue without a score
DONE = {
    "name": "done",
    "description": "Say that the ticket is solved.",
    "parameters": {"type": "object", "properties": {}, "required": []},
}
MODES = ("dialogue", "solo")
USERS = ("scripted", "recorded")


def template(name: str) -> Template:
    """Return a prompt of this folder."""
    return Template(files(__package__).joinpath(name).read_text(encoding="utf-8").strip())


class Tau2(TextEnv):
    """One task of tau2-bench; the score is 1 if all checks in its reward basis hold after a proper end, else 0.

    `mode="solo"` gives the agent a ticket and all tools. `user` is who plays the user where no model does: "scripted",
    or "recorded" with the results file `recording`. `judged` picks the tasks that need the seat "judge".
    `workflow` shows telecom's support policy as a workflow instead of a manual.
    """

    SPEC = SPEC

    def __init__(
        self,
        *,
        domain: str = "retail",
        mode: str = "dialogue",
        judged: bool = False,
        user: str = "scripted",
        recording: str = "",
        workflow: bool = False,
        data: str | os.PathLike[str] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.check_choices(domain=(domain, DOMAINS), mode=(mode, MODES), user=(user, USERS))
        if judged and self.others == "scripted":
            raise InstanceError(f"{self.task.id} needs a model as judge: lmgym eval ... --seat judge=MODEL")
        if (user == "recorded") != bool(recording):
            raise InstanceError(f"{self.task.id}: user='recorded' and recording='results.json' belong together")
        self.official = official_domain(domain_folder(data, domain, self.task.id))
        self.solo, self.user_kind, self.recording, self.workflow = mode == "solo", user, recording, workflow
        tasks = self.official.tasks
        self.ids = [each for each in self.official.ids(self.split) if needs_judge(tasks[each]) == judged]
        if self.solo:
            self.ids = [each for each in self.ids if tasks[each].get("ticket") and not _speaks(tasks[each])]

    def size(self) -> int:
        """Return the number of tasks of the split that are here."""
        return len(self.ids)

    def title(self, index: int) -> str:
        """Return a task's id."""
        return self.ids[index]

    def index_of(self, title: str) -> int | None:
        """Return the index of the task with this id."""
        return self.ids.index(title) if title in self.ids else None

    def fingerprint(self) -> str:
        """Return the task's id."""
        return str(self.job["id"])

    def begin(self, index: int) -> Reply:
        """Open a task; the user answers the agent's greeting, or the dialogue goes on where the task's history ends."""
        self.job: Data = self.official.tasks[self.ids[index]]
        self.world = self.official.world(self.job, solo=self.solo)
        self.transcript = Transcript()
        self.steps = self.errors = self.gold_position = 0
        self.checks: dict[str, float] = {}
        self.failed = True
        self.greeted = False  # True once the agent has had its prompt
        self.side = UserSide(self.job, self.world, kind=self.user_kind, recording=self.recording)
        history = history_of(self.job)
        replay_history(self.world, history)
        if self.solo:
            self._remember(history)
            policy = self.official.policy(solo=True, workflow=self.workflow)
            self.turn = FIRST_SEAT
            return Reply(template("solo.md").substitute(policy=policy, ticket=self.job["ticket"]))
        if not history:
            self.transcript.agent_messages.append(GREETING)
            self.transcript.lines.append(("assistant", GREETING))
            return self._to_user(GREETING)
        self._remember(history)
        last = history[-1]
        words = str(last.get("content") or "")
        if last["role"] == "user" or (last["role"] == "tool" and last.get("requestor") != "user"):
            return self._to_agent(words)
        return self._to_user(words)

    def act(self, action: str) -> Reply:
        """Take an answer of the seat on turn."""
        if self.turn == JUDGE:
            return self._judged(action)
        reply = self._of_user(action) if self.turn == USER else self._of_agent(action)
        if not reply.done and (self.steps >= STEPS or self.errors >= ERRORS):
            limit = f"{STEPS} messages" if self.steps >= STEPS else f"{ERRORS} failed tool calls"
            return Reply(f"The dialogue ended after {limit}.", done=True, score=0.0)
        return reply

    def scripted(self, seat: str) -> str:
        """Return what the scripted or recorded user says or does next."""
        if seat == JUDGE:
            raise InstanceError(f"{self.task.id} needs a model as judge: lmgym eval ... --seat judge=MODEL")
        return self.side.answer()

    def prompts(self) -> dict[str, str]:
        """Return the instructions of a model in the user's seat."""
        if self.solo:
            return {}
        texts = {"guidelines": self.official.guidelines(), "scenario": scenario_text(self.job)}
        return {USER: template("user.md").substitute(texts)}

    def tools(self, seat: str = FIRST_SEAT) -> list[dict[str, Any]]:
        """Return the schemas of a seat's tools."""
        if seat == JUDGE:
            return []
        requestor: Requestor = "user" if seat == USER else "assistant"
        return [*self.world.schemas(requestor), *([DONE] if self.solo and seat == FIRST_SEAT else [])]

    def figures_if_cut(self) -> dict[str, float]:
        """Return the checks of the evaluation, what the agent needed, and how the user kept to its part."""
        checks = {name.lower(): value for name, value in self.checks.items()}
        counts = {"messages": float(self.steps), "tool_errors": float(self.errors)}
        return {**checks, **counts, **({} if self.solo else self.side.figures(failed=self.failed))}

    def oracle(self) -> Iterator[str]:
        """Make the gold tool calls, tell the user what to do and what the task wants told, then close."""
        while True:
            yield next_action(self.job, self.gold_position, self.transcript.agent_messages, solo=self.solo)

    # Turns -----------------------------------------------------------------------------------------------------

    def _of_agent(self, action: str) -> Reply:
        speech = parse_speech(action, {schema["name"] for schema in self.tools()})
        self.steps += 1
        if speech.broken or not (speech.calls or speech.words):
            return Reply('Answer with a message or a tool call {"name": ..., "arguments": {...}}.', valid=False)
        if speech.words:
            self.transcript.agent_messages.append(speech.words)
            self.transcript.lines.append(("assistant", speech.words))
        if self.solo and any(call.name == DONE["name"] for call in speech.calls):
            return self._ended()
        if speech.calls:
            text, failed = self._called("assistant", speech)
            return Reply(text, valid=not failed)
        if self.solo:
            return Reply("There is no user here: answer with tool calls, and call done at the end.", valid=False)
        return self._to_user(speech.words)

    def _of_user(self, action: str) -> Reply:
        speech = parse_speech(action, {schema["name"] for schema in self.tools(USER)})
        self.steps += 1
        calls = speech.calls if self.world.user is not None else ()
        self.side.heard_user(action, has_calls=bool(calls), broken=speech.broken or bool(speech.calls) != bool(calls))
        if calls:
            text, failed = self._called("user", speech)
            self.side.hear_tool(text)
            return Reply(text, valid=not failed, seat=USER)
        if not action.strip():
            return Reply("Write a message to the agent.", valid=False, seat=USER)
        self.transcript.lines.append(("user", action))
        return self._ended() if ending_of(action) else self._to_agent(action)

    def _called(self, requestor: Requestor, speech: Speech) -> tuple[str, bool]:
        """Make the calls of an answer in order; return their results and whether one failed."""
        texts, failures = [], 0
        for call in speech.calls:
            self.transcript.calls.append((call.name, call.arguments))
            self._advance(call.name)
            text, error = self.world.respond(requestor, call.name, call.arguments)
            texts.append(text)
            failures += error
        self.steps += 1
        self.errors += failures
        return "\n".join(texts), failures > 0

    def _to_user(self, words: str) -> Reply:
        self.turn = USER
        self.side.hear_agent(words)
        return Reply(self._first(USER, words), seat=USER)

    def _to_agent(self, words: str) -> Reply:
        self.turn = FIRST_SEAT
        return Reply(self._first(FIRST_SEAT, words))

    def _first(self, seat: str, words: str) -> str:
        """Return what a seat hears; the agent's first observation begins with the policy."""
        if seat == USER or self.greeted:
            return words
        self.greeted = True
        return template("prompt.md").substitute(policy=self.official.policy(workflow=self.workflow), words=words)

    def _remember(self, history: list[Mapping[str, Any]]) -> None:
        """Put a task's message history into the transcript."""
        for message in history:
            words = str(message.get("content") or "")
            for call in message.get("tool_calls") or ():
                self.transcript.calls.append((call["name"], call.get("arguments") or {}))
            if words and message["role"] in ("assistant", "user"):
                self.transcript.lines.append((message["role"], words))
                if message["role"] == "assistant":
                    self.transcript.agent_messages.append(words)

    def _advance(self, name: str) -> None:
        """Note that the next gold action was tried."""
        gold = criteria_of(self.job).get("actions") or ()
        if self.gold_position < len(gold) and gold[self.gold_position]["name"] == name:
            self.gold_position += 1

    # The end ---------------------------------------------------------------------------------------------------

    def _ended(self) -> Reply:
        """Evaluate a dialogue that a side has properly ended; those with other assertions go to the judge first."""
        if self.steps >= STEPS or self.errors >= ERRORS:
            return Reply("The dialogue is over.", done=True, score=0.0)
        if needs_judge(self.job):
            self.turn = JUDGE
            lines = "\n".join(f"{role}: {words}" for role, words in self.transcript.lines)
            wanted = "\n".join(f"- {each}" for each in criteria_of(self.job)["nl_assertions"])
            return Reply(template("judge.md").substitute(dialogue=lines, expectations=wanted), seat=JUDGE)
        return self._scored(None)

    def _judged(self, action: str) -> Reply:
        return self._scored(verdicts_of(action))

    def _scored(self, verdicts: list[bool] | None) -> Reply:
        self.checks = evaluate(self.official, self.job, self.world, self.transcript, verdicts=verdicts)
        score = float(all(self.checks.values()))
        self.failed = score < 1
        own = self.turn == FIRST_SEAT  # in solo mode; otherwise the user or the judge acted last
        return Reply(
            "The dialogue is over.",
            reward=score if own else 0.0,
            others={} if own or not score else {FIRST_SEAT: score},
            done=True,
            score=score,
        )


def verdicts_of(action: str) -> list[bool]:
    """Return a judge's verdicts, in order; none if its answer cannot be read."""
    start = action.find("{")
    try:
        results = json.JSONDecoder().raw_decode(action[start:])[0]["results"]
        return [str(result["met"]).lower() == "true" for result in results]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def _speaks(task: Mapping[str, Any]) -> bool:
    """Return True if a task's history has words of the user, which a solo agent cannot have heard."""
    return any(message["role"] == "user" for message in history_of(task))
