"""What a policy sees: a Context maps an episode so far to the messages of the next call.

A Context is a pure function of the History. Whether its new view extends the last one is found by comparing the two;
where it does not, the next turn is rendered anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lmgym.types import Message, Trajectory, Turn

Count = Callable[[Sequence[Message]], int]  # tokens that messages take


@dataclass(slots=True)
class History:
    """One seat's episode so far."""

    observation: Message  # waits for an answer
    prompt: Message | None = None
    turns: list[Turn] = field(default_factory=list)
    said: list[Message] = field(default_factory=list)  # what each turn said

    def exchanges(self, start: int = 0) -> list[Message]:
        """What was shown and said from turn `start` on, and what waits for an answer."""
        messages: list[Message] = []
        for number in range(start, len(self.turns)):
            messages += (self.turns[number].observation, self.said[number])
        return [*messages, self.observation]

    def opened(self, start: int, *, note: str) -> list[Message]:
        """`exchanges` from turn `start` on, after the first observation (the task) and a note of what is missing."""
        first, *rest = self.exchanges(start)
        if start == 0:
            return [first, *rest]
        task = self.turns[0].observation
        text = "\n\n".join((task.text, note, first.text))
        return [Message(role="user", text=text, images=task.images + first.images), *rest]


def views(context: Context, trajectory: Trajectory, count: Count) -> list[list[Message]]:
    """What a policy under `context` would have seen before each turn of an episode, and at its end.

    They end where it would have been asked for a summary that nobody wrote.
    """
    prompt = None if trajectory.prompt is None else Message(role="system", text=trajectory.prompt)
    seen: list[list[Message]] = []
    history = History(Message(role="user", text=""), prompt)
    for turn in trajectory.turns:
        history.observation = turn.observation
        messages = context.messages(history)
        if context.request(history, messages, count) is not None:
            return seen
        seen.append(messages)
        history.turns.append(turn)
        history.said.append(Message(role="assistant", text=turn.completion.text))
    if trajectory.final is not None:
        history.observation = trajectory.final
        seen.append(context.messages(history))
    return seen


class Context:
    """The full transcript, and the base of other views."""

    def view(self, history: History) -> list[Message]:
        """Messages of the next call, without the system prompt."""
        return history.exchanges()

    def request(self, history: History, messages: Sequence[Message], count: Count) -> str | None:
        """Words that ask the policy for a summary before it acts; None: it acts on `messages`."""
        return None

    def messages(self, history: History) -> list[Message]:
        """Messages of the next call."""
        view = self.view(history)
        return view if history.prompt is None else [history.prompt, *view]


@dataclass(frozen=True)
class Full(Context):
    """Everything that was shown and said."""


@dataclass(frozen=True)
class Window(Context):
    """The task and the last `turns` turns at most.

    The window moves on by `stride` turns at once: a larger one makes fewer and longer segments.
    """

    turns: int
    stride: int = 1
    note: str = "[Earlier turns are left out.]"

    def view(self, history: History) -> list[Message]:
        """Messages of the next call, without the system prompt."""
        surplus = max(0, len(history.turns) - self.turns)
        return history.opened(min(len(history.turns), -(-surplus // self.stride) * self.stride), note=self.note)


@dataclass(frozen=True)
class Stub(Context):
    """All turns, but only the task and the newest `keep` observations in full.

    The task is the whole first observation; with `page`, what stands in it before these words.
    """

    keep: int = 1
    text: str = "[An earlier observation is left out.]"
    page: str = ""

    def view(self, history: History) -> list[Message]:
        """Messages of the next call, without the system prompt."""
        messages = history.exchanges()
        stub = Message(role="user", text=self.text)
        old = range(0, len(messages) - 2 * self.keep, 2)
        for position in old[1:]:
            messages[position] = stub
        task, found, _ = messages[0].text.partition(self.page) if self.page and old else ("", "", "")
        return [Message(role="user", text=task + self.text), *messages[1:]] if found else messages


@dataclass(frozen=True)
class MarkovState(Context):
    """The newest observation only, after the first one where `task` says so."""

    task: bool = True

    def view(self, history: History) -> list[Message]:
        """Messages of the next call, without the system prompt."""
        if not self.task or not history.turns:
            return [history.observation]
        first, last = history.turns[0].observation, history.observation
        return [Message(role="user", text=f"{first.text}\n\n{last.text}", images=first.images + last.images)]


@dataclass(frozen=True)
class Summarise(Context):
    """Everything since the last summary; above `limit` tokens the policy is asked for the next one.

    A summary is a turn of its own, trained like any other. At most `most` are asked for.
    """

    limit: int  # tokens of a prompt
    most: int | None = None
    words: str = "Before you go on, sum up what happened so far. Only your summary will be kept."
    heading: str = "Summary of what happened so far:"

    def view(self, history: History) -> list[Message]:
        """Messages of the next call, without the system prompt."""
        start = next((n for n in range(len(history.turns), 0, -1) if history.turns[n - 1].kind == "summary"), 0)
        summary = history.said[start - 1].text if start else ""
        return history.opened(start, note=f"{self.heading}\n{summary}")

    def request(self, history: History, messages: Sequence[Message], count: Count) -> str | None:
        """Words that ask for a summary where `messages` take more than the limit."""
        turns = history.turns
        if not turns or turns[-1].kind == "summary" or count(messages) <= self.limit:
            return None
        made = sum(turn.kind == "summary" for turn in turns)
        return None if self.most is not None and made >= self.most else self.words


def with_request(messages: Sequence[Message], words: str) -> list[Message]:
    """The messages with `words` after the last observation."""
    last = messages[-1]
    return [*messages[:-1], replace(last, text=f"{last.text}\n\n{words}")]
