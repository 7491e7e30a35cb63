"""`lmgym/Remote-v0` is the task that it plays: trajectories, spaces, checks, engine."""

from __future__ import annotations

import itertools
import json
import warnings
from contextlib import closing, nullcontext
from dataclasses import replace

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from lmgym.baselines import refuel
from lmgym.env import card, golden
from lmgym.env.env import ResetNeeded
from lmgym.env.golden import at_random, given, malformed, observation_digest, play
from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build
from lmgym.env.testing import findings
from lmgym.errors import BackendError, InstanceError, RecipeError
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.serve.catalogue import Catalogue
from lmgym.tasks.remote import SPEC
from lmgym.train.preflight import check
from lmgym.types import Job

from ..env import games as tiny
from ..rollout.fakes import Bytes
from .conftest import ALL, TOKEN, served

REMOTE = "lmgym/Remote-v0"


@pytest.fixture
def token(monkeypatch):
    """The token, and a way to name the server that is told it."""
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    return lambda asking: monkeypatch.setenv("LMGYM_REMOTE_URL", asking.url)


@pytest.fixture(scope="module")
def small():
    """A server of tasks with two seats and with pictures."""
    shelf = {spec.id: spec for spec in (tiny.RACE, tiny.GALLERY)}
    with served(catalogue=Catalogue(specs=shelf, reveals=frozenset(ALL))) as asking:
        yield asking


def json_trace(trace):
    """Return a trace as JSON gives it back, with its pictures by digest."""
    observations = [observation_digest(observation) for observation in trace.observations]
    return observations, json.loads(
        json.dumps([trace.rewards, trace.infos, trace.start, trace.terminated, trace.truncated])
    )


def same_trace(here, there, player, **start):
    """Play the same episode here and there; return the remote trace."""
    local, remote = (play(env, player, **start) for env in (here, there))
    assert remote.actions == local.actions
    assert json_trace(remote) == json_trace(local)
    return remote


@pytest.mark.parametrize("deterministic", [True, False])
def test_episodes_are_rewound_where_the_task_that_is_served_can_be_played_again(token, tmp_path, deterministic):
    race = replace(tiny.RACE, deterministic=deterministic, splits={"train": 4, "test": 4})
    with served(catalogue=Catalogue(specs={race.id: race})) as asking:
        token(asking)
        options = {"url": asking.url, "task": race.id}
        refused = pytest.raises(RecipeError, match="Remote-v0 is not deterministic")
        with nullcontext() if deterministic else refused:
            check(refuel.recipe(refuel.Args(warmup=0)), REMOTE, options, tmp_path)


@pytest.mark.parametrize("task", ["wordle", "guess_number", "textworld", "webshop", "click_target"])
def test_the_trajectories_are_those_of_the_local_environment(open_games, task):
    players = [lambda env: env.oracle(), malformed, lambda env: itertools.islice(at_random(env), 20)]
    with open_games.remote(task) as there, closing(build(task)) as here:
        for index, player in enumerate(players):
            same_trace(here, there, player, index=index, seed=index + 5)


def test_what_is_not_revealed_is_all_that_is_missing(games):
    trace = play(build("alfworld"), lambda env: env.oracle(), index=1)
    with games.remote("alfworld") as env:
        assert json_trace(play(env, given(trace.actions), index=1))[1][:2] == json_trace(trace)[1][:2]


def test_instances_are_drawn_from_the_seed_as_they_are_here(open_games):
    with open_games.remote("wordle", split="test") as there, closing(build("wordle", split="test")) as here:
        for seed in (3, None, None, 11, None, 1 << 100):
            assert there.reset(seed=seed)[1] == here.reset(seed=seed)[1]


