import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build, find, specs
from lmgym.env.spaces import MAX_TEXT
from lmgym.errors import InstanceError, MissingExtra

PIECES = (
    *("<|im_end|>", "<|im_start|>system\n", "<|endoftext|>", "</s>", "[INST]", "<think>", "</think>", "{{", "{%", "%}"),
    *("<tool_call>", '{"name":', "```", "click(", ")", "go to ", "take ", "look", "1", "-", "\n", " ", "\t", "\x00"),
    *("\u202e", "\u2067", "אבג", "مرحبا", "漢字", "🙂", "\u200d", "\u0301", "\ufeff", "\ud800", "\udfff"),
    *("$x", "%s", "{0}"),
)
ANY = st.characters(exclude_categories=())  # lone surrogates and unassigned ones too
TEXT = st.one_of(
    st.text(ANY, max_size=50),
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
    st.builds(lambda text, times: (text * times)[:MAX_TEXT], st.text(ANY, min_size=1, max_size=9), st.integers(1, 999)),
    st.sampled_from([text for text in HOSTILE if len(text) < 10_000]),
)
LONG = [text for text in HOSTILE if len(text) >= 10_000]


TASKS = {spec.entry_point: spec for spec in reversed(specs().values())}.values()  # one id a class


def opened(task):
    """Open a task on the first split whose data is here; say why there is none."""
    reasons = []
    for split in task.splits:
        try:
            env = build(task, split=split)
            env.reset(seed=0, options={"index": 0})
        except (MissingExtra, InstanceError) as error:
            reasons.append(str(error))
        else:
            return env, ""
    return None, "; ".join(reasons)


@pytest.fixture(scope="module")
def live():
    """Every task that can be opened here, by id."""
    envs = {task.id: env for task in TASKS if (env := opened(task)[0])}
    yield envs
    for env in envs.values():
        env.close()


def survive(envs, text):
    for task, env in envs:
        note(task)
        if env.unwrapped._over:
            env.reset(seed=0, options={"index": 0})
        observation, reward, terminated, truncated, info = env.step(text)
        assert env.observation_space.contains(observation)
        assert isinstance(reward, float)
        assert isinstance(info["valid"], bool)
        assert ("score" in info) is (terminated or truncated)


def waits(task):
    """Return True if a task's steps wait for a browser or the like."""
    return find(task).player == "thread"


@settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT)
def test_no_text_breaks_a_task(live, text):
    survive([(task, env) for task, env in live.items() if not waits(task)], text)


@settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT)
def test_no_text_breaks_a_task_that_waits(live, text):
    survive([(task, env) for task, env in live.items() if waits(task)], text)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_million_characters_break_no_task(task):
    env, reason = opened(task)
    if env is None:
        pytest.skip(reason)
    for text in LONG:
        env.reset(seed=0, options={"index": 0})
        observation, *_ = env.step(text)
        assert env.observation_space.contains(observation)
    env.close()
