import io

import pytest

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.load import load_policy
from lmgym.types import Message

CONVERSATION = Conversation(messages=(Message(role="system", text="Play."), Message(role="user", text="a mug 12")))


def hinted(noise=(0,), **hints):
    return Conversation(messages=CONVERSATION.messages, hints=hints, noise=noise)


def shout(messages):
    """The last message in capitals."""
    return messages[-1]["content"].upper() + messages[0]["role"]


def number(_):
    """No string."""
    return 4


@pytest.mark.parametrize("name", ["oracle", "demonstrator"])
def test_hints_are_said(name):
    policy = load_policy(name)
    assert policy.wants == {name}
    assert policy.act([hinted(**{name: "go"})])[0].text == "go"
    with pytest.raises(PolicyError, match=f"has no {name}"):
        policy.act([CONVERSATION])


def test_random_is_uniform_over_the_admissible_and_repeats_itself():
    policy = load_policy("random")
    conversations = [hinted((i,), admissible=["a", "b", "c"]) for i in range(3000)]
    answers = [completion.text for completion in policy.act(conversations)]
    assert all(900 < answers.count(word) < 1100 for word in "abc")
    assert [policy.act([one])[0].text for one in conversations[:50]] == answers[:50]
    assert [c.text for c in load_policy("random", seed=1).act(conversations[:50])] != answers[:50]


def test_random_says_something_where_nothing_is_known_and_a_function_gets_the_messages():
    answers = {load_policy("random").act([hinted((i,))])[0].text for i in range(100)}
    assert len(answers) > 5
    policy = load_policy(f"python:{__name__}:shout")
    assert policy.act([CONVERSATION])[0].text == "A MUG 12system"
    with pytest.raises(PolicyError, match="must return a string; got int"):
        load_policy(f"python:{__name__}:number").act([CONVERSATION])


def test_a_person_reads_the_last_observation(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("go north\nlook\n"))
    assert load_policy("human").act([CONVERSATION])[0].text == "go north"
    assert "a mug 12" in capsys.readouterr().out
    load_policy("human").act([Conversation(messages=(Message(role="user", text="a\n\x1b[2Jb"),))])
    assert "a\n\\x1b[2Jb" in capsys.readouterr().out


def test_null_gives_empty_answers_and_counts_words():
    assert load_policy("null").act([CONVERSATION])[0].text == ""
    assert load_policy("null").count(CONVERSATION.messages) == 4


def test_the_session_answers_all_that_wait():
    session = load_policy("oracle").session()
    for key in range(3):
        session.put(key, hinted(oracle=str(key)))
    session.drop(1)
    assert len(session) == 2
    assert [(key, answer.text) for key, answer in session.step()] == [(0, "0"), (2, "2")]