def test_options_of_the_task_reach_it_and_turn_limits_are_the_tasks_and_the_callers(games):
    with (
        games.remote("guess_number", options={"highest": 7}) as there,
        closing(build("guess_number", highest=7)) as here,
    ):
        assert there.reset(seed=1)[0] == here.reset(seed=1)[0]
    with games.remote("guess_number") as env:
        trace = play(env, lambda _: ["0"] * 99, index=0)
    assert (len(trace.actions), trace.truncated, trace.infos[-1]["score"]) == (10, True, 0.0)
    for most in (2, 15):
        with (
            games.remote("guess_number", max_turns=most) as there,
            closing(build("guess_number", max_turns=most)) as here,
        ):
            assert len(same_trace(here, there, lambda _: ["0"] * 99, index=0).actions) == most


def test_seats_are_played_by_the_caller_where_that_is_allowed_and_pictures_and_every_text_travel(small):
    with small.remote(tiny.RACE.id, others="caller") as there, closing(build(tiny.RACE, others="caller")) as here:
        same_trace(here, there, lambda _: ["1", "2", "2"], index=0)
        assert there.unwrapped.scripted("black") == "1"
        assert there.reset(options={"instance": {"sum": 4}})[0] == here.reset(options={"instance": {"sum": 4}})[0]
    with small.remote(tiny.GALLERY.id) as there, closing(build(tiny.GALLERY)) as here:
        assert there.observation_space == here.observation_space
        trace = same_trace(here, there, lambda _: ["1", "2", "x"], index=3)
        assert any(len(observation["images"]) for observation in trace.observations)
        assert all(observation in there.observation_space for observation in trace.observations)
    with small.remote(tiny.RACE.id) as there, closing(build(tiny.RACE)) as here:
        for text in HOSTILE:
            same_trace(here, there, lambda _, text=text: [text], index=0)


def test_gymnasiums_checks_pass(games):
    with warnings.catch_warnings(), games.remote("wordle") as env:
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_a_remote_task_keeps_what_every_task_promises(open_games, monkeypatch, tmp_path):
    for module in (card, golden):
        monkeypatch.setattr(module, "folder", lambda spec: tmp_path)
    here = {"url": open_games.url, "task": "guess_number", "token": TOKEN}
    spec = replace(SPEC, id="test/Remote-v0", options=here, splits={"train": 1_000_000}, references={"oracle": 1.0})
    spec = replace(spec, max_turns=10, overlap="one split")
    card.write(spec)
    golden.write(spec)
    assert [finding for finding in findings(spec) if not finding.ok] == []


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments(games, mode):
    envs = gymnasium.make_vec(
        REMOTE, num_envs=2, vectorization_mode=mode, url=games.url, task="guess_number", token=TOKEN
    )
    local = gymnasium.make_vec("lmgym/GuessNumber-v0", num_envs=2)
    with closing(envs), closing(local):
        assert envs.reset(seed=4)[0]["text"] == local.reset(seed=4)[0]["text"]
        for actions in (["50", "é"], ["25", "75"]):
            theirs, mine = envs.step(actions), local.step(actions)
            assert theirs[0]["text"] == mine[0]["text"]
            assert list(theirs[1]) == list(mine[1])


@pytest.mark.parametrize("player", ["inline", "thread"])
def test_the_engine_plays_the_same_episodes(games, token, player):
    token(games)

    def played(name, **options):
        jobs = [Job(task=name, options=options, index=n, seed=n, id=f"e{n}") for n in range(4)]
        trajectories = Engine(lockstep=True, player=player).run(Bytes(lambda _: "50"), jobs)
        return [json.loads(episodes.dump(replace(t, task="", options={}))) for t in trajectories]

    assert played(REMOTE, url=games.url, task="guess_number") == played("lmgym/GuessNumber-v0")


def test_forks_and_fresh_chance_reach_the_server(small, token):
    token(small)
    options = {"url": small.url, "task": tiny.RACE.id}
    (parent,) = Engine().run(Bytes(lambda _: "1"), [Job(task=REMOTE, options=options, index=2, seed=5, id="p")])
    (child,) = Engine().run(Bytes(lambda _: "1"), [fork(parent, 1, reseed=9, trusted=True)])
    assert [turn.reward for turn in child.turns] == [turn.reward for turn in parent.turns]
    with small.remote(tiny.RACE.id) as env:
        env.reset(seed=0)
        env.unwrapped.reseed(9)
        assert env.step("1")[4]["valid"]


