"""Choosing among tries: votes, verification, early exit, the tokens of all tries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
import torch

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, Policy, SimpleSession, TakesPictures
from lmgym.policy.load import load_local, load_policy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.scripted import Scripted
from lmgym.policy.select import QUESTION, Majority, Select, Verified, selection_of
from lmgym.rollout.answers import action_of
from lmgym.types import Completion, Message

from .models import policy
from .talk import finish, opened, talk

PROMPT = Conversation(messages=tuple(opened()), noise=(4, 2))


@dataclass
class Lines:
    """A policy whose try number n gives the n-th line; it counts its calls."""

    lines: Sequence[str]
    usage: dict[str, float] = field(default_factory=dict)
    finishes: Sequence[str] = ()
    name: str = "lines"
    version: int = 3
    wants: frozenset[str] = frozenset({"admissible"})
    asked: list[tuple[int, ...]] = field(default_factory=list)

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        answers = []
        for conversation in conversations:
            self.asked.append(conversation.noise)
            number = conversation.noise[-1]
            ending = self.finishes[number] if self.finishes else "stop"
            answers.append(Completion(text=self.lines[number], usage=self.usage, finish=ending))
        return answers

    def count(self, messages: Sequence[Message]) -> int:
        return len(messages)

    def session(self) -> SimpleSession:
        return SimpleSession(self)


@dataclass
class Judge(Lines):
    """Lines whose policy says Yes with given log-probabilities."""

    yes: Callable[[str], float] = len

    def answer_logprobs(self, conversations: Sequence[Conversation], answers: Sequence[str]) -> list[float]:
        assert list(answers) == ["Yes"] * len(conversations)
        assert all(each.messages[-1].text == QUESTION for each in conversations)
        return [self.yes(each.messages[-2].text) for each in conversations]


def vote(*lines: str, action: Callable[[str], str] = str) -> tuple[str, int]:
    """The chosen text among the lines, and the number of tries."""
    lined = Lines(lines)
    answer = Select(lined, len(lines), Majority(action), "x").act([PROMPT])[0]
    assert answer.usage["tries"] == len(lined.asked)
    return answer.text, len(lined.asked)


def tiny(seed: int = 0, **sampling: float) -> Policy:
    return load_local("tiny:1m", device="cpu", sampling=Sampling(max_tokens=6, seed=seed, **sampling))


@pytest.mark.parametrize(
    ("lines", "chosen", "tries"),
    [
        ("aab", "a", 2),  # two of three decide
        ("aba", "a", 3),
        ("abb", "b", 3),
        ("abc", "a", 3),  # all equal: the first sampled
        ("baab", "b", 4),  # a tie
        ("aabb", "a", 2),  # two more could only tie, and a was sampled first
        ("abbcb", "b", 5),  # after a b b c, a could still come first
        ("aaabc", "a", 3),
        ("abbaa", "a", 5),
    ],
)
def test_the_most_frequent_action_wins_and_the_first_of_equals(lines, chosen, tries):
    assert vote(*lines) == (chosen, tries)


def test_a_vote_that_ended_early_is_that_of_all_tries():
    for number in range(3**6):
        lines = ["abc"[number // 3**place % 3] for place in range(6)]
        counts = {line: lines.count(line) for line in lines}  # in the order of sampling
        assert vote(*lines)[0] == max(counts, key=counts.__getitem__), lines


def test_white_space_and_words_around_the_action_do_not_split_a_vote():
    assert vote("go  north", "south", " go north\n")[0] == "go  north"
    lines = ("I think.\nAction: left", "Action: right", "Other thoughts\nAction: left")
    assert vote(*lines, action=partial(action_of, answers="action"))[0] == lines[0]
    assert vote(*lines)[0] == lines[0]  # three different texts: a tie
    assert vote(lines[1], lines[0], lines[2], action=partial(action_of, answers="action"))[0] == lines[0]


def test_usage_counts_all_tries():
    usage = {"in": 10, "out": 2, "cost": 0.25, "seconds": 1.5, "call": "k"}
    answer = Select(Lines("aba", usage), 3, Majority(), "x").act([PROMPT])[0]
    assert answer.usage == {"in": 30, "out": 6, "cost": 0.75, "seconds": 4.5, "call": "k", "tries": 3}
    unknown = Select(Lines("aba", {"call": "k", "out": 2}), 3, Majority(), "x").act([PROMPT])[0]
    assert unknown.usage.get("in") is None  # with "call" it counts as unknown
    assert unknown.usage["out"] == 6


def test_a_broken_try_breaks_the_answer_and_ends_the_sampling():
    lined = Lines("abcde", {"fault": "gone"}, finishes=("stop", "broken", "stop", "stop", "stop"))
    answer = Select(lined, 5, Majority(), "x").act([PROMPT])[0]
    assert (answer.finish, answer.usage["fault"], len(lined.asked)) == ("broken", "gone", 3)


def test_the_verifier_chooses_the_answer_it_would_confirm_and_reads_count():
    judge = Judge(("go", "stay here", "go", "wait"), {"in": 5, "out": 1})
    answer = Select(judge, 4, Verified(judge), "x").act([PROMPT])[0]
    assert answer.text == "stay here"
    questions = 3 * (len(PROMPT.messages) + 2)  # of three different answers
    assert answer.usage == {"in": 4 * 5 + questions, "out": 4, "tries": 4}
    alike = Judge(("go", "go"), yes=lambda _: pytest.fail("equal answers need no verifier"))
    assert Select(alike, 2, Verified(alike), "x").act([PROMPT])[0].usage == {"in": 0, "out": 0, "tries": 2}


def test_without_a_correct_candidate_no_choice_gains():
    """MARS-SQL's sanity check: the gain over the first answer vanishes where the pool has no correct one."""

    def score(choose: str, pools: Sequence[Sequence[str]]) -> float:
        right = 0
        for pool in pools:
            judge = Judge(pool, yes=lambda text: float(text == "right"))
            pick = Majority() if choose == "majority" else Verified(judge)
            right += Select(judge, len(pool), pick, "x").act([PROMPT])[0].text == "right"
        return right / len(pools)

    mixed = [("wrong", "right", "right"), ("wrong", "bad", "right"), ("right", "wrong", "bad")]
    assert [score(choose, mixed) for choose in ("majority", "verified")] == [2 / 3, 1.0]  # the first answers: 1/3
    hopeless = [tuple(line.replace("right", "other") for line in pool) for pool in mixed]
    assert [score(choose, hopeless) for choose in ("majority", "verified")] == [0.0, 0.0]


