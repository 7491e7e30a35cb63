"""The front page: best verified systems as bars, sparse rows folded, older suites behind a link, replays of entries."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from lmgym.board.entry import RecordedEpisode, RecordedTurn
from lmgym.board.site import FAMILIES, Board, TaskPage, action, write
from lmgym.board.tables import Overall, Suite, TableRow, ranked
from lmgym.evaluation.protocol import ranked as all_tasks
from tests.board.test_site import board_store, pages, row, template

__all__ = ["board_store", "pages", "template"]
WORDLE = "lmgym/Wordle-v0"


def page(rows: list[TableRow], family: str = "wordle") -> TaskPage:
    return TaskPage(id=WORDLE, name="Wordle-v0", family=family, summary="Find a word.", score="", rows=rows)


def test_a_card_has_the_three_best_verified_systems_on_the_scale_of_the_references(
    template: TableRow, tmp_path: Path
) -> None:
    scores = {"a": 38, "b": 30, "c": 20, "d": 10, "claimed": 40, "random": 4, "oracle": 40}
    rows = []
    for name, solved in scores.items():
        kind = name if name in ("random", "oracle") else "model"
        policy = msgspec.structs.replace(template.entry.policy, kind=kind)
        rows.append(row(template, name, [1.0] * solved + [0.0] * (40 - solved), policy=policy))
    rows[4] = TableRow(rows[4].entry, msgspec.structs.replace(rows[4].verdict, mark="reported"))
    task = page(ranked(rows))
    assert [each.entry.name for each in task.leaders] == ["a", "b", "c"]
    assert [each.entry.name for each in task.scale] == ["random", "oracle"]
    write(Board([task], [], []), tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert re.findall(r'class="fill" width="([\d.]+)%"', text) == ["95.00", "75.00", "50.00"]
    assert text.count('class="mark verified"') == 3
    assert 'class="random" x1="10.00%"' in text
    assert "all 5 systems" in text
    # Wilson's interval of 20 in 40 is 0.5 -+ 0.148
    assert 'class="whisker" x1="35.20%" x2="64.80%"' in text


def test_a_task_without_a_verified_system_is_folded(template: TableRow, tmp_path: Path) -> None:
    oracle = msgspec.structs.replace(template.entry.policy, kind="oracle")
    write(Board([page(ranked([row(template, "oracle", [1.0] * 4, policy=oracle)]))], [], []), tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert "<summary>1 task without a verified system</summary>" in text
    assert 'class="card"' not in text


def test_every_family_of_tasks_has_a_section() -> None:
    folders = {folder for members in FAMILIES.values() for folder in members}
    assert {spec.name for spec in all_tasks()} == folders


def test_an_unknown_family_is_among_the_other_tasks(template: TableRow) -> None:
    board = Board([page([template], family="elsewhere")], [], [])
    assert [title for title, _ in board.families] == ["Other tasks"]


def test_only_the_latest_suite_is_on_the_front_page_and_sparse_rows_are_folded(tmp_path: Path) -> None:
    ids = ("a/1", "a/2", "a/3")

    def system(name: str, played: int) -> Overall:
        return Overall(name, name, {task: 1.0 if n < played else None for n, task in enumerate(ids)}, {"A": None}, None)

    suites = [(Suite("core", version, {"A": ids}), [system("most", 2), system("few", 1)]) for version in (9, 10)]
    write(Board([], suites, []), tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert 'id="core-10"' in text
    assert 'id="core-9"' not in text
    assert 'href="suites/core-9.html"' in text
    assert (tmp_path / "suites/core-9.html").exists()
    table, _, folded = text.partition("<details><summary>1 system with entries on fewer than half")
    assert 'most <span class="faint">most' in table
    assert 'few <span class="faint">few' in folded
    assert 'few <span class="faint">few' not in table


def test_an_entry_shows_recorded_episodes_as_text(template: TableRow, tmp_path: Path) -> None:
    turn = RecordedTurn("0" * 16, "<script>alert(1)</script>\ncrane\u202e", 1.0)
    episode = RecordedEpisode(3, 1, 0, (turn,), None, 1.0, True, True, False, "done")
    entry_row = TableRow(template.entry, template.verdict, rank=1, replays=(episode,))
    write(Board([page([entry_row])], [], []), tmp_path)
    text = (tmp_path / entry_row.link).read_text()
    assert "Instance 3, try 1: success, score 1.000, 1 turn<" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\ncrane\\u202e" in text
    assert f'href="{entry_row.link}#replay"' in (tmp_path / "index.html").read_text()


def test_long_actions_are_cut() -> None:
    assert action("a" * 1200) == "a" * 1000 + "\n… 200 more characters"


@pytest.mark.parametrize("name", ["index.html", "entries/Wordle-v0/honest.html"])
def test_the_loaded_board_links_to_replays(pages: Path, name: str) -> None:
    assert ("#replay" if name == "index.html" else 'id="replay"') in (pages / name).read_text()
