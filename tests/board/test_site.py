"""The site: every figure a verdict's, ties as ties, what is missing shown, nothing of an entry trusted."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from lmgym.board import curves, history, parsing, site
from lmgym.board import entry as entries
from lmgym.board.copies import check_copy
from lmgym.board.entry import Entry, Links, PolicyRecord, RecordedTurn
from lmgym.board.proposals import recheck
from lmgym.board.site import Board, TaskPage, write
from lmgym.board.store import BoardStore, check_system
from lmgym.board.tables import Suite, TableRow, combined, overall, ranked
from lmgym.board.verdict import Figure, Verdict, figures, outcomes
from lmgym.board.verify import verify
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import ranked as all_ranked
from lmgym.policy.load import load_policy
from tests.board.forge import played

WORDLE = "lmgym/Wordle-v0"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def board_store(honest: Path, tmp_path_factory: pytest.TempPathFactory) -> BoardStore:
    """A leaderboard of four entries on Wordle, all verified."""
    store = BoardStore(tmp_path_factory.mktemp("store") / "leaderboards")
    shutil.copytree(honest.parent.parent, store.entries)
    for name in ("null", "random", "oracle"):
        signed = {"name": name, "title": f"The {name}", "policy": PolicyRecord(name, name)}
        entries.write(store.entries, *played("wordle", load_policy(name), **signed))
    for path in store.stale():
        store.admit(entries.read(path), verify(path))
    (store.root / "suites").mkdir()
    counting = {"Counting": ["lmgym/WordleCounting-v0"]}
    for name, families in (("words", {"Wordle": [WORDLE]}), ("both", {"Wordle": [WORDLE], **counting})):
        suite = {"name": name, "version": 1, "families": families}
        (store.root / f"suites/{name}-1.json").write_text(json.dumps(suite))
    return store


@pytest.fixture(scope="session")
def pages(board_store: BoardStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of that leaderboard."""
    out = tmp_path_factory.mktemp("site")
    write(site.load(board_store), out, address="https://example.org/board/")
    return out


def row(template: TableRow, name: str, scores: Sequence[float], *, mark: str = "verified", **changes: Any) -> TableRow:
    """Make the row of a system with these scores on single tries."""
    rest = {"attempt": 0, "turns": 3, "invalid": 0, "tokens": 0}
    columns = outcomes([{"index": i, "score": s, "success": s == 1, **rest} for i, s in enumerate(scores)])
    entry = msgspec.structs.replace(template.entry, name=name, title=name, **changes)
    return TableRow(entry, msgspec.structs.replace(template.verdict, name=name, mark=mark, **figures(columns)))


def references(template: TableRow, task: str = WORDLE) -> list[TableRow]:
    """Make the rows that define 0 and 100 on a task."""
    return [row(template, name, [value] * 40, task=task) for name, value in (("random", 0.0), ("oracle", 1.0))]


def page(*rows: TableRow, **changes: Any) -> Board:
    """Make a board of one task."""
    texts = {"family": "wordle", "summary": "", "score": "", **changes}
    return Board([TaskPage(id=WORDLE, name="Wordle-v0", rows=rows, **texts)], [], [])


@pytest.fixture
def template(board_store: BoardStore) -> TableRow:
    entry = entries.read(board_store.path(WORDLE, "honest"))
    verdict = board_store.verdict(entry)
    assert verdict is not None
    return TableRow(entry, verdict)


def test_ranks_are_shared_where_a_paired_test_sees_no_difference(template: TableRow) -> None:
    # b differs from a on 4 of 40 instances, all worse: sign test p = 2 / 2^4 = 0.125, a tie; c on 20: p = 2e-6
    best = np.ones(40)
    near, far = best.copy(), best.copy()
    near[:4], far[:20] = 0, 0
    table = ranked([row(template, name, scores) for name, scores in (("c", far), ("a", best), ("b", near))])
    ranks = [(each.entry.name, each.rank, each.tied) for each in table]
    assert ranks == [("a", 1, True), ("b", 1, True), ("c", 3, False)]