def test_a_models_tries_are_its_answers_to_streams_of_their_own():
    model = tiny()
    answer = Select(model, 3, Majority(), "x").act([PROMPT])[0]
    tries = [model.act([replace(PROMPT, noise=(4, 2, number))])[0] for number in range(3)]
    assert len({each.text for each in tries}) == 3
    first = tries[0]  # a tie; ids and log-probs are the chosen one's
    assert (answer.text, answer.prompt_ids, answer.ids) == (first.text, first.prompt_ids, first.ids)
    assert answer.logprobs == pytest.approx(first.logprobs, abs=1e-4)  # float32, in another batch
    assert answer.usage == {
        "in": 3 * len(tries[0].prompt_ids),
        "out": sum(len(each.ids) for each in tries),
        "tries": 3,
    }


def test_the_verifiers_choice_is_that_of_an_independent_computation():
    model = tiny(seed=5)
    chosen = Select(model, 4, Verified(model), "x").act([PROMPT])[0]
    tries = [model.act([replace(PROMPT, noise=(4, 2, number))])[0] for number in range(4)]
    scores = []
    for each in tries:
        chat = [{"role": message.role, "content": message.text} for message in PROMPT.messages]
        chat += [{"role": "assistant", "content": each.text}, {"role": "user", "content": QUESTION}]
        asked = model.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        prompt = model.tokenizer.encode(asked, add_special_tokens=False)
        ids = torch.tensor([[*prompt, *model.template.answer("Yes", prompt)]])
        with torch.no_grad():
            logp = model.model(input_ids=ids).logits[0].double().log_softmax(-1)
        scores.append(sum(float(logp[place - 1, ids[0, place]]) for place in range(len(prompt), ids.shape[1])))
    best = max(range(4), key=scores.__getitem__)
    assert sorted(scores)[-1] - sorted(scores)[-2] > 1e-4
    assert chosen.ids == tries[best].ids


