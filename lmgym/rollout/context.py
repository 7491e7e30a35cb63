"""Contexts: the messages that a policy sees at each turn of an episode.

A Context is a pure function of the History. If its new view does not extend the last one, the next turn is rendered
anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lmgym.types import Message, Trajectory, Turn

Count = Callable[[Sequence[Message]], int]  # tokens that messages take


@dataclass(slots=True)
class History:
    """One seat's episode so far."""

    observation: Message  # the one to answer next
    prompt: Message | None = None
    turns: list[Turn] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)  # the text of each turn

    def append(self, turn: Turn) -> None:
        """Add a turn and its reply."""
        self.turns.append(turn)
        self.replies.append(Message(role="assistant", text=turn.completion.text))

    def exchanges(self, start: int = 0) -> list[Message]:
        """Return observations and replies from turn `start` on, and the observation to answer next."""
        messages: list[Message] = []
        for number in range(start, len(self.turns)):
            messages += (self.turns[number].observation, self.replies[number])
        return [*messages, self.observation]

    def shortened(self, start: int, *, note: str) -> list[Message]:
        """Return `exchanges` from turn `start` on, headed by the first observation (the task) and a note."""
        first, *rest = self.exchanges(start)
        if start == 0:
            return [first, *rest]
        task = self.turns[0].observation
        text = "\n\n".join((task.text, note, first.text))
        return [Message(role="user", text=text, images=task.images + first.images), *rest]


def views(context: Context, trajectory: Trajectory, count: Count) -> list[list[Message]]:
    """Return the messages that `context` shows before each turn of an episode and after its last one.

    The list ends early where `context` requests a summary, which the recorded episode does not have.
    """
    prompt = None if trajectory.prompt is None else Message(role="system", text=trajectory.prompt)
    messages_by_turn: list[list[Message]] = []
    history = History(Message(role="user", text=""), prompt)
    for turn in trajectory.turns:
        history.observation = turn.observation
        messages = context.messages(history)
        if context.request(history, messages, count) is not None:
            return messages_by_turn
        messages_by_turn.append(messages)
        history.append(turn)
    if trajectory.final is not None:
        history.observation = trajectory.final
        messages_by_turn.append(context.messages(history))
    return messages_by_turn


class Context:
    """The full transcript, and the base of other views."""

    def view(self, history: History) -> list[Message]:
        """Return the messages of the next call, without the system prompt."""
        return history.exchanges()

    def request(self, history: History, messages: Sequence[Message], count: Count) -> str | None:
        """Return a text that asks the policy for a summary before it acts; None: it acts on `messages`."""
        return None

    def messages(self, history: History) -> list[Message]:
        """Return the messages of the next call."""
        view = self.view(history)
        return view if history.prompt is None else [history.prompt, *view]


@dataclass(frozen=True)
class Full(Context):
    """All observations and replies."""


@dataclass(frozen=True)
class Window(Context):
    """The task and at most the last `turns` turns.

    The window moves by `stride` turns at a time: a larger stride makes fewer and longer segments.
    """

    turns: int
    stride: int = 1
    note: str = "[Earlier turns are left out.]"

    def view(self, history: History) -> list[Message]:
        """Return the messages of the next call, without the system prompt."""
        surplus = max(0, len(history.turns) - self.turns)
        return history.shortened(min(len(history.turns), -(-surplus // self.stride) * self.stride), note=self.note)


@dataclass(frozen=True)
class Stub(Context):
    """All turns, with a stub for every observation but the task and the newest `keep`.

    The task is the first observation; with `page`, only its part before that marker.
    """

    keep: int = 1
    text: str = "[An earlier observation is left out.]"
    page: str = ""

    def view(self, history: History) -> list[Message]:
        """Return the messages of the next call, without the system prompt."""
        messages = history.exchanges()
        stub = Message(role="user", text=self.text)
        old = range(0, len(messages) - 2 * self.keep, 2)
        for position in old[1:]:
            messages[position] = stub
        task, marker, _ = messages[0].text.partition(self.page) if self.page and old else ("", "", "")
        return [Message(role="user", text=task + self.text), *messages[1:]] if marker else messages


@dataclass(frozen=True)
class MarkovState(Context):
    """The newest observation only, headed by the first one (the task) unless `task` is False."""

    task: bool = True

    def view(self, history: History) -> list[Message]:
        """Return the messages of the next call, without the system prompt."""
        if not self.task or not history.turns:
            return [history.observation]
        first, last = history.turns[0].observation, history.observation
        return [Message(role="user", text=f"{first.text}\n\n{last.text}", images=first.images + last.images)]


@dataclass(frozen=True)
class Summarise(Context):
    """All turns since the last summary; a prompt above `limit` tokens requests the next summary.

    A summary is a turn of its own, trained like any other.
    """

    limit: int  # tokens of a prompt
    most: int | None = None  # summaries per episode
    words: str = "Before you go on, sum up what happened so far. Only your summary will be kept."
    heading: str = "Summary of what happened so far:"

    def view(self, history: History) -> list[Message]:
        """Return the messages of the next call, without the system prompt."""
        start = next((n for n in range(len(history.turns), 0, -1) if history.turns[n - 1].kind == "summary"), 0)
        summary = history.replies[start - 1].text if start else ""
        return history.shortened(start, note=f"{self.heading}\n{summary}")

    def request(self, history: History, messages: Sequence[Message], count: Count) -> str | None:
        """Return the request for a summary if `messages` exceed the limit."""
        turns = history.turns
        if not turns or turns[-1].kind == "summary":
            return None
        if any(turn.completion.ids and turn.completion.thinking for turn in turns):
            messages = self.messages(replace(history, replies=[_with_thinking(turn) for turn in turns]))
        if count(messages) <= self.limit:
            return None
        made = sum(turn.kind == "summary" for turn in turns)
        return None if self.most is not None and made >= self.most else self.words


def _with_thinking(turn: Turn) -> Message:
    """Return the reply of a turn with its thinking, if its ids have it: the policy's template may keep it.

    A summary is shown without its thinking.
    """
    completion = turn.completion
    kept = completion.ids and completion.thinking and turn.kind != "summary"
    thinking = f"<think>\n{completion.thinking}\n</think>\n\n" if kept else ""
    return Message(role="assistant", text=thinking + completion.text)


def with_request(messages: Sequence[Message], words: str) -> list[Message]:
    """Return the messages with `words` appended to the last observation."""
    last = messages[-1]
    return [*messages[:-1], replace(last, text=f"{last.text}\n\n{words}")]
