"""Conversations with a picture of another size each turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmgym.env.pictures import encode
from lmgym.policy.base import Conversation
from lmgym.policy.local.policy import LocalPolicy
from lmgym.types import Completion, Message, Trajectory, Turn

SIZES = ((40, 40), (40, 90), (70, 30))  # heights and widths


def drawn(seed: int = 0) -> dict[str, bytes]:
    """Pictures of SIZES, smooth, so that an encoder sees differences between them."""
    chance = np.random.default_rng(seed)
    pictures = (np.kron(chance.integers(0, 256, (h // 10, w // 10, 3)), np.ones((10, 10, 1))) for h, w in SIZES)
    return dict(encode(picture.astype(np.uint8)) for picture in pictures)


def asked(digests: Sequence[str], said: Sequence[str] = (), *, stubs: int = 0) -> list[Message]:
    """The messages of as many turns as there are `digests`; the first `stubs` pictures are dropped."""
    messages = [Message(role="system", text="Play.")]
    for turn, digest in enumerate(digests):
        images = () if turn < stubs else (digest,)
        messages.append(Message(role="user", text=f"What now, at {turn}?", images=images))
        messages += [Message(role="assistant", text=said[turn])] if turn < len(said) else []
    return messages


def play(policy: LocalPolicy, pictures: dict[str, bytes], *, key: str = "a") -> Trajectory:
    """Three turns of a policy with `pictures`, as the engine would record them."""
    policy.use_pictures(pictures)
    session, digests = policy.session(), list(pictures)
    spoken: list[Completion] = []
    turns = []
    for turn in range(len(digests)):
        messages = tuple(asked(digests[: turn + 1], [said.text for said in spoken]))
        session.put(key, Conversation(messages=messages, spoken=tuple(spoken), noise=(turn,)))
        said = finish(session)
        spoken = [said] if said.fresh else [*spoken, said]
        last = Message(role="user", text=messages[-1].text, images=messages[-1].images)
        turns.append(Turn(observation=last, completion=said, action=said.text, fresh=said.fresh))
    return Trajectory(id="e", root="e", task="test/None-v0", split="train", turns=tuple(turns), terminated=True)


def finish(session) -> Completion:
    """The answer of the only conversation in a session."""
    done = {}
    while len(session):
        done.update(session.step())
    (said,) = done.values()
    return said
