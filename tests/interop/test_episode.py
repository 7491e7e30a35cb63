"""An episode played from outside has the score that the engine's has."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lmgym.env.registry import build
from lmgym.env.spaces import Images
from lmgym.errors import BackendError, InstanceError
from lmgym.evaluation import runner
from lmgym.interop.episode import TextEpisode
from lmgym.policy.load import load_policy
from lmgym.rollout.engine import Engine
from lmgym.tasks.wordle.env import Wordle

WORDS = ("crane", "slate", "ghost", "blimp", "pound", "ficky")


def test_first_words_and_answers_are_the_environments():
    episode, env = TextEpisode("wordle", split="train"), build("wordle", split="train")
    observation, _ = env.reset(options={"index": 3})
    assert episode.begin(index=3) == observation["text"]
    assert episode.act("crane") == env.step("crane")[0]["text"]


def test_what_is_left_is_cut_and_a_lost_wordle_scores_zero_after_six_tries():
    episode = TextEpisode("wordle")
    episode.begin(index=0)
    episode.act("no word")
    outcome = episode.end()
    assert (outcome.stop, outcome.truncated, outcome.score, outcome.invalid) == ("left", True, 0.0, 1)
    assert episode.end() == outcome
    episode.begin(index=0)
    for word in WORDS:
        assert not episode.over
        episode.act(word)
    outcome = episode.end()
    assert (outcome.score, outcome.success, outcome.turns, outcome.reward) == (0.0, False, 6, -6.0)
    assert (outcome.stop, outcome.truncated, outcome.solved_at) == ("done", False, None)


def test_turn_limit_is_the_tasks_or_the_callers():
    episode = TextEpisode("guess_number", max_turns=2)
    episode.begin(index=0)
    episode.act("0")
    episode.act("0")
    assert episode.over
    assert episode.end().stop == "max_turns"


def test_outcomes_are_those_of_the_engine():
    policy = load_policy("oracle")
    jobs = runner.episodes("guess_number", split="test", size=1000, count=3, options={})
    report = runner.evaluate(policy, jobs, engine=Engine())
    episode = TextEpisode("guess_number")
    outcomes = []
    for job in jobs:
        episode.begin(index=job.index, attempt=job.attempt)
        episode.act(next(episode.host.handles[0].task.oracle()))
        outcomes.append(episode.end())
    played = tuple(replace(each, tokens_in=None, tokens_out=None) for each in report.outcomes)
    assert tuple(outcomes) == played  # what the player says in tokens, only the player knows


def test_index_follows_from_the_seed_where_none_is_given():
    first, again = TextEpisode("wordle"), TextEpisode("wordle")
    first.begin(seed=5)
    again.begin(seed=5)
    assert first.index == again.index
    assert 0 <= first.index < 93


def test_neither_index_nor_seed_and_an_end_before_the_beginning_are_refused():
    with pytest.raises(InstanceError, match="choose an instance"):
        TextEpisode("wordle").begin()
    with pytest.raises(InstanceError, match="no episode is open"):
        TextEpisode("wordle").end()


def test_a_closed_episode_is_refused():
    episode = TextEpisode("wordle")
    episode.begin(index=0)
    episode.close()
    for call in (episode.end, lambda: episode.act("crane"), lambda: episode.begin(index=0)):
        with pytest.raises(InstanceError, match="this episode is closed"):
            call()


def test_broken_backend_is_raised_again_and_never_scored(monkeypatch):
    episode = TextEpisode("wordle")
    episode.begin(index=0)

    def breaks(action):
        raise BackendError("the container is gone")

    monkeypatch.setattr(episode.host.handles[0].task, "act", breaks)
    with pytest.raises(BackendError):
        episode.act("crane")
    with pytest.raises(BackendError, match="container is gone"):
        episode.end()
    episode.begin(index=1)
    assert not episode.over


def test_pictures_are_refused_not_dropped(monkeypatch):
    monkeypatch.setattr(Wordle, "PICTURES", Images(8, 8))
    with pytest.raises(InstanceError, match="pictures"):
        TextEpisode("wordle")


def test_refused_reset_leaves_no_episode_open():
    episode = TextEpisode("wordle")
    episode.begin(index=0)
    with pytest.raises(InstanceError, match="got index 93"):
        episode.begin(index=93)
    assert (episode.over, episode.index, episode.turns) == (True, None, 0)
    with pytest.raises(InstanceError, match="no episode is open"):
        episode.act("crane")


def walked(index):
    """Return TextWorld's answers to a few commands and the score if cut there."""
    pytest.importorskip("textworld")
    episode = TextEpisode("TextWorldSimple-v0")
    told = [episode.begin(index=index), *map(episode.act, ("look", "inventory", "go north", "open door"))]
    outcome = episode.end()
    episode.close()
    return told, outcome


@pytest.mark.slow
def test_episodes_side_by_side_in_processes_are_those_one_after_the_other():
    alone = [walked(index) for index in range(2)]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(walked, range(2))) == alone
    assert alone[0][0] != alone[1][0]


def test_process_that_dies_breaks_its_episode_alone_and_the_next_has_another():
    pytest.importorskip("textworld")
    episode = TextEpisode("TextWorldSimple-v0")
    first = episode.begin(index=0)
    process = episode.host.pid
    assert process not in (None, os.getpid())
    os.kill(process, signal.SIGKILL)
    with pytest.raises(BackendError, match="process was lost"):
        episode.act("look")
    with pytest.raises(BackendError, match="process was lost"):
        episode.end()
    assert episode.begin(index=0) == first
    assert episode.host.pid != process
    episode.close()