def test_entries_of_another_user_are_not_compared(template: TableRow) -> None:
    other = row(template, "b", [0.0] * 40, user="user: other", seats=("agent", "user"))
    table = ranked([row(template, "a", [1.0] * 40), other])
    assert [(each.entry.name, each.rank) for each in table] == [("a", 1), ("b", 1)]


def test_a_reported_entry_has_no_rank_and_no_overall_score(template: TableRow) -> None:
    claim = row(template, "a", [1.0] * 40, mark="reported")
    table = ranked([claim, row(template, "b", [0.0] * 40)])
    assert [(each.entry.name, each.rank) for each in table] == [("b", 1), ("a", 0)]
    systems = overall(Suite("one", 1, {"Wordle": (WORDLE,)}), [*references(template), claim])
    assert [each.name for each in systems] == ["oracle", "random"]


def test_overall_puts_random_at_0_and_the_oracle_at_100(template: TableRow) -> None:
    suite = Suite("one", 1, {"Wordle": (WORDLE,)})
    half = [1.0, 0.0] * 20
    rows = [row(template, *each) for each in (("random", [0.2] * 40), ("oracle", [1.0] * 40), ("mine", half))]
    systems = {each.name: each for each in overall(suite, rows)}
    means = {name: each.score.mean for name, each in systems.items() if each.score}
    assert means == pytest.approx({"random": 0.0, "oracle": 100.0, "mine": 100 * (0.5 - 0.2) / 0.8})
    mine = systems["mine"].score
    assert mine is not None
    # Wilson's interval of 20 in 40 is 0.5 -+ 0.148, on this scale 19.0 to 56.0
    assert (mine.low, mine.high) == pytest.approx((19.0, 56.0), abs=0.01)
    oracle = systems["oracle"].score
    assert oracle is not None
    assert oracle.low < oracle.mean == oracle.high == 100.0


def test_intervals_of_tasks_give_one_of_their_mean() -> None:
    # (10 + 30) / 2 = 20; below sqrt(3^2 + 4^2) / 2 = 2.5, above sqrt(6^2 + 8^2) / 2 = 5
    mean = combined([Figure(10, 7, 16), Figure(30, 26, 38)], [0.5, 0.5])
    assert mean == Figure(20.0, 17.5, 25.0)


def test_a_missing_task_is_shown_and_nothing_is_averaged(template: TableRow) -> None:
    suite = Suite("two", 1, {"Wordle": (WORDLE,), "Counting": ("lmgym/WordleCounting-v0",)})
    rows = [*references(template), row(template, "mine", [0.5] * 40)]
    systems = overall(suite, rows + references(template, "lmgym/WordleCounting-v0"))
    states = [(each.name, each.missing, each.score is None) for each in systems]
    assert states == [("oracle", 0, False), ("random", 0, False), ("mine", 1, True)]
    assert systems[2].tasks == {WORDLE: 50.0, "lmgym/WordleCounting-v0": None}
    assert systems[2].families == {"Wordle": 50.0, "Counting": None}


def test_families_weigh_alike(template: TableRow) -> None:
    suite = Suite("three", 1, {"A": ("a/1", "a/2"), "B": ("b/1",)})
    rows = []
    for task, score in (("a/1", 1.0), ("a/2", 1.0), ("b/1", 0.0)):
        rows += [*references(template, task), row(template, "mine", [score] * 40, task=task)]
    (mine,) = [each for each in overall(suite, rows) if each.name == "mine"]
    assert mine.score is not None
    assert mine.score.mean == pytest.approx(50.0)  # not 66.7: two tasks of a family are one part of two


@pytest.fixture
def copied(board_store: BoardStore, tmp_path: Path) -> BoardStore:
    shutil.copytree(board_store.root, tmp_path / "copy")
    return BoardStore(tmp_path / "copy")


ENTRY, EPISODES, VERDICT = "entries/{}.json", "entries/{}.episodes.jsonl.zst", "verdicts/{}.json"


