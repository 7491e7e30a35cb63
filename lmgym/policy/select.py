"""Choices among several answers of one policy: a majority vote, or the answer that a verifier likes best.

Answers are sampled in rounds, and a round has no more of them than can decide: an answer under way costs tokens that
nobody could count if it were dropped, and an endpoint's call is paid for in any case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, Policy, Session, TakesPictures, WeighsAnswers
from lmgym.types import Completion, Message

LEAST = {"majority": 3, "verified": 2}  # tries by kind; of two votes the first would always win
PLAYERS = ("oracle", "demonstrator", "random", "null", "human", "python")
QUESTION = "Is your last answer correct? Answer Yes or No."
YES = "Yes"
SUMMED = ("in", "out", "cached", "thinking", "cost", "seconds")  # figures of usage that add up over the tries


class Pick(Protocol):
    """A rule that chooses among the answers to a conversation."""

    def more(self, answers: Sequence[Completion], left: int) -> int:
        """Return how many of the `left` remaining answers to sample next; 0 if the choice is made without them."""

    def choose(self, conversation: Conversation, answers: Sequence[Completion]) -> tuple[int, int]:
        """Return the number of the chosen answer, and the tokens that were read to choose it."""


@dataclass(frozen=True)
class Majority:
    """The most frequent action; of equally frequent ones, that sampled first.

    This is self-consistency (Wang et al. 2023, arXiv 2203.11171), turn by turn.
    """

    action: Callable[[str], str] = str  # the part of an answer that is the action

    def more(self, answers: Sequence[Completion], left: int) -> int:
        """Return the fewest answers that can decide the vote, if all of them agree with its leader."""
        votes = Counter(map(self._vote, answers))
        if not votes:
            return -(-left // 2)
        leader, most = votes.most_common(1)[0]
        return next(n for n in range(left + 1) if _decided(Counter({**votes, leader: most + n}), left - n))

    def choose(self, conversation: Conversation, answers: Sequence[Completion]) -> tuple[int, int]:
        """Return the number of the first answer with the winning action; no tokens are read."""
        votes = [self._vote(answer) for answer in answers]
        return votes.index(Counter(votes).most_common(1)[0][0]), 0

    def _vote(self, answer: Completion) -> str:
        """Return the action, in which runs of white space count as one space."""
        return " ".join(self.action(answer.text).split())


def _decided(votes: Counter[str], left: int) -> bool:
    """Return True if no `left` further votes change the winner."""
    (leader, most), *others = votes.most_common(2)
    order = list(votes)  # as first sampled
    if not others:
        return left <= most
    second, count = others[0]
    return count + left < most + (order.index(leader) < order.index(second))


class ScoringPolicy(Policy, WeighsAnswers, Protocol):
    """A policy with weights: it counts tokens and tells the probabilities of answers."""


@dataclass(frozen=True)
class Verified:
    """The answer for which a verifier is most likely to say Yes: argmax of log P(Yes | conversation, answer, question).

    This is the validator of MARS-SQL (arXiv 2511.01008), turn by turn. Equal answers are verified once.
    """

    verifier: ScoringPolicy

    def more(self, answers: Sequence[Completion], left: int) -> int:
        """Return all remaining answers: any of them may be the best."""
        return left

    def choose(self, conversation: Conversation, answers: Sequence[Completion]) -> tuple[int, int]:
        """Return the number of the best answer, of equally good ones the first, and the tokens of the questions."""
        texts = list(dict.fromkeys(answer.text for answer in answers))
        if len(texts) == 1:
            return 0, 0
        questions = [question(conversation, text) for text in texts]
        scores = self.verifier.answer_logprobs(questions, [YES] * len(texts))
        best = texts[max(range(len(texts)), key=scores.__getitem__)]
        read = sum(self.verifier.count(each.messages) for each in questions)
        return next(number for number, answer in enumerate(answers) if answer.text == best), read


def question(conversation: Conversation, answer: str) -> Conversation:
    """Return the conversation in which the verifier is asked about an answer."""
    exchange = Message(role="assistant", text=answer), Message(role="user", text=QUESTION)
    return Conversation(messages=(*conversation.messages, *exchange), tools=conversation.tools)


@dataclass(frozen=True)
class Select:
    """A policy that samples up to `tries` answers of another one and gives the one that `pick` chooses.

    Every try has a noise stream of its own. The completion is that of the chosen answer, with its ids and log-probs;
    its usage counts the tokens of all tries, and those read to choose.
    """

    policy: Policy
    tries: int
    pick: Pick
    name: str

    @property
    def version(self) -> int:
        """Version of the weights."""
        return self.policy.version

    @property
    def wants(self) -> frozenset[str]:
        """Hints to ask the environment for."""
        return self.policy.wants

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        session, done = self.session(), dict[Hashable, Completion]()
        for number, conversation in enumerate(conversations):
            session.put(number, conversation)
        while len(session):
            done.update(session.step())
        return [done[number] for number in range(len(conversations))]

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens in a full rendering of `messages`."""
        return self.policy.count(messages)

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Let the policy look up pictures in `pictures`."""
        if isinstance(self.policy, TakesPictures):
            self.policy.use_pictures(pictures)

    def session(self) -> SelectSession:
        """Return a session over one of the policy's."""
        return SelectSession(self, self.policy.session())


class Try(NamedTuple):
    """Key of one answer in the session of the policy."""

    key: Hashable
    number: int


@dataclass
class Candidates:
    """The answers to one conversation so far."""

    conversation: Conversation
    answers: dict[int, Completion] = field(default_factory=dict)  # by the number of the try
    started: int = 0  # tries


