from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgym.errors import InstanceError
from lmgym.evaluation import report as reports
from lmgym.rollout import episodes
from lmgym.types import Message
from lmgym.viewer import index
from lmgym.viewer.episode import plain, tokens
from lmgym.viewer.index import EpisodeFilter, RunFile, listing, open_runs
from lmgym.viewer.search import search
from tests.evaluation.reports import outcome, report
from tests.viewer.planted import ATTACKS, PICTURE, PNG, episode, hostile_run, plain_run

NESTED = {"turns": [1], "info": {"turns": []}, "x": [{"observation": {"role": "user"}}, []]}


def run_of(tmp_path, *trajectories):
    episodes.write(tmp_path / "episodes.jsonl", trajectories)
    return RunFile(tmp_path)


def test_episodes_are_listed_without_their_turns_being_parsed(tmp_path, monkeypatch):
    parsed = []
    read = json.loads
    monkeypatch.setattr(index.json, "loads", lambda text, **more: (parsed.append(len(text)), read(text, **more))[1])
    run = run_of(tmp_path, *(replace(episode(n), turns=episode(n).turns * 50) for n in range(40)))
    assert [row.turns for row in run.rows] == [100] * 40
    assert sum(parsed) < run.path.stat().st_size / 50


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("more", [{}, {"options": NESTED}, {"tags": NESTED}, {"final": None}, {"index": None}])
def test_both_ends_of_a_line_say_what_the_whole_says(tmp_path, text, more):
    made = episode(3, text, **more)
    made = replace(made, info={**made.info, **NESTED})
    row = run_of(tmp_path, made).rows[0]
    assert (row.id, row.task, row.split, row.seat) == (made.id, made.task, made.split, made.seat)
    assert (row.index, row.attempt, row.stop, row.truncated) == (made.index, 0, "done", False)
    assert (row.score, row.success, row.turns) == (1.0, True, 2)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_is_listed_and_found_again(text, others):
    made = episode(0, text)
    made = replace(
        made,
        turns=tuple(replace(turn, observation=Message(role="user", text=t)) for t in others for turn in made.turns),
    )
    line = episodes.dump(made).encode()
    assert index._quick(line) == index._whole(line, None)


def test_a_line_of_another_make_is_read_whole(tmp_path):
    record = json.loads(episodes.dump(episode(5)))
    turned = {name: record[name] for name in sorted(record)}
    (tmp_path / "a.jsonl").write_text(json.dumps(turned, separators=(",", ":")) + "\n\n")
    row = RunFile(tmp_path / "a.jsonl").rows[0]
    assert (row.index, row.turns, row.success) == (5, 2, True)


def test_a_last_line_that_was_cut_off_is_none(tmp_path):
    run = run_of(tmp_path, episode(0), episode(1))
    run.path.write_bytes(run.path.read_bytes()[:-5])
    assert len(RunFile(tmp_path).rows) == 1
    run.path.write_bytes(b"")
    assert RunFile(tmp_path).rows == []


@pytest.mark.parametrize("line", ["nothing", "[]", "{}", "[" * 100_000, '{"turns": [], "info": {}}'])
def test_what_is_no_episode_is_refused_in_words(tmp_path, line):
    (tmp_path / "episodes.jsonl").write_text(line + "\n")
    with pytest.raises(InstanceError, match="has a line that is not a recorded episode"):
        RunFile(tmp_path)


def test_infinity_is_no_score_and_as_a_number_of_an_episode_refused(tmp_path):
    endless = episode(0, info={"score": float("inf"), "success": False})
    run = run_of(tmp_path, endless)
    assert json.loads(json.dumps(listing([run], run.rows), allow_nan=False))["columns"]["score"] == [None]
    with pytest.raises(InstanceError, match="has a line that is not a recorded episode"):
        run_of(tmp_path, replace(endless, attempt=float("inf")))


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz"])
def test_other_formats_are_refused_with_a_remedy(tmp_path, name):
    (tmp_path / name).write_bytes(b"PAR1")
    with pytest.raises(InstanceError, match=r"view reads \.jsonl; record with --out FILE\.jsonl"):
        open_runs([tmp_path / name])


def test_a_folder_of_runs_is_several_runs(tmp_path):
    for name in ("b", "a"):
        plain_run(tmp_path / name)
    runs = open_runs([tmp_path])
    assert [run.name for run in runs] == ["a", "b"]
    with pytest.raises(InstanceError, match=r"has no episodes\.jsonl"):
        open_runs([tmp_path / "none"])