def test_advice_is_withheld_until_the_operator_says_otherwise(games, open_games):
    with games.remote("wordle") as env:
        env.reset(seed=0)
        for name in ("oracle", "demonstrator"):
            with pytest.raises(InstanceError, match=f"withholds the {name}"):
                next(getattr(env.unwrapped, name)())
        assert env.unwrapped.admissible() is None
        assert env.unwrapped.answer() is None
    with open_games.remote("wordle") as env, closing(build("wordle")) as here:
        for each in (env, here):
            each.reset(seed=0)
        assert env.unwrapped.admissible() == here.unwrapped.admissible()
        assert env.unwrapped.answer() == here.unwrapped.answer()


def test_steps_before_a_reset_and_after_the_end_are_refused_here(games):
    with games.remote("guess_number", max_turns=1) as env:
        with pytest.raises(ResetNeeded):
            env.step("1")
        env.reset(seed=0)
        env.step("0")
        with pytest.raises(ResetNeeded):
            env.step("1")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "chess"}, "has no task 'chess'"),
        ({"split": "secret"}, "unknown split 'secret' for lmgym/Wordle-v0; choose train, test"),
        ({"options": {"words": "/etc/passwd"}}, "public options: colouring"),
        ({"options": {"words": ["crane"]}}, "text, a number or a switch"),
        ({"token": "not the token"}, "token must have ASCII"),
        ({"token": "not-the-token"}, "HTTP 401"),
        ({"token": "a\nb"}, "token must have ASCII"),
        ({"url": "ftp://127.0.0.1"}, "url must be http"),
        ({"url": "http://me:secret@127.0.0.1:1"}, "must not contain a password"),
        ({"url": "http://127.0.0.1:99999"}, "not the URL of a server"),
        ({"url": ""}, "set url="),
        ({"others": "caller"}, "other seats"),
        ({"others": "python:os:getcwd"}, "other seats"),
        ({"timeout": 0.0}, "above 0"),
    ],
)
def test_wrong_options_are_refused_at_once(games, wrong, message):
    with pytest.raises(InstanceError, match=message):
        build("remote", **{"url": games.url, "task": "wordle", "token": TOKEN, **wrong})


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"index": 10_000}, "instances 0 to 371"),
        ({"index": -1}, "instances 0 to 371"),
        ({"index": "3"}, "instances 0 to 371"),
        ({"place": 3}, "reset takes"),
        ({"instance": {"word": "crane"}}, "does not accept authored instances"),
        ({"instance": {"word": object()}}, "cannot be sent"),
    ],
)
def test_wrong_instances_are_the_callers_mistake_and_the_session_lives_on(games, choice, message):
    with games.remote("wordle") as env:
        with pytest.raises(InstanceError, match=message):
            env.reset(seed=0, options=choice)
        assert env.reset(seed=0, options={"index": 3})[1]["instance"] == "train/3"


def test_the_address_may_come_from_the_environment_and_no_server_is_a_backend_error(games, token):
    with pytest.raises(BackendError, match="is unreachable"):
        build("remote", url="http://127.0.0.1:9", task="wordle", token=TOKEN, timeout=5.0)
    token(games)
    with closing(build("remote", task="wordle")) as env:
        assert env.reset(seed=0, options={"index": 1})[1]["instance"] == "train/1"


def test_a_server_gives_a_score_only_by_cutting(open_games):
    with open_games.remote("guess_number") as env:
        env.reset(seed=0)
        with pytest.raises(InstanceError, match=r"through cut\(\) only"):
            env.unwrapped.score_if_cut()
        assert env.unwrapped.cut() == {"score": 0.0, "success": False}
