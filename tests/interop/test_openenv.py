"""OpenEnv's server plays our tasks for its own clients; what they are told is what our environment says."""

import pytest

from lmgym.env.registry import build

from .venvs import play
from .wordle import secret

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
WORDS = ["crane", "slate", "ghost", "blimp", "pound"]
INDICES = [0, 7]


@pytest.fixture(scope="module")
def found():
    """Everything that clients of a server with Wordle were told; the sixth word is the first instance's."""
    return play("openenv", "openenv_play.py", {"words": [*WORDS, secret(INDICES[0])], "indices": INDICES})


def test_episodes_are_those_of_our_environment(found):
    for index, told in zip(INDICES, found["episodes"], strict=True):
        env = build("wordle", split="test")
        first, *answers = told
        assert first["text"] == env.reset(options={"index": index})[0]["text"]
        assert first["of_result"] == [None, False]
        for word, answer in zip([*WORDS, secret(INDICES[0])], answers, strict=True):
            observation, reward, terminated, _, info = env.step(word)
            assert (answer["text"], answer["reward"], answer["done"]) == (observation["text"], reward, terminated)
            assert answer["of_result"] == [reward, terminated]
            assert (answer["valid"], answer["score"]) == (info["valid"], info.get("score"))


def test_score_comes_with_the_last_answer_alone_and_the_hidden_word_never(found):
    won, lost = found["episodes"]
    assert [answer["score"] for answer in won] == [None] * 6 + [1.0]
    assert [answer["success"] for answer in lost] == [None] * 6 + [False]
    assert secret(INDICES[0]) not in str(won)
    assert secret(INDICES[1]) not in str(lost)


def test_sessions_do_not_cross(found):
    (first, heard), (second, other) = found["crossed"]
    assert (first, second) == ("test/0", "test/1")
    envs = [build("wordle", split="test") for _ in range(2)]
    for index, env in enumerate(envs):
        env.reset(options={"index": index})
    assert [heard, other] == [env.step("crane")[0]["text"] for env in envs]
    assert (found["state"]["index"], found["state"]["step_count"]) == (0, 1)


def test_wrong_calls_are_refused_with_our_words_and_leave_the_running_episode(found):
    assert "the episode is over" in found["over"]
    assert "has instances 0 to 92; got index 93" in found["index"]
    assert "nope" in found["split"]
    assert found["crossed"][0][0] == "test/0"
    assert found["state"]["split"] == "test"


def test_pages_and_names_of_strangers_are_not_let_in(found):
    assert found["knocks"] == {"own": 101, "localhost": 101, "page": 403, "rebound": 400}


def test_split_and_seed_choose_the_instance_and_plain_clients_and_discovery_are_served(found):
    assert found["train"] == "train/371"
    assert found["drawn"][0] == found["drawn"][1]
    assert len(set(found["random"])) > 1
    assert found["plain"]["instance"] == "test/0"
    assert [split["name"] for split in found["wordle/splits"]] == ["train", "test"]
    assert found["metadata"]["name"] == "lmgym/Wordle-v0"
