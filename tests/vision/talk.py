"""Conversations with a picture of another size each turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmgym.env.pictures import encode
from lmgym.policy.base import Conversation
from lmgym.policy.local.policy import LocalPolicy
from lmgym.types import Completion, Message, Trajectory, Turn
from tests.policy.talk import finish

SIZES = ((40, 40), (40, 90), (70, 30))  # heights and widths


def drawn(seed: int = 0) -> dict[str, bytes]:
    """Pictures of SIZES, smooth, so that an encoder sees differences between them."""
    chance = np.random.default_rng(seed)
    pictures = (np.kron(chance.integers(0, 256, (h // 10, w // 10, 3)), np.ones((10, 10, 1))) for h, w in SIZES)
    return dict(encode(picture.astype(np.uint8)) for picture in pictures)


def dialogue(digests: Sequence[str], answers: Sequence[str] = (), *, stubs: int = 0) -> tuple[Message, ...]:
    """The messages of as many turns as there are `digests`; the first `stubs` pictures are dropped."""
    messages = [Message(role="system", text="Play.")]
    for turn, digest in enumerate(digests):
        images = () if turn < stubs else (digest,)
        messages.append(Message(role="user", text=f"What now, at {turn}?", images=images))
        messages += [Message(role="assistant", text=text) for text in answers[turn : turn + 1]]
    return tuple(messages)


def play(policy: LocalPolicy, pictures: dict[str, bytes]) -> Trajectory:
    """Three turns of a policy with `pictures`, as the engine would record them."""
    policy.use_pictures(pictures)
    session, digests = policy.session(), list(pictures)
    spoken: list[Completion] = []
    turns = []
    for turn in range(len(digests)):
        messages = dialogue(digests[: turn + 1], [answer.text for answer in spoken])
        session.put("a", Conversation(messages=messages, spoken=tuple(spoken), noise=(turn,)))
        answer = finish(session)["a"]
        spoken = [answer] if answer.fresh else [*spoken, answer]
        turns.append(Turn(observation=messages[-1], completion=answer, action=answer.text, fresh=answer.fresh))
    return Trajectory(id="e", root="e", task="test/None-v0", split="train", turns=tuple(turns), terminated=True)