@pytest.mark.parametrize("gone", [[ENTRY], [EPISODES], [ENTRY, EPISODES, VERDICT]])
def test_a_missing_file_needs_a_line_of_the_history(
    board_store: BoardStore, copied: BoardStore, gone: list[str]
) -> None:
    for file in gone:
        (copied.root / file.format("Wordle-v0/honest")).unlink()
    for check in (lambda: recheck(board_store, copied), lambda: site.load(copied)):
        with pytest.raises(SubmissionError, match="honest on lmgym/Wordle-v0 is in the history since .* is missing"):
            check()


def test_equal_and_removed_entries_are_not_replayed(board_store: BoardStore, copied: BoardStore) -> None:
    assert recheck(board_store, copied) == []
    copied.remove(WORDLE, "honest", reason="the author asked for it")
    assert recheck(board_store, copied) == []
    assert {row.entry.name for row in site.load(copied).rows} == {"null", "random", "oracle"}


def without_digests(log: Path) -> None:
    """Write a history as it was when its lines held no digests of verdicts."""
    events = history.read(log)
    assert all(event.verdict for event in events if event.name)
    log.unlink()
    for event in events:
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        for name in ("number", "previous", "verdict"):
            del fields[name]
        history.append(log, **fields)


AUDITED: dict[str, Any] = {"mark": "reproduced", "audit": {"z": 0.1}}
EDITS: dict[str, tuple[dict[str, object], str]] = {
    "score": ({"score": Figure(1.0, 0.5, 1.0)}, "the history has honest on lmgym/Wordle-v0 with score"),
    "mark": (AUDITED, "the history has honest on lmgym/Wordle-v0 with mark verified"),
    "success": ({"success": Figure(0.999, 0.99, 1.0)}, "not the one in the history|another success than its"),
    "audit": ({"audit": {"z": 0.1}}, "is not the one in the history"),
    "turns": ({"turns": Figure(1.0, 1.0, 1.0)}, "is not the one in the history"),
}


@pytest.mark.parametrize(("edited", "before"), [*((name, False) for name in EDITS), ("mark", True), ("success", True)])
def test_a_verdict_edited_by_hand_stops_the_build(
    copied: BoardStore, template: TableRow, edited: str, before: bool
) -> None:
    if before:
        without_digests(copied.log)
    assert site.load(copied)
    changes, message = EDITS[edited]
    verdict = msgspec.structs.replace(template.verdict, **changes)
    copied.verdict_path(WORDLE, "honest").write_bytes(entries.canonical(verdict))
    with pytest.raises(SubmissionError, match=message):
        site.load(copied)


def test_a_change_of_golden_episodes_stops_the_build(copied: BoardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "promise", lambda task: "0" * 64)
    with pytest.raises(SubmissionError, match="was verified before the task's golden episodes changed"):
        site.load(copied)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda store: store.verdict_path(WORDLE, "honest").unlink(), "honest on lmgym/Wordle-v0 has no verdict as it"),
        (lambda store: store.log.write_bytes(store.log.read_bytes().partition(b"\n")[2]), "not as it was written"),
    ],
    ids=["verdict", "history"],
)
def test_a_damaged_board_is_not_built(copied: BoardStore, damage: Callable[..., object], message: str) -> None:
    damage(copied)
    with pytest.raises(SubmissionError, match=message):
        site.load(copied)


def test_a_name_is_one_system_on_all_tasks(copied: BoardStore, template: TableRow) -> None:
    other = msgspec.structs.replace(template.entry, task="lmgym/WordleCounting-v0", authors=("A. Rival",))
    episodes = entries.EpisodeFile(1, "0" * 64)
    own = msgspec.structs.replace(other, authors=template.entry.authors, episodes=episodes)
    check_system(template.entry, [template.entry, own])
    with pytest.raises(SubmissionError, match="honest names another system on lmgym/Wordle-v0"):
        check_system(other, [template.entry])
    path = copied.path(WORDLE, "oracle")
    oracle = msgspec.structs.replace(entries.read(path), authors=("A. Rival",))
    check_system(oracle, [template.entry])
    with pytest.raises(SubmissionError, match="oracle names another system"):
        check_system(msgspec.structs.replace(oracle, task="lmgym/WordleCounting-v0"), [entries.read(path)])


