import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.env.registry import build
from lmgym.env.spaces import MAX_TEXT, Images, UnicodeText, clean

from .games import ALL_UNICODE, GALLERY

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@pytest.fixture(autouse=True)
def registered():
    gymnasium.register(id=GALLERY.id, entry_point=lambda **options: build(GALLERY, **options))
    yield
    gymnasium.registry.pop(GALLERY.id)


@settings(deadline=None)
@given(ANY_TEXT)
def test_clean_text_is_what_the_space_takes_and_utf_8_can_write(text):
    space = UnicodeText()
    cleaned = clean(text)
    assert space.contains(cleaned)
    assert cleaned.encode().decode() == cleaned
    assert len(cleaned) == len(text)
    assert (cleaned == text) == space.contains(text)


def test_text_is_cut_where_the_space_ends_and_spaces_compare_by_what_they_take():
    assert len(clean("é" * (MAX_TEXT + 5))) == MAX_TEXT
    assert not UnicodeText().contains("é" * (MAX_TEXT + 1))
    assert UnicodeText(3).contains("abc")
    assert not UnicodeText(3).contains("abcd")
    assert UnicodeText() == UnicodeText()
    assert UnicodeText() != UnicodeText(5)
    assert Images(2, 3) == Images(2, 3)
    assert Images(2, 3) != Images(2, 3, most=2)


def test_samples_of_the_spaces_are_in_them_and_follow_the_seed():
    for space in (UnicodeText(), UnicodeText(2), Images(4, 5, most=3)):
        space.seed(3)
        first = [space.sample() for _ in range(20)]
        assert all(space.contains(sample) for sample in first)
        space.seed(3)
        assert all(np.array_equal(a, space.sample()) for a in first)
        with pytest.raises(ValueError, match="neither"):
            space.sample(probability=1)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((5, 3, 2, 3), np.uint8),
        np.zeros((1, 2, 3, 3), np.uint8),
        np.zeros((1, 3, 2, 3), np.float32),
        np.zeros((3, 2, 3), np.uint8),
        [[0]],
    ],
    ids=["too many", "turned", "floats", "one picture", "a list"],
)
def test_pictures_that_do_not_fit_are_refused(wrong):
    assert not Images(3, 2, most=4).contains(wrong)


def test_a_task_with_pictures_passes_gymnasiums_checks():
    check_env(gymnasium.make(GALLERY.id).unwrapped)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("copy", [True, False])
def test_vectors_lose_no_character_and_no_picture(mode, copy):
    envs = gymnasium.make_vec(
        GALLERY.id, num_envs=2, vectorization_mode=mode, vector_kwargs={} if mode == "sync" else {"copy": copy}
    )
    observations, _ = envs.reset(options={"index": 7})
    assert tuple(observations["text"]) == (ALL_UNICODE, ALL_UNICODE)
    assert [len(pictures) for pictures in observations["images"]] == [0, 0]
    for turn, actions in enumerate((["ü", ""], ["\u2028", "x" * 10_000], ["🙂" * 1_000, "\x00"]), start=1):
        observations, *_ = envs.step(actions)
        assert tuple(observations["text"]) == tuple(f"{ALL_UNICODE}{action}{ALL_UNICODE}" for action in actions)
        for pictures in observations["images"]:
            assert pictures.shape == (turn, 3, 2, 3)
            assert pictures[:, 0, 0, 0].tolist() == [70 + i for i in range(turn)]
    envs.close()


def test_the_longest_text_fits_the_shared_memory():
    envs = gymnasium.make_vec(GALLERY.id, num_envs=1, vectorization_mode="async")
    envs.reset()
    observations, *_ = envs.step(["🙂" * MAX_TEXT])
    assert len(observations["text"][0]) == MAX_TEXT
    assert observations["text"][0].endswith("🙂")
    envs.close()


def test_an_uncopied_view_of_shared_memory_is_live_and_a_copy_is_not():
    envs = gymnasium.make_vec(GALLERY.id, num_envs=2, vectorization_mode="async", vector_kwargs={"copy": False})
    view = envs.reset()[0]["text"]
    before = view[:]
    envs.step(["a", "b"])
    assert before == (ALL_UNICODE, ALL_UNICODE)
    assert view[-1] == f"{ALL_UNICODE}b{ALL_UNICODE}"
    assert len(view) == 2
    with pytest.raises(IndexError):
        view[2]
    envs.close()
