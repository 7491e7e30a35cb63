"""A task's own figures, from the evaluation to the page: stated by the entry, reproduced by replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmgym.board import entry as entries
from lmgym.board.replay import replay
from lmgym.errors import SubmissionError
from lmgym.evaluation import report as reports
from lmgym.rollout.env_handle import EnvHandle, Setting
from tests.board.conftest import Commands
from tests.board.forge import Forger
from tests.board.test_audit_settings import DUELS, plugin

__all__ = ["plugin"]


@pytest.fixture
def entered(lmgym: Commands) -> Path:
    """The entry of a policy that always adds 1, in both seats: 1, 2, 3, 4, 5, and the agent wins with its third."""
    lmgym("eval", DUELS, "--model", "null", "--seat", "black=null", "--standard", "--quiet", "--out", "run")
    lmgym("submit", "run", "--author", "A. Uthor", "--name", "honest")
    (path,) = entries.all_paths(Path("leaderboards/entries"))
    return path


def test_figures_reach_the_report_the_verdict_and_the_board(entered: Path, lmgym: Commands) -> None:
    assert reports.statistics(reports.read(Path("run")))["figures"]["sum"]["mean"] == 5.0
    assert "sum" in Path("run/report.md").read_text()
    assert [episode.figures for episode in entries.read_episodes(entered)] == [{"sum": 5.0, "won": 1.0}] * 5
    lmgym("verify", str(entered), "--workers", "1")
    lmgym("board", "grade")
    lmgym("board", "--out", "site")
    ((row,),) = json.loads(Path("site/board.json").read_bytes())["tasks"].values()
    assert row["figures"]["sum"] == {"mean": 5.0, "low": None, "high": None}  # equal values: no interval
    assert row["figures"]["won"]["mean"] == 1.0
    assert 0.4 < row["figures"]["won"]["low"] < row["figures"]["won"]["high"] == 1.0  # five of five
    page = Path("site/entries/test--FewDuels-v0/honest.html").read_text()
    assert "<dt>Sum</dt><dd>5</dd>" in page


@pytest.mark.parametrize(
    ("figures", "message"),
    [({"sum": 6.0}, "states sum 6.0; replay gives 5.0"), ({"luck": 1.0}, "states luck 1.0; replay gives none")],
)
def test_a_forged_figure_is_refused(entered: Path, tmp_path: Path, figures: dict[str, float], message: str) -> None:
    def change(entry: object, episodes: list[dict[str, object]]) -> None:
        episodes[0]["figures"] = figures

    path = Forger(entered, tmp_path / "forged").change(change)
    env = EnvHandle(Setting(task=DUELS, split="test", options={}, seats=frozenset({"agent", "black"})))
    first, *rest = entries.read_episodes(path)
    with pytest.raises(SubmissionError, match=message):
        replay(env, first, exact=True)
    assert all(replay(env, episode, exact=True)["figures"] == {"sum": 5.0, "won": 1.0} for episode in rest)


def test_figures_left_out_of_an_entry_come_from_the_replay(entered: Path) -> None:
    """Entries handed in before the task had figures stay valid."""
    episode = next(entries.read_episodes(entered))
    bare = entries.as_record({**entries.plain(episode), "figures": {}}, entries.RecordedEpisode, "episode")
    assert b"figures" not in entries.canonical(bare)
    env = EnvHandle(Setting(task=DUELS, split="test", options={}, seats=frozenset({"agent", "black"})))
    assert replay(env, bare, exact=True)["figures"] == {"sum": 5.0, "won": 1.0}