COPY = "copy repeats the actions or token ids of honest on lmgym/Wordle-v0: a copy of an entry is no entry"


def copy_of(
    store: BoardStore, template: TableRow, edit: Callable[[RecordedTurn], RecordedTurn], **policy: object
) -> tuple[Entry, Verdict]:
    """Enter the honest player's episodes under another name, with every turn edited."""
    copied = [
        msgspec.structs.replace(episode, turns=tuple(map(edit, episode.turns)), tokens_in=(episode.tokens_in or 0) + 1)
        for episode in entries.read_episodes(store.path(WORDLE, "honest"))
    ]
    copy = msgspec.structs.replace(
        template.entry,
        name="copy",
        title="A new player",
        authors=("A. Copyist",),
        policy=msgspec.structs.replace(template.entry.policy, **policy),
        episodes=entries.EpisodeFile(len(copied), parsing.digest(entries.packed(copied))),
    )
    entries.write(store.entries, copy, copied)
    return copy, msgspec.structs.replace(template.verdict, name="copy", entry=entries.digest(copy))


def with_other_ids(turn: RecordedTurn) -> RecordedTurn:
    return msgspec.structs.replace(turn, words=f"I say {turn.action}", ids=(1,))


def acting(change: Callable[[str], str]) -> Callable[[RecordedTurn], RecordedTurn]:
    return lambda turn: msgspec.structs.replace(turn, action=change(turn.action or ""))


@pytest.mark.parametrize(
    "edit",
    [
        with_other_ids,
        acting(lambda action: f"{action} "),
        acting(str.upper),
        acting(lambda action: f"The next word must be:\n{action}"),
        acting(lambda action: action.translate({ord(letter): ord(letter) + 0xFEE0 for letter in "aeiou"})),
    ],
    ids=["ids", "space", "case", "prose", "width"],
)
def test_a_copy_is_refused_under_any_title(
    copied: BoardStore, template: TableRow, edit: Callable[[RecordedTurn], RecordedTurn]
) -> None:
    copy, verdict = copy_of(copied, template, edit)
    with pytest.raises(SubmissionError, match=COPY):
        copied.admit(copy, verdict)
    assert copied.verdict(copy) is None
    with pytest.raises(SubmissionError, match=COPY):  # not even audited, unless under weights of its own
        copied.admit(copy, msgspec.structs.replace(verdict, **AUDITED))
    regraded(copied, template.verdict)  # the earlier entry stays valid


def test_equal_token_ids_make_a_copy(copied: BoardStore, template: TableRow) -> None:
    numbered = itertools.count()
    path = copied.path(WORDLE, "honest")
    sampled = [
        msgspec.structs.replace(
            episode, turns=tuple(msgspec.structs.replace(turn, ids=(next(numbered),)) for turn in episode.turns)
        )
        for episode in entries.read_episodes(path)
    ]
    entries.episodes_path(path).write_bytes(parsing.compress(entries.packed(sampled)))
    copy_of(copied, template, acting(lambda action: "zzzzz"))
    with pytest.raises(SubmissionError, match=COPY):
        check_copy(copied.path(WORDLE, "copy"), [path], audited=False)


def test_other_actions_are_no_copy(copied: BoardStore, template: TableRow) -> None:
    for number, change in enumerate((lambda action: "zzzzz", lambda action: f"{action}s", lambda action: "")):
        copy_of(copied, template, acting(change))
        path = copied.path(WORDLE, "copy")
        check_copy(path, [copied.path(WORDLE, "honest")], audited=False)
        for file in (path, entries.episodes_path(path)):
            file.rename(file.with_name(f"{number}-{file.name}"))