def test_an_answer_without_room_for_the_question_cannot_be_confirmed():
    model = tiny()
    prompt = len(model.prompt(PROMPT)[0])
    room = replace(PROMPT, messages=(*PROMPT.messages, Message(role="assistant", text="a")))
    model.context = prompt + 1
    assert model.answer_logprobs([PROMPT, room], ["Yes", "Yes"]) == [-math.inf, -math.inf]


def test_conversations_go_on_together_as_they_do_alone():
    model = tiny(seed=1)
    select = Select(model, 3, Majority(), "x")
    together = talk(select, select.session(), rows=3, turns=3, max_tokens=6)
    again = talk(select, select.session(), rows=3, turns=3, max_tokens=6)
    assert together == again
    for row in range(3):
        first = Conversation(messages=tuple(opened(row=row)), noise=(row, 0), max_tokens=6)
        assert select.act([first])[0].ids == together[row][0].ids
    assert [[answer.fresh for answer in answers] for answers in together] == [[True, False, False]] * 3
    third = together[0][2]  # its tries read the segment so far
    before = sum(len(answer.prompt_ids) + len(answer.ids) for answer in together[0][:2])
    assert third.usage["in"] == third.usage["tries"] * (before + len(third.prompt_ids))


def test_a_dropped_conversation_leaves_no_tries_behind():
    model = tiny()
    session = Select(model, 3, Majority(), "x").session()
    session.put("a", PROMPT)
    session.put("b", replace(PROMPT, noise=(9,)))
    session.step()
    session.drop("a")
    session.drop("unknown")
    assert len(session) == 1
    session.put("b", PROMPT)  # replaces the one before
    done = finish(session)
    assert {key: answer.ids for key, answer in done.items()} == {
        "b": Select(model, 3, Majority(), "x").act([PROMPT])[0].ids
    }
    assert len(session.tries) == 0


def test_a_choice_shows_what_its_policy_is_and_passes_pictures_on():
    lined = Lines("abc")
    select = Select(lined, 3, Majority(), "majority:3:lines")
    assert isinstance(select, Policy)
    assert isinstance(select, TakesPictures)
    assert (select.version, select.wants, select.count(opened())) == (3, {"admissible"}, 2)
    select.use_pictures({})
    seen = policy("tiny")
    seen.use_pictures = lambda pictures: pictures.update(here=b"")
    pictures: dict[str, bytes] = {}
    Select(seen, 3, Majority(), "x").use_pictures(pictures)
    assert pictures == {"here": b""}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("majority", "majority:N:MODEL needs a whole number N of tries from 3 to 9999; got ''"),
        ("majority:2:tiny", "from 3 to 9999"),  # the first of two would always win
        ("verified:1:tiny", "verified:N:MODEL needs a whole number N of tries from 2 to 9999; got '1'"),
        ("majority:2.5:tiny", "from 3"),
        ("majority:-3:tiny", "from 3"),
        ("majority:99999:tiny", "to 9999"),
        ("majority:3:", "majority:3 names no model; write majority:3:MODEL"),
        ("majority:3:verified:2:tiny", "choices cannot be nested; name a model in place of verified:"),
        ("majority:3:oracle", "majority:3: the tries are those of a model; oracle is a scripted player"),
        ("verified:3:python:os.path:join", "verified:3: the tries are those of a model; python is a scripted player"),
        ("majority:3:gpt", "unknown policy 'gpt'"),
    ],
)
def test_a_wrong_choice_is_refused_in_a_line(name, message):
    with pytest.raises(PolicyError, match=message) as refused:
        load_policy(name)
    assert "\n" not in str(refused.value)


def test_only_weights_verify_and_equal_tries_are_no_choice():
    with pytest.raises(PolicyError, match="verified:3:null: only a model with weights can verify"):
        selection_of("verified:3:tiny").select(Scripted("null", str), temperature=1.0)
    with pytest.raises(PolicyError, match="majority:3:tiny needs a temperature above 0"):
        load_policy("majority:3:tiny", device="cpu", sampling=Sampling(temperature=0.0))
    with pytest.raises(PolicyError, match="majority:N:MODEL has no weights of its own to train or score"):
        load_local("majority:3:tiny")


def test_a_choice_is_loaded_by_its_name():
    made = load_policy("verified:3:tiny:1m", device="cpu", sampling=Sampling(max_tokens=4))
    assert (made.name, made.tries) == ("verified:3:tiny:1m", 3)
    assert made.act([PROMPT])[0].usage["tries"] == 3