def test_steps_that_training_kept_are_runs(tmp_path):
    for step in ("000003", "000001"):
        episodes.write(tmp_path / "episodes" / f"{step}.jsonl", [episode(0)])
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / f"{PICTURE}.png").write_bytes(PNG)
    runs = open_runs([tmp_path])
    assert [run.name for run in runs] == ["000001.jsonl", "000003.jsonl"]
    assert [run.picture(PICTURE) for run in runs] == [PNG, PNG]


def test_words_are_found_and_what_was_planned_and_has_no_episode_is_said(tmp_path):
    run = RunFile(plain_run(tmp_path))
    assert hits_of(run, "LOOK 3") == [3]
    assert hits_of(run, "look") == list(range(6))
    assert hits_of(run, "observation") == []  # a name of the format
    assert hits_of(run, "nothing of the kind") == []
    hits, start = [], 0
    while start is not None:
        part = search([run], run.rows, "look", start=start, seconds=0.0)
        hits, start = hits + part.hits, part.next
    assert hits == list(range(6))
    assert run.absent() == ""
    made = report([[1]] * 6, planned=9)
    reports.write(tmp_path, replace(made, outcomes=(*made.outcomes, outcome(6, voided=True))))
    assert run.absent() == f"{tmp_path.name}: 1 voided, 2 missing"
    (tmp_path / "report.json").write_text("{")
    assert run.absent() == f"{tmp_path.name}: report.json is damaged"


def test_rows_are_chosen_by_task_outcome_and_instance(tmp_path):
    rows = RunFile(plain_run(tmp_path)).rows
    assert [row.index for row in rows if EpisodeFilter(outcome="success").has(row)] == [1, 3, 5]
    assert [row.index for row in rows if EpisodeFilter(outcome="failure", instance=2).has(row)] == [2]
    assert [row.index for row in rows if EpisodeFilter(task="planted").has(row)] == list(range(6))
    assert [row for row in rows if EpisodeFilter(task="wordle").has(row)] == []


def test_a_list_is_plain_json_and_only_a_png_of_the_runs_own_folder_a_picture(tmp_path):
    run = RunFile(hostile_run(tmp_path))
    content = json.loads(json.dumps(listing([run], run.rows), allow_nan=False))
    assert content["count"] == len(ATTACKS)
    assert content["columns"]["task"] == ATTACKS
    assert run.picture(PICTURE) == PNG
    assert run.picture("0" * 32) is None  # markup under the name of a picture
    for name in ("", "../episodes", "/etc/passwd", "1" * 32, PICTURE.upper(), PICTURE + "\n"):
        assert run.picture(name) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    )
)
def test_any_value_becomes_json_that_javascript_reads(value):
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)


def test_values_that_javascript_would_change_are_text():
    assert plain({"a": float("nan"), "b": 2**60, "c": 10**5000}) == {
        "a": "nan",
        "b": str(2**60),
        "c": "a number of 16610 bits",
    }
    deep = []
    for _ in range(500):
        deep = [deep]
    assert "..." in json.dumps(plain(deep))


def test_tokens_have_their_figures_and_a_character_of_several_stands_once():
    completion = episode(0).turns[0].completion
    assert tokens(completion, None) == [["⟨7⟩", -0.01, 0.0], ["⟨8⟩", -3.5, 0.9], ["⟨9⟩", -9.0, 6.0]]
    assert [word for word, _, _ in tokens(completion, lambda ids: "".join("abc"[n - 7] for n in ids))] == [
        "a",
        "b",
        "c",
    ]
    unknown = replace(completion, logprobs=(), entropy=())
    assert tokens(unknown, None)[0] == ["⟨7⟩", None, None]
    pieces = {7: b"\xf0\x9f", 8: b"\x98\x80", 9: b"!"}
    words = tokens(
        episode(0).turns[0].completion, lambda ids: b"".join(pieces[n] for n in ids).decode(errors="replace")
    )
    assert [word for word, _, _ in words] == ["", "\U0001f600", "!"]


def hits_of(run, words):
    return search([run], run.rows, words).hits


@pytest.mark.parametrize("words", ["ÄPFEL", 'say "yes"', "two\nlines", "back\\slash", "\U0001f600"])
def test_words_that_json_writes_otherwise_are_found(tmp_path, words):
    run = run_of(tmp_path, episode(0), episode(1, f"all {words.lower()} here"))
    assert hits_of(run, words) == [1]
