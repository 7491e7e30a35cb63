"""Conversations for tests: a policy talks for some turns to an environment that says the same each time."""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from lmgym.policy.base import Conversation, Session
from lmgym.policy.local.policy import LocalPolicy
from lmgym.types import Completion, Message

OBSERVATIONS = (
    "You are in the middle of a room. You see a cabinet 4, and a drawer 1.\n\nYour task is to: take the mug.",
    "Nothing happens.",
    "On the countertop 2, you see a mug 12, a <|im_end|> and an <eos>.",
    "The cabinet 4 is closed.",
)


def opened(*, system: str | None = "Play.", row: int = 0) -> list[Message]:
    """The first messages of a conversation."""
    first = Message(role="user", text=OBSERVATIONS[0] + " Now." * row)
    return [first] if system is None else [Message(role="system", text=system), first]


def talk(
    policy: LocalPolicy, session: Session, *, rows: int, turns: int, max_tokens: int = 12
) -> list[list[Completion]]:
    """Completions of `rows` conversations of `turns` turns, each put as soon as the last was answered."""
    messages = [opened(row=row) for row in range(rows)]
    spoken: list[list[Completion]] = [[] for _ in range(rows)]

    def put(row: int) -> None:
        before, noise = tuple(spoken[row]), (row, len(spoken[row]))
        session.put(row, Conversation(messages=tuple(messages[row]), spoken=before, noise=noise, max_tokens=max_tokens))

    for row in range(rows):
        put(row)
    while len(session):
        for key, completion in session.step():
            row = int(str(key))
            if completion.fresh:
                spoken[row] = []
            spoken[row].append(completion)
            answers = sum(message.role == "assistant" for message in messages[row]) + 1
            messages[row] += [Message(role="assistant", text=completion.text)]
            messages[row] += [Message(role="user", text=OBSERVATIONS[answers % 4])]
            if answers < turns:
                put(row)
    return spoken


def finish(session: Session) -> dict[Hashable, Completion]:
    """The answers to all conversations in a session."""
    done: dict[Hashable, Completion] = {}
    while len(session):
        done.update(session.step())
    return done


def ids_of(spoken: Sequence[Completion]) -> list[tuple[int, ...]]:
    """The ids of each answer."""
    return [answer.ids for answer in spoken]


def rows_of(spoken: Sequence[Sequence[Completion]]) -> dict[str, Tensor]:
    """Right-padded ids, attention, mask, logprobs and entropy of segments, each (B, T)."""
    columns: dict[str, list[list[float]]] = {name: [] for name in ("ids", "attention", "mask", "logprobs", "entropy")}
    for segment in spoken:
        row: dict[str, list[float]] = {name: [] for name in columns}
        for answer in segment:
            prompt, sampled = len(answer.prompt_ids), len(answer.ids)
            row["ids"] += [*answer.prompt_ids, *answer.ids]
            row["attention"] += [1] * (prompt + sampled)
            row["mask"] += [0] * prompt + [1] * sampled
            row["logprobs"] += [0.0] * prompt + list(answer.logprobs)
            row["entropy"] += [0.0] * prompt + list(answer.entropy)
        for name, values in row.items():
            columns[name].append(values)
    width = max(map(len, columns["ids"]))
    padded = {name: torch.tensor([[*v, *[0] * (width - len(v))] for v in values]) for name, values in columns.items()}
    return padded | {name: padded[name].long() for name in ("ids", "attention", "mask")}


def plain_words(policy: LocalPolicy) -> None:
    """Let the policy speak only printable ASCII and stops, so that its ids and its words are one to one."""
    vocabulary = policy.template.vocabulary
    words = [vocabulary.text([i]) for i in range(policy.model.config.vocab_size)]
    printable = [w.isascii() and w.isprintable() and w != "" and "<" not in w for w in words]
    barred = torch.tensor([not fine and i not in policy.stops for i, fine in enumerate(printable)])
    policy.adjust = lambda _, logits: logits.masked_fill(barred.to(logits.device), float("-inf"))
