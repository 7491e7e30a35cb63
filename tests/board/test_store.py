"""The leaderboard's folder: verdicts, a history that only grows, proposals that only add, versions that close."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lmgym.board import archive, history, site
from lmgym.board import entry as entries
from lmgym.board.proposals import added_entries
from lmgym.board.store import BoardStore
from lmgym.board.verdict import Verdict
from lmgym.board.verify import verify
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import protocol

WORDLE = "lmgym/Wordle-v0"


@pytest.fixture(scope="session")
def verdict(honest: Path) -> Verdict:
    return verify(honest)


@pytest.fixture
def store(honest: Path, tmp_path: Path) -> BoardStore:
    """A leaderboard with one entry that is not graded yet."""
    board = BoardStore(tmp_path / "leaderboards")
    shutil.copytree(honest.parent.parent, board.entries)
    return board


@pytest.fixture
def graded(store: BoardStore, verdict: Verdict) -> BoardStore:
    """The same leaderboard, with the verdict."""
    store.admit(entries.read(store.path(WORDLE, "honest")), verdict)
    return store


def test_a_verdict_is_of_one_entry_and_one_promise(store: BoardStore, verdict: Verdict) -> None:
    entry = entries.read(path := store.path(WORDLE, "honest"))
    assert store.stale() == [path]
    store.admit(entry, verdict)
    assert store.stale() == []
    assert store.verdict(entry) == verdict
    other = msgspec.structs.replace(entry, title="Another title")
    assert store.verdict(other) is None
    with pytest.raises(SubmissionError, match="is not about honest"):
        store.admit(other, verdict)
    older = msgspec.structs.replace(verdict, promise="0" * 64)
    store.verdict_path(WORDLE, "honest").write_bytes(entries.canonical(older))
    assert store.stale() == [path]


def test_history_records_grading_and_removal(store: BoardStore, verdict: Verdict) -> None:
    entry = entries.read(store.path(WORDLE, "honest"))
    store.admit(entry, verdict)
    with pytest.raises(SubmissionError, match="give a --reason"):
        store.admit(entry, verdict)
    store.admit(entry, msgspec.structs.replace(verdict, mark="reproduced"), reason="ids scored again")
    store.remove(WORDLE, "honest", reason="the author asked for it")
    events = history.read(store.log)
    assert [(event.number, event.what, event.mark, event.reason) for event in events] == [
        (1, "added", "verified", ""),
        (2, "regraded", "reproduced", "ids scored again"),
        (3, "removed", "", "the author asked for it"),
    ]
    assert history.current(events[:2], WORDLE, "honest") == events[1]
    assert history.current(events, WORDLE, "honest") is None
    assert not store.path(WORDLE, "honest").exists()
    with pytest.raises(SubmissionError, match="there is no entry honest"):
        store.remove(WORDLE, "honest", reason="once more")


def test_a_name_is_never_reused(store: BoardStore, verdict: Verdict) -> None:
    entry = entries.read(store.path(WORDLE, "honest"))
    store.admit(entry, verdict)
    other = msgspec.structs.replace(entry, title="A better player")
    events = history.read(store.log)
    history.check_unused(events, WORDLE, "honest", entries.digest(entry))
    with pytest.raises(SubmissionError, match="names another entry since"):
        history.check_unused(events, WORDLE, "honest", entries.digest(other))
    store.remove(WORDLE, "honest", reason="gone")
    with pytest.raises(SubmissionError, match="names another entry since"):
        store.admit(other, msgspec.structs.replace(verdict, entry=entries.digest(other)))


def history_lines(count: int, path: Path) -> list[bytes]:
    for number in range(count):
        history.append(path, date="2026-11-21", what="archived", task=WORDLE, reason=str(number))
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: lines[:1] + lines[2:], "line 2 is not as it was written"),
        (lambda lines: [lines[0].replace(b"2026-11-21", b"2020-01-01"), *lines[1:]], "line 2 does not follow line 1"),
        (lambda lines: lines[1:], "line 1 is not as it was written"),
        (lambda lines: [lines[0].replace(b'","', b'", "'), *lines[1:]], "line 1 is not as it was written"),
        (lambda lines: [*lines, b"{}\n"], "line 4: Object missing required field"),
    ],
    ids=["dropped", "edited", "beginning", "spaces", "added"],
)
def test_a_broken_chain_is_refused(tmp_path: Path, edit: object, message: str) -> None:
    lines = history_lines(3, tmp_path / "history.jsonl")
    assert len(history.parse(b"".join(lines))) == 3
    with pytest.raises(SubmissionError, match=message):
        history.parse(b"".join(edit(lines)))


def test_history_may_only_grow(tmp_path: Path) -> None:
    lines = history_lines(3, tmp_path / "history.jsonl")
    history.check_extends(b"".join(lines[:2]), b"".join(lines))
    other = history_lines(2, tmp_path / "other.jsonl")
    assert other == lines[:2]
    with pytest.raises(SubmissionError, match="lines may only be appended"):
        history.check_extends(b"".join(lines), b"".join(lines[:2]))


@pytest.fixture
def proposal(graded: BoardStore, tmp_path: Path) -> tuple[Path, Path]:
    """A leaderboard, and a copy of it to which an entry was added."""
    changed = tmp_path / "proposed"
    shutil.copytree(graded.root, changed)
    for suffix in (".json", entries.SUFFIX):
        path = changed / "entries/Wordle-v0/honest"
        shutil.copy(path.with_name(f"honest{suffix}"), path.with_name(f"newcomer{suffix}"))
    return graded.root, changed


def test_a_proposal_adds_entries(proposal: tuple[Path, Path]) -> None:
    base, changed = proposal
    assert added_entries(base, changed) == [changed / "entries/Wordle-v0/newcomer.json"]
    assert added_entries(base, base) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("entries/Wordle-v0/honest.json", None, "was removed; a proposal adds"),
        ("entries/Wordle-v0/honest.json", b"{}", "was changed; a proposal adds"),
        ("history.jsonl", b"", "was changed; a proposal adds"),
        ("verdicts/Wordle-v0/honest.json", b"{}", "was changed; a proposal adds"),
        ("verdicts/Wordle-v0/newcomer.json", b"{}", "is not a file of an entry; the board writes verdicts and history"),
        ("entries/Wordle-v0/script.sh", b"true", "is not a file of an entry"),
        ("entries/Wordle-v0/alone.episodes.jsonl.zst", b"", "has no JSON file beside it"),
        ("entries/deep/er/entry.json", b"{}", "is not a file of an entry"),
        ("site/board.js", b"alert(1)", "is not a file of an entry"),
        ("suites/easy-1.json", b"{}", "is not a file of an entry"),
        ("curves/Wordle-v0/mine.json", b"{}", "is not a file of an entry"),
        ("entries/Wordle-v0/random.json", b"{}", "random is a reference, which only the board itself plays"),
    ],
)
def test_any_other_change_of_a_proposal_is_refused(
    proposal: tuple[Path, Path], name: str, content: bytes | None, message: str
) -> None:
    base, changed = proposal
    (changed / name).parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        (changed / name).unlink()
    else:
        (changed / name).write_bytes(content)
    with pytest.raises(SubmissionError, match=message):
        added_entries(base, changed)


def test_links_of_a_proposal_are_refused(proposal: tuple[Path, Path], tmp_path: Path) -> None:
    base, changed = proposal
    secret = tmp_path / "secret"
    secret.write_text("planted")
    (changed / "entries/Wordle-v0/newcomer.json").unlink()
    (changed / "entries/Wordle-v0/newcomer.json").symlink_to(secret)
    with pytest.raises(SubmissionError, match="is a link"):
        added_entries(base, changed)
    (tmp_path / "linked").symlink_to(base)
    with pytest.raises(SubmissionError, match="linked is a link; a proposal is a folder"):
        added_entries(base, tmp_path / "linked")


def test_a_next_version_replays_all_entries_and_closes_the_table(graded: BoardStore, verdict: Verdict) -> None:
    table = archive.archive(graded, WORDLE, "lmgym/WordleCounting-v0", reason="Letters are counted.")
    kept = json.loads(table.read_text())
    (row,) = kept["rows"]
    assert row["score"] == msgspec.to_builtins(verdict.score)
    assert row["holds"].startswith("no: instance ")  # letters are coloured otherwise there
    assert (kept["task"], kept["next"]) == (WORDLE, "lmgym/WordleCounting-v0")
    assert not graded.path(WORDLE, "honest").exists()
    assert (graded.root / "archive/Wordle-v0/honest.json").is_file()
    assert [event.what for event in history.read(graded.log)] == ["added", "removed", "archived"]


def test_actions_hold_on_an_equal_next_version(graded: BoardStore) -> None:
    table = archive.archive(graded, WORDLE, WORDLE, reason="The card says more.")
    assert json.loads(table.read_text())["rows"][0]["holds"] == "yes"


def test_names_are_free_in_a_table_that_follows_an_archived_one(
    graded: BoardStore, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that asks for other episodes closes its table; even the same entry may come again."""
    path = graded.path(WORDLE, "honest")
    content = {file: file.read_bytes() for file in (path, entries.episodes_path(path))}
    fewer = replace(protocol(WORDLE), instances=40)
    with monkeypatch.context() as patch:
        patch.setattr(site, "protocol", lambda task: fewer)
        with pytest.raises(SubmissionError, match="honest on lmgym/Wordle-v0: .*instances 40.*board archive lmgym/Wor"):
            site.load(graded)
    first = archive.archive(graded, WORDLE, WORDLE, reason="Forty words are asked for.")
    site.load(graded)
    assert first.name == "Wordle-v0.json"
    other = msgspec.structs.replace(verdict, entry="2" * 64)
    history.check_unused(history.read(graded.log), WORDLE, "honest", other.entry)
    for file, kept in content.items():
        file.write_bytes(kept)
    graded.admit(entries.read(path), verdict)
    with pytest.raises(SubmissionError, match="honest on lmgym/Wordle-v0 names another entry since"):
        history.check_unused(history.read(graded.log), WORDLE, "honest", other.entry)
    second = archive.archive(graded, WORDLE, WORDLE, reason="Once more.")
    assert second.name == "Wordle-v0-2.json"
    (removed,) = site.load(graded).removed
    assert removed.table == "Wordle-v0-2"
    assert len(removed.events) == 4
