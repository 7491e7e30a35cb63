"""The conversation after a cut episode's last turn, by which a critic judges the cut state."""

from __future__ import annotations

from lmgym.policy.base import Conversation, extends, tools_by_turn
from lmgym.rollout.context import Context, Count, History, with_request
from lmgym.types import Completion, Message, Trajectory


def following(trajectory: Trajectory, context: Context, count: Count) -> Conversation | None:
    """Return the conversation after the last turn, as the engine would put it; None if the seat was not on turn.

    `context` is the one the trajectory was played with; the tools are those of the last turn.
    """
    turns = trajectory.turns
    if trajectory.final is None or not turns:
        return None
    prompt = None if trajectory.prompt is None else Message(role="system", text=trajectory.prompt)
    *before, last = turns
    replies = [Message(role="assistant", text=turn.completion.text) for turn in turns]
    history = History(trajectory.final, prompt, list(turns), replies)
    messages = context.messages(history)
    request = context.request(history, messages, count)
    if request is not None:
        messages = with_request(messages, request)
    # the messages that the last turn answered; the observation of a summary is only its request
    observation = trajectory.final if last.kind == "summary" else last.observation
    rendered = context.messages(History(observation, prompt, before, replies[:-1]))
    if last.kind == "summary":
        rendered = with_request(rendered, last.observation.text)
    completions: list[Completion] = []  # of the last segment; a prompt cannot continue a text without ids
    for turn in turns if extends(messages, rendered, replies[-1]) else ():
        if turn.fresh or not turn.completion.ids:
            completions = []
        if turn.completion.ids:
            completions.append(turn.completion)
    return Conversation(messages=tuple(messages), spoken=tuple(completions), tools=tools_by_turn(turns)[-1])