@dataclass
class SelectSession:
    """The session of a Select."""

    select: Select
    tries: Session  # of the policy
    open: dict[Hashable, Candidates] = field(default_factory=dict)

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Start the first round of tries; each reuses its own cache of `key`."""
        if key in self.open:
            self.drop(key)
        candidates = self.open[key] = Candidates(conversation)
        self._start_round(key, candidates)

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance the tries and return the conversations whose choice is made."""
        finished = []
        for tried, completion in self.tries.step():
            assert isinstance(tried, Try), "no other keys are put"
            candidates = self.open[tried.key]
            candidates.answers[tried.number] = completion
            if len(candidates.answers) == candidates.started and not self._start_round(tried.key, candidates):
                del self.open[tried.key]
                finished.append((tried.key, self._chosen(candidates)))
        return finished

    def drop(self, key: Hashable) -> None:
        """Forget `key`, its tries and their caches."""
        self.open.pop(key, None)
        for number in range(self.select.tries):
            self.tries.drop(Try(key, number))

    def __len__(self) -> int:
        """Return the number of conversations put and not finished."""
        return len(self.open)

    def _start_round(self, key: Hashable, candidates: Candidates) -> int:
        """Start the tries of the next round and return their number; a broken answer ends the sampling."""
        answers = _in_order(candidates)
        broken = any(answer.finish == "broken" for answer in answers)
        more = 0 if broken else self.select.pick.more(answers, self.select.tries - candidates.started)
        for number in range(candidates.started, candidates.started + more):
            noise = (*candidates.conversation.noise, number)
            self.tries.put(Try(key, number), replace(candidates.conversation, noise=noise))
        candidates.started += more
        return more

    def _chosen(self, candidates: Candidates) -> Completion:
        """Return the chosen answer with the usage of all; a broken one where there is one, so the episode is void."""
        answers, read = _in_order(candidates), 0
        number = next((n for n, answer in enumerate(answers) if answer.finish == "broken"), None)
        if number is None:
            number, read = self.select.pick.choose(candidates.conversation, answers)
        return replace(answers[number], usage=_total(candidates.conversation, answers, number, read))


def _in_order(candidates: Candidates) -> list[Completion]:
    return [candidates.answers[number] for number in sorted(candidates.answers)]


def _total(conversation: Conversation, answers: Sequence[Completion], chosen: int, read: int) -> dict[str, Any]:
    """Return the usage of the chosen answer with the figures of all; None where one of them is unknown."""
    usages = [_usage(conversation, answer) for answer in answers]
    total = dict(usages[chosen])
    for name in SUMMED:
        values = [usage.get(name) for usage in usages]
        if any(name in usage for usage in usages):
            total[name] = None if None in values else sum(values)
    if total.get("in") is not None:
        total["in"] += read
    return {**total, "tries": len(answers)}


def _usage(conversation: Conversation, answer: Completion) -> dict[str, Any]:
    """Return the usage of an answer; if it was no call, its tokens are those of its ids."""
    if {"in", "out", "call"} & set(answer.usage):
        return dict(answer.usage)
    before = 0 if answer.fresh else sum(len(each.prompt_ids) + len(each.ids) for each in conversation.spoken)
    return {**answer.usage, "in": before + len(answer.prompt_ids), "out": len(answer.ids)}


class Selection(NamedTuple):
    """The parts of a policy string KIND:N:MODEL."""

    kind: str
    tries: int
    model: str

    def select(self, policy: Policy, *, temperature: float | None, action: Callable[[str], str] = str) -> Select:
        """Return the policy that chooses among the tries of `policy`, which `model` names.

        Raises PolicyError if the tries would be equal, or if the policy cannot verify.
        """
        name = f"{self.kind}:{self.tries}:{policy.name}"
        if temperature == 0:
            raise PolicyError(f"{name} needs a temperature above 0: at 0 all tries are the same answer")
        if self.kind == "majority":
            return Select(policy, self.tries, Majority(action), name)
        if not isinstance(policy, WeighsAnswers):
            raise PolicyError(f"{name}: only a model with weights can verify: tiny, smollm2, hf:PATH or run:FOLDER")
        return Select(policy, self.tries, Verified(policy), name)


def selection_of(name: str) -> Selection | None:
    """Return the parts of a policy string `majority:N:MODEL` or `verified:N:MODEL`; None for any other string.

    Errors do not repeat the model, which may contain a key.
    """
    kind, _, rest = name.partition(":")
    if kind not in LEAST:
        return None
    count, _, model = rest.partition(":")
    if not re.fullmatch("[1-9][0-9]{0,3}", count) or int(count) < LEAST[kind]:
        raise PolicyError(f"{kind}:N:MODEL needs a whole number N of tries from {LEAST[kind]} to 9999; got {count!r}")
    player = model.partition(":")[0]
    if not player:
        raise PolicyError(f"{kind}:{count} names no model; write {kind}:{count}:MODEL, such as {kind}:{count}:tiny")
    if player in LEAST:
        raise PolicyError(f"{kind}:{count}: choices cannot be nested; name a model in place of {player}:...")
    if player in PLAYERS:
        raise PolicyError(f"{kind}:{count}: the tries are those of a model; {player} is a scripted player")
    return Selection(kind, int(count), model)


def model_of(name: str) -> str:
    """Return the model among whose tries a policy string chooses; the string itself if it chooses among none."""
    selection = selection_of(name)
    return name if selection is None else selection.model


def tries_of(name: str) -> int:
    """Return the largest number of answers that a policy string samples at a turn."""
    selection = selection_of(name)
    return 1 if selection is None else selection.tries