def test_a_copy_among_the_entries_stops_the_build(
    copied: BoardStore, template: TableRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, verdict = copy_of(copied, template, with_other_ids)
    with monkeypatch.context() as patch:
        patch.setattr(BoardStore, "check_copy", lambda *_, **__: None)
        copied.admit(copy, verdict)
    with pytest.raises(SubmissionError, match=COPY):
        site.load(copied)


def test_an_audited_policy_may_act_as_another_does(copied: BoardStore, template: TableRow) -> None:
    copy, verdict = copy_of(copied, template, with_other_ids, weights="1" * 64)
    with pytest.raises(SubmissionError, match=COPY):
        copied.admit(copy, verdict)
    copied.admit(copy, msgspec.structs.replace(verdict, **AUDITED))
    assert "copy" in {row.entry.name for row in site.load(copied).rows}


def test_a_reference_may_act_as_an_entry_does(copied: BoardStore, template: TableRow) -> None:
    copy_of(copied, template, with_other_ids)
    copy, honest = copied.path(WORDLE, "copy"), copied.path(WORDLE, "honest")
    for path in (copy, entries.episodes_path(copy)):
        (copied.root / path.name.replace("copy", "null")).write_bytes(path.read_bytes().replace(b'"copy"', b'"null"'))
    check_copy(copied.root / "null.json", [honest], audited=False)


@pytest.mark.parametrize(
    ("prompt", "visible"), [("Answer with <guess>word</guess>.\nBe <b>bold</b>.", True), ("", False)]
)
def test_a_system_prompt_is_on_the_page_of_its_entry(
    template: TableRow, tmp_path: Path, prompt: str, visible: bool
) -> None:
    entry = msgspec.structs.replace(template.entry, settings={"prompt": prompt} if prompt else {})
    write(page(TableRow(entry, template.verdict, 1)), tmp_path)
    text = (tmp_path / "entries/Wordle-v0/honest.html").read_text()
    assert ("<h2>System prompt</h2>" in text) == visible
    assert ("Be &lt;b&gt;bold&lt;/b&gt;." in text) == visible


def regraded(store: BoardStore, verdict: Verdict) -> None:
    store.admit(entries.read(store.path(WORDLE, "honest")), verdict, reason="a better look")


def test_a_verdict_that_replay_contradicts_is_refused(
    board_store: BoardStore, copied: BoardStore, template: TableRow
) -> None:
    better = msgspec.structs.replace(template.verdict.score, mean=0.99)
    regraded(copied, msgspec.structs.replace(template.verdict, score=better, **AUDITED))
    assert site.load(copied)  # the history holds it, so that the board alone does not tell
    with pytest.raises(SubmissionError, match=r"states score Figure\(mean=0.99.*; replay gives Figure\(mean=0.6559"):
        recheck(board_store, copied)


def test_the_mark_reproduced_needs_an_audit(board_store: BoardStore, copied: BoardStore, template: TableRow) -> None:
    regraded(copied, msgspec.structs.replace(template.verdict, mark="reproduced"))
    with pytest.raises(SubmissionError, match="states mark reproduced; replay gives verified"):
        recheck(board_store, copied)
    regraded(copied, msgspec.structs.replace(template.verdict, **AUDITED))
    assert recheck(board_store, copied) == [copied.path(WORDLE, "honest")]


def test_an_edited_history_and_links_are_refused(board_store: BoardStore, copied: BoardStore) -> None:
    link = copied.root / "verdicts" / "Wordle-v0" / "more.json"
    link.symlink_to(copied.log)
    with pytest.raises(SubmissionError, match="more.json is a link"):
        recheck(board_store, copied)
    link.unlink()
    copied.log.write_bytes(b"".join(copied.log.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(SubmissionError, match="lines may only be appended"):
        recheck(board_store, copied)


class Reader(HTMLParser):
    """Elements with their attributes, and the text of style and script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self._latest = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._latest = tag

    def handle_data(self, data: str) -> None:
        if self._latest in ("style", "script"):
            self.inside[self._latest] = self.inside.get(self._latest, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._latest = ""


def test_pages_load_nothing_and_run_only_their_own_script(pages: Path) -> None:
    paths = sorted(pages.rglob("*.html"))
    assert len(paths) == 9  # overall, tasks, methodology, history, a task, four entries
    for path in paths:
        read = Reader(path)
        (rules,) = [a["content"] or "" for tag, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"]
        assert rules.startswith("default-src 'none'; ")
        for tag in ("style", "script"):
            digest = base64.b64encode(hashlib.sha256(read.inside[tag].encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in rules
        assert [
            a for _, a in read.elements if "src" in a or "style" in a or any(name.startswith("on") for name in a)
        ] == []


def test_every_link_leads_to_a_file(pages: Path) -> None:
    for path in pages.rglob("*.html"):
        for tag, attributes in Reader(path).elements:
            link = attributes.get("href")
            if tag in ("a", "link") and link and not link.startswith(("#", "https://")):
                assert (path.parent / link.partition("#")[0]).is_file(), (path, link)


def test_figures_are_the_verdicts_not_the_claims(board_store: BoardStore, tmp_path: Path) -> None:
    loaded = site.load(board_store)
    (task,) = [task for task in loaded.tasks if task.rows]
    claim = entries.Claim(score=0.777, success=0.777)
    claims = [replace(each, entry=msgspec.structs.replace(each.entry, claim=claim)) for each in task.rows]
    write(replace(loaded, tasks=[replace(task, rows=claims)]), tmp_path / "b")
    write(loaded, tmp_path / "a")
    assert (tmp_path / "a/tasks/Wordle-v0.html").read_text() == (tmp_path / "b/tasks/Wordle-v0.html").read_text()
    assert "0.777" not in "".join(path.read_text() for path in (tmp_path / "b").rglob("*.html"))


def test_json_and_feed_agree_with_the_pages(pages: Path, board_store: BoardStore) -> None:
    state = json.loads((pages / "board.json").read_text())
    rows = {each["name"]: each for each in state["tasks"][WORDLE]}
    assert rows["oracle"]["rank"] == 1
    assert rows["honest"]["rank"] == 2
    assert rows["null"]["tied"]
    assert rows["random"]["rank"] == rows["null"]["rank"] == 3
    both = {each["name"]: each for each in state["suites"]["both-1"]}
    assert both["oracle"]["score"] is None
    assert both["oracle"]["tasks"]["lmgym/WordleCounting-v0"] is None
    assert "incomplete" in (pages / "index.html").read_text()
    feed = ElementTree.parse(pages / "feed.xml").getroot()
    items = feed.findall("channel/item")
    assert len(items) == len(history.read(board_store.log)) == 4
    assert items[0].findtext("link", "").startswith("https://example.org/board/entries/Wordle-v0/")


@pytest.fixture
def left(copied: BoardStore) -> Board:
    """A board from which one entry was removed, and another archived with its table."""
    copied.remove(WORDLE, "honest", reason="the author <b>asked</b> for it")
    old = "lmgym/Wordle-v9"
    for what in ("added", "removed"):
        history.append(copied.log, date="2026-11-21", what=what, task=old, name="past", entry="1" * 64, score=0.25)
    history.append(copied.log, date="2026-11-21", what="archived", task=old, reason="Letters are counted.")
    row = {"entry": "1" * 64, "name": "past", "title": "Past", "mark": "verified", "holds": "yes"}
    row["score"] = {"mean": 0.25, "low": 0.2, "high": 0.3}
    table = {"task": old, "next": WORDLE, "date": "2026-11-21", "reason": "x", "rows": [row]}
    (copied.root / "archive").mkdir()
    (copied.root / "archive/Wordle-v9.json").write_text(json.dumps(table))
    return site.load(copied)


def test_the_page_of_an_entry_stays_when_it_leaves(left: Board, tmp_path: Path) -> None:
    write(left, tmp_path, address="https://example.org/board/")
    removed = (tmp_path / "entries/Wordle-v0/honest.html").read_text()
    assert "This entry was removed" in removed
    assert "the author &lt;b&gt;asked&lt;/b&gt; for it" in removed
    assert "0.656" in removed
    archived = (tmp_path / "entries/Wordle-v9/past.html").read_text()
    assert "This entry was archived" in archived
    assert 'href="../../archive/Wordle-v9.html"' in archived
    test_every_link_leads_to_a_file(tmp_path)
    items = ElementTree.parse(tmp_path / "feed.xml").findall("channel/item")
    links = [item.findtext("link", "").removeprefix("https://example.org/board/") for item in items]
    assert len(links) == 8
    assert all((tmp_path / link).is_file() for link in links)
    assert links[:4] == [
        "archive/Wordle-v9.html",
        "entries/Wordle-v9/past.html",
        "entries/Wordle-v9/past.html",
        "entries/Wordle-v0/honest.html",
    ]


def test_an_entry_that_came_back_has_its_own_page(copied: BoardStore, template: TableRow, tmp_path: Path) -> None:
    files = {path: path.read_bytes() for path in copied.root.rglob("honest*") if "entries" in path.parts}
    copied.remove(WORDLE, "honest", reason="by mistake")
    for path, content in files.items():
        path.write_bytes(content)
    copied.admit(template.entry, template.verdict)
    write(site.load(copied), tmp_path)
    assert "This entry was removed" not in (tmp_path / "entries/Wordle-v0/honest.html").read_text()


def test_a_feed_without_an_address_has_no_links(board_store: BoardStore, tmp_path: Path) -> None:
    write(site.load(board_store), tmp_path)
    text = (tmp_path / "feed.xml").read_text()
    assert "<link>" not in text
    assert "built without an address" in text
    assert len(ElementTree.fromstring(text).findall("channel/item/guid")) == 4


@pytest.mark.parametrize("address", ["board", "./board", "javascript:alert(1)", 'https://a.org/"><x>', "file:///tmp"])
def test_an_invalid_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(SubmissionError, match="--address must be the URL of the site"):
        write(Board([], [], []), tmp_path, address=address)


def test_markup_of_an_entry_is_escaped(template: TableRow, tmp_path: Path) -> None:
    """Whatever the checks let through: the templates escape it."""
    planted = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    hostile: Entry = msgspec.structs.replace(
        template.entry,
        title=planted,
        authors=(planted,),
        user=planted,
        settings={planted: planted, "prompt": planted},
        policy=msgspec.structs.replace(template.entry.policy, name=planted),
        links=Links(code=f'https://example.org/"onclick="{planted}'),
    )
    verdict: Verdict = msgspec.structs.replace(template.verdict, mark="reported", reason=planted)
    board = page(TableRow(hostile, verdict, 1), summary=planted, score=planted)
    event = history.Event(number=1, previous="", date="2026-11-21", what="removed", task=planted, reason=planted)
    write(replace(board, events=[event]), tmp_path)
    for path in tmp_path.rglob("*.html"):
        read = Reader(path)
        assert [tag for tag, _ in read.elements].count("script") == 1
        assert "img" not in [tag for tag, _ in read.elements]
        assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
    ElementTree.parse(tmp_path / "feed.xml")


def test_declared_tokens_are_apart_from_verified_figures(template: TableRow, tmp_path: Path) -> None:
    declared = msgspec.structs.replace(template.verdict, tokens_in=12_345.0, tokens_out=67.0, cost=1.5)
    write(page(TableRow(template.entry, declared, 1)), tmp_path)
    verified, _, told = (tmp_path / "entries/Wordle-v0/honest.html").read_text().partition("Declared, not checked")
    assert "<dt>Tokens in</dt><dd>12.3k per episode</dd>" in told
    assert "<dt>Tokens out</dt><dd>67 per episode</dd>" in told
    assert "<dt>Ids</dt><dd>not recorded</dd>" in told
    assert not re.search("Tokens|Ids|Cost|Parameters", verified)
    table = (tmp_path / "tasks/Wordle-v0.html").read_text()
    assert [table.count(f">{name} *</th>") for name in ("Tokens in", "Tokens out", "Cost, $", "Parameters")] == [1] * 4
    assert '<td class="number" data-value="12345.0">12.3k</td>' in table
    (state,) = json.loads((tmp_path / "board.json").read_text())["tasks"][WORDLE]
    assert state["declared"] == {"tokens_in": 12345.0, "tokens_out": 67.0, "cost": 1.5, "parameters": None}
    assert "Every figure comes" not in table


METRICS = [
    {"stage": "before RL", "run_step": 0, "evaluated_success": 0.25, "evaluated_low": 0.2, "evaluated_high": 0.3},
    *({"stage": "rl", "run_step": step, "success": step / 400} for step in range(1, 401)),
    {"stage": "after RL", "run_step": 401, "evaluated_success": 0.75, "evaluated_low": 0.7, "evaluated_high": 0.8},
]


def test_a_curve_is_drawn_from_the_metrics_of_a_run(tmp_path: Path) -> None:
    curve = curves.from_metrics(map(json.dumps, METRICS), name="grpo", command="lmgym train grpo wordle")
    assert [(point.step, point.mean) for point in curve.points] == [(0, 0.25), (401, 0.75)]
    assert len(curve.played) == 200
    # the running mean of steps 1 to 10 is 5.5 / 400
    assert dict(curves.from_metrics(map(json.dumps, METRICS[:12]), name="x", command="y").played)[10] == 0.01375
    write(page(curves=[curve]), tmp_path)
    drawing = (tmp_path / "tasks/Wordle-v0.html").read_text()
    assert re.search(r'<circle class="point" cx="600.0" cy="50.0"', drawing)
    assert drawing.count("<circle") == 2


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0, 0.5, 0.4, 0.6], [0, 0.5, 0.4, 0.6]], "steps of a curve must increase"),
        ([[0, 0.5, 0.6, 0.7]], "0 <= low <= mean <= high <= 1"),
        ([], "has 0 points"),
    ],
)
def test_an_invalid_curve_is_refused(tmp_path: Path, points: list[list[float]], message: str) -> None:
    state = [dict(zip(("step", "mean", "low", "high"), point, strict=True)) for point in points]
    path = tmp_path / "curve.json"
    path.write_text(json.dumps({"name": "grpo", "command": "lmgym train grpo wordle", "points": state}))
    with pytest.raises(SubmissionError, match=message):
        curves.read_curve(path)


OFFICIAL = {
    "lmgym/ALFWorldOfficial-v0",
    "lmgym/TextNavOfficial-v0",
    "lmgym/WebShopOfficial-v0",
}  # data that is not shipped
OFFICIAL |= {"lmgym/ScreenSpot-v0", "lmgym/WebArena-v0", "lmgym/WebArenaJudged-v0"}
OFFICIAL |= {f"lmgym/Tau2{name}Official-v0" for name in ("Retail", "RetailJudged", "Airline", "Mock")}
OFFICIAL |= {"lmgym/Tau2TelecomOfficial-v0", "lmgym/Tau2TelecomSoloOfficial-v0"}
OFFICIAL |= {"lmgym/PythonMathFiles-v0", "lmgym/SWEBenchOfficial-v0"}
OFFICIAL |= {"lmgym/GUIRecordedOfficial-v0", "lmgym/OSWorldOfficial-v0"}
OFFICIAL |= {"lmgym/TextCraftOfficial-v0"}
PARTLY = {"lmgym/MiniWoB-v0"}  # some of its pages have no oracle
PARTLY |= {"lmgym/TextArena-v0"}  # null and random are there; its games have no oracle
PARTLY |= {"lmgym/Desktop-v0"}  # three players of 94 desktops take hours; not played since the families changed


def test_our_own_board_can_be_built(tmp_path: Path) -> None:
    loaded = site.load(BoardStore(ROOT / "leaderboards"))
    assert write(loaded, tmp_path)
    names = {task.id: {each.entry.name for each in task.rows} for task in loaded.tasks}
    assert names.keys() == {spec.id for spec in all_ranked()}
    lacking = {task for task, present in names.items() if not {"null", "random", "oracle"} <= present}
    assert lacking >= OFFICIAL, "take out what is no exception"
    assert lacking <= OFFICIAL | PARTLY, "lmgym board references TASK"
    assert not lacking & {task for suite, _ in loaded.suites for task in suite.tasks}


def test_schemas_are_those_of_the_records() -> None:
    for name, content in entries.schemas().items():
        assert (ROOT / "leaderboards/schema" / name).read_bytes() == content, "run `lmgym board schema`"
