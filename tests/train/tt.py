"""The two-turn token MDP as a task, and a policy that says what it is told, a character a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.train.batch import Batch
from lmgym.types import Completion, Message

SPEC = TaskSpec(
    id="test/TwoTurns-v0",
    entry_point=f"{__name__}:TwoTurns",
    summary="Two letters, a sign, two letters.",
    max_turns=2,
    splits={"train": 2},
    score="1 when right",
    references={},
)


class TwoTurns(TextEnv):
    """Shows x on even instances and y on odd ones after the first turn: tests weigh the two by their chance."""

    SPEC = SPEC

    def begin(self, index: int) -> Reply:
        self.seen, self.turns = "xy"[index], 0
        return Reply("G")

    def act(self, action: str) -> Reply:
        self.turns += 1
        if self.turns == 1:
            return Reply(self.seen, reward=-0.1)
        right = (self.seen, action) in (("x", "aa"), ("y", "bb"))
        return Reply("E", reward=float(right), done=True, score=float(right))


@dataclass
class Speller:
    """Says `words` in their order; what it sees is the text of the messages, one after another."""

    words: Sequence[str]
    name: str = "speller"
    version: int = 0
    wants: frozenset[str] = frozenset()
    said: int = field(default=0)

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        return [self._answer(conversation) for conversation in conversations]

    def prompt(self, conversation: Conversation) -> tuple[list[int], bool]:
        messages = conversation.messages
        if conversation.spoken:
            last = max(n for n, message in enumerate(messages) if message.role == "assistant")
            return [ord(c) for message in messages[last + 1 :] for c in message.text], False
        return [ord(c) for message in messages for c in message.text], True

    def _answer(self, conversation: Conversation) -> Completion:
        prompt, fresh = self.prompt(conversation)
        word = self.words[self.said]
        self.said += 1
        ids = tuple(ord(c) for c in word)
        zeros = (0.0,) * len(word)
        return Completion(text=word, prompt_ids=tuple(prompt), ids=ids, logprobs=zeros, entropy=zeros, fresh=fresh)

    def count(self, messages: Sequence[Message]) -> int:
        return sum(len(message.text) for message in messages)

    def session(self) -> SimpleSession:
        return SimpleSession(self)


class Table(nn.Module):
    """Log-odds of `a` against `b` in each context: the text of the row so far."""

    def __init__(self, log_odds: dict[str, float]) -> None:
        super().__init__()
        self.contexts = {context: number for number, context in enumerate(log_odds)}
        self.odds = nn.Parameter(torch.tensor(list(log_odds.values()), dtype=torch.float64))

    def score(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies (B, T)."""
        numbers = torch.zeros_like(batch.ids)
        for row, column in batch.mask.nonzero().tolist():
            numbers[row, column] = self.contexts["".join(map(chr, batch.ids[row, :column].tolist()))]
        odds = self.odds[numbers]
        chosen = torch.where(batch.ids == ord("a"), odds, -odds)
        p = torch.sigmoid(odds)
        entropy = -(p * p.log() + (1 - p) * (1 - p).log())
        return torch.nn.functional.logsigmoid(chosen) * batch.mask, entropy * batch.mask

    def gradient(self) -> dict[str, float]:
        """Return the gradient of the parameters by context."""
        assert self.odds.grad is not None
        return dict(zip(self.contexts, self.odds.grad.tolist(), strict=True))
