"""What a seat would have been shown next, had its episode not been cut: what a critic judges a cut episode by."""

from __future__ import annotations

from lmgym.policy.base import Conversation, extends
from lmgym.rollout.context import Context, Count, History, with_request
from lmgym.types import Completion, Message, Trajectory


def following(trajectory: Trajectory, context: Context, count: Count) -> Conversation | None:
    """The conversation after the last turn, as the engine would have put it; None where the seat was not on turn.

    `context` is the one that the trajectory was played with. Tools that were offered are no part of it.
    """
    turns = trajectory.turns
    if trajectory.final is None or not turns:
        return None
    prompt = None if trajectory.prompt is None else Message(role="system", text=trajectory.prompt)
    said = [Message(role="assistant", text=turn.completion.text) for turn in turns]
    history = History(trajectory.final, prompt, list(turns), said)
    messages = context.messages(history)
    words = context.request(history, messages, count)
    if words is not None:
        messages = with_request(messages, words)
    spoken = _spoken(trajectory) if extends(messages, _rendered(trajectory, context, prompt, said), said[-1]) else []
    return Conversation(messages=tuple(messages), spoken=tuple(spoken))


def _rendered(trajectory: Trajectory, context: Context, prompt: Message | None, said: list[Message]) -> list[Message]:
    """The messages that the last turn answered."""
    *before, last = trajectory.turns
    summary = last.kind == "summary"  # its observation is the request alone: the environment's still waited
    observation = trajectory.final if summary and trajectory.final is not None else last.observation
    messages = context.messages(History(observation, prompt, before, said[:-1]))
    return with_request(messages, last.observation.text) if summary else messages


def _spoken(trajectory: Trajectory) -> list[Completion]:
    """What was said in the last segment. Words without ids cannot be gone on from."""
    spoken: list[Completion] = []
    for turn in trajectory.turns:
        if turn.fresh or not turn.completion.ids:
            spoken = []
        if turn.completion.ids:
            spoken.append(turn.completion)
    return spoken
