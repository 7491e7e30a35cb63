import json
from dataclasses import replace

import numpy as np
import pytest

from lmgym.env import golden
from lmgym.env.golden import observation_digest, play
from lmgym.env.registry import build, find
from lmgym.errors import ReplayError

from .games import GALLERY, RACE, Archive

GUESS = find("guess_number")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(golden, "folder", lambda spec: tmp_path)
    return tmp_path


def test_a_digest_knows_text_and_pictures_apart():
    pictures = np.arange(36, dtype=np.uint8).reshape(1, 3, 4, 3)
    different = [
        {"text": "a"},
        {"text": "b"},
        {"text": ""},
        {"text": "a", "images": pictures},
        {"text": "a", "images": pictures[:0]},
        {"text": "a", "images": pictures.reshape(1, 4, 3, 3)},
        {"text": "a", "images": pictures + np.uint8(1)},
    ]
    assert len({observation_digest(observation) for observation in different}) == len(different)
    # the first 32 digits of sha256("a")
    assert observation_digest({"text": "a"}) == "ca978112ca1bbdcafac231b39a23dc4d"


def test_recorded_episodes_are_small_replay_and_show_a_changed_observation(folder):
    path = golden.write(GUESS)
    assert path == folder / "golden.jsonl"
    assert golden.read(GUESS) == golden.record(GUESS)
    assert {episode["player"] for episode in golden.read(GUESS)} == {"oracle", "random", "malformed"}
    assert golden.replay(GUESS) == []
    assert path.stat().st_size < golden.LARGEST
    digest = observation_digest({"text": "Correct!"})
    path.write_text(path.read_text().replace(digest, "0" * 32))
    assert f"observations at 1 was '{'0' * 32}', is '{digest}'" in golden.replay(GUESS)[0]


def test_variants_share_a_file_and_pictures_and_seats_are_recorded(folder):
    variant = replace(GUESS, id="lmgym/GuessHigh-v0", options={"highest": 1000})
    first = golden.write(GUESS).read_text()
    both = golden.write(variant).read_text()
    assert both.startswith(first)
    assert golden.replay(GUESS) == golden.replay(variant) == []
    golden.write(GUESS)
    assert sorted((folder / "golden.jsonl").read_text().splitlines()) == sorted(both.splitlines())
    for spec in (GALLERY, RACE):
        golden.write(spec)
        assert golden.replay(spec) == []


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("score", 0.5, "oracle train/0: score was 0.5, is 1.0"),
        ("rewards", [0.5], "oracle train/0: rewards at 0 was 0.5, is 1.0"),
        ("rewards", [1.0, 0.0], "oracle train/0: rewards had 2 entries, has 1"),
        ("terminated", False, "oracle train/0: terminated was False, is True"),
        ("valid", [False], "oracle train/0: valid at 0 was False, is True"),
    ],
)
def test_a_difference_is_named(folder, field, value, message):
    path = golden.write(GUESS)
    first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(map(json.dumps, [{**first, field: value}, *rest])))
    assert golden.replay(GUESS) == [message]


def test_goldens_of_outcomes_hold_no_observations_and_official_data_is_not_recorded(folder):
    spec = replace(GUESS, goldens="outcome")
    golden.write(spec)
    assert "observations" not in golden.read(spec)[0]
    assert golden.replay(spec) == []
    golden.write(replace(GUESS, splits={"official": 0, "test": 1}))
    assert {episode["split"] for episode in golden.read(GUESS)} == {"test"}


def test_a_task_without_goldens_says_how_to_get_them(folder):
    with pytest.raises(ReplayError, match="has no episodes in golden.jsonl: record them with"):
        golden.replay(GUESS)


OFFICIAL = replace(RACE, id="test/Archive-v0", entry_point=f"{Archive.__module__}:Archive", splits={"official": 0})


def test_titles_find_instances_of_official_data_and_recording_without_it_keeps_what_was_there(folder, monkeypatch):
    monkeypatch.setattr(Archive, "SHELF", [3, 5, 8])
    before = golden.write(OFFICIAL).read_text()
    assert {episode["title"] for episode in golden.read(OFFICIAL)} == {"sum-3", "sum-5"}  # the oracle's two
    monkeypatch.setattr(Archive, "SHELF", [])
    assert golden.write(OFFICIAL).read_text() == before
    assert golden.replay(OFFICIAL) == []
    assert golden.absent(OFFICIAL) == len(golden.read(OFFICIAL)) == 4
    assert golden.owed(OFFICIAL)
    assert not golden.owed(replace(OFFICIAL, id="test/Other-v0"))
    monkeypatch.setattr(Archive, "SHELF", [1, 2, 3])  # sum-3 is the third now, sum-5 is not here
    assert golden.replay(OFFICIAL) == []
    assert golden.absent(OFFICIAL) == 1
    (folder / golden.FILE).write_text(before.replace('"success": true', '"success": false'))
    assert golden.replay(OFFICIAL) == ["oracle official/0: success was False, is True"]


def test_playing_stops_at_the_end_or_when_the_actions_do():
    env = build(GUESS)
    assert play(env, lambda task: iter(["x", "y"]), index=0).over is False
    trace = play(env, lambda task: task.demonstrator(), index=0)
    assert trace.over
    assert len(trace.observations) == len(trace.actions) + 1 == len(trace.infos) + 1
