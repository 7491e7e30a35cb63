from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lmgym.errors import InstanceError
from lmgym.evaluation import pages
from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import Report
from lmgym.visible import visible
from tests.evaluation.reports import outcome, report

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[click](javascript:alert(1))",
    "![x](https://example.org/a.png)",
    "https://example.org www.example.org a@example.org",
    "| cell |\n# heading\n\n* item",
    "`code` **bold** ~~gone~~ &lt; &#60;script&#62;",
    "\x1b[31mred\x1b]8;;https://example.org\x07\u202egnp\u2066\x00\ud800",
    "$x$ {{ y }} {% z %} </title></style><style>*{}",
]


class Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.names.append(tag)
        self.attributes += attrs


def hostile(text: str) -> Report:
    made = report([[1], [0]], policy=text, task=text, options={text: text}, stopped=text, identity=text, planned=3)
    return replace(made, outcomes=(*made.outcomes, outcome(2, voided=True, stop=text)))


def test_every_planned_episode_is_in_one_count():
    made = report([[1, 0], [1, 1]], planned=9)
    made = replace(made, outcomes=(*made.outcomes, outcome(2, voided=True, stop="void", cost=0.5)))
    found = reports.statistics(made)
    assert found["episodes"] == {"planned": 9, "played": 4, "voided": 1, "missing": 4}
    assert found["stops"] == {"done": 3, "max_turns": 1, "void": 1}
    assert found["success"]["mean"] == 0.75
    text = pages.as_markdown(reports.page(made, found))
    assert "4 of 9 episodes are missing" in text
    assert "1 episodes failed at every attempt" in text


def test_miniwob_reports_raw_rewards_above_0_besides_success():
    scores = (1.0, 0.1, 0.0, 0.5)  # raw rewards of 1, 0.1, 0 or less, and 0.5
    episodes = tuple(outcome(index, success=score == 1.0, score=score) for index, score in enumerate(scores))
    voided = outcome(9, voided=True, score=0.0)
    for task in ("lmgym/MiniWoB-v0", "MiniWoB-find-greatest-v0"):
        made = replace(report([], task=task), outcomes=(*episodes, voided))
        found = reports.statistics(made)
        assert (found["success"]["mean"], found["partial"]["mean"]) == (0.25, 0.75)
        assert reports.rows(found)[:2] == [
            ["success", "0.250", reports.span(found["success"]), found["success"]["method"]],
            ["raw reward above 0", "0.750", reports.span(found["partial"]), found["partial"]["method"]],
        ]
        assert "| raw reward above 0 | 0.750 |" in pages.as_markdown(reports.page(made, found))
    assert "partial" not in reports.statistics(replace(made, task="lmgym/Wordle-v0"))


def test_success_by_turn_budget_by_hand_and_thinned_where_it_is_long():
    made = report([[1], [1], [0], [1]])
    turns = (1, 3, 4, 4)
    made = replace(
        made,
        outcomes=tuple(
            replace(one, turns=count, solved_at=count if one.success else None)
            for one, count in zip(made.outcomes, turns, strict=True)
        ),
    )
    points = reports.statistics(made)["success_by_turns"]
    assert [(point["turns"], point["mean"]) for point in points] == [(1, 0.25), (2, 0.25), (3, 0.5), (4, 0.75)]
    made = replace(report([[1]]), outcomes=(outcome(0, success=True, turns=1000), outcome(1, turns=1000)))
    points = reports.statistics(made)["success_by_turns"]
    assert len(points) == 40
    assert (points[-1]["turns"], points[-1]["mean"]) == (1000, 0.5)


def test_an_unknown_cost_is_no_zero_and_invalid_actions_are_a_share_of_turns():
    made = replace(report([[1]]), outcomes=(outcome(0, cost=0.25), outcome(1)))
    assert reports.statistics(made)["cost"] == {"total": None, "known": 0.25, "episodes_unknown": 1}
    assert "unknown for 1 of 2 episodes" in pages.as_markdown(reports.page(made, reports.statistics(made)))
    known = replace(made, outcomes=(outcome(0, cost=0.25), outcome(1, voided=True, cost=0.5)))
    assert reports.statistics(known)["cost"]["total"] == 0.75
    made = replace(report([[1]]), outcomes=(outcome(0, turns=2, invalid=2), outcome(1, turns=8, invalid=1)))
    assert reports.statistics(made)["invalid"]["mean"] == pytest.approx(0.3)


def test_a_report_comes_back_from_its_file_with_its_statistics_also_without_a_result(tmp_path):
    made = report([[1, 0, 1], [0, 0, 0]], options={"highest": 8})
    written = reports.write(tmp_path, made)
    assert reports.read(tmp_path) == made
    assert json.loads((tmp_path / "report.json").read_text())["statistics"] == written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "report.md"]
    for made in (report([]), replace(report([]), outcomes=(outcome(0, voided=True),))):
        found = reports.write(tmp_path, made)
        assert found["success"]["mean"] is None
        assert reports.read(tmp_path) == made


def test_runs_on_several_tasks_are_read_from_one_folder(tmp_path):
    for task in ("a", "b"):
        reports.write(tmp_path / task, report([[1]], task=task))
    assert [found.task for found in reports.read_all(tmp_path)] == ["a", "b"]
    with pytest.raises(InstanceError, match=r"has a report\.json"):
        reports.read_all(tmp_path / "none")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"task": 1}', '{"outcomes": [{"nothing": 1}]}', "[" * 5000])
def test_a_damaged_report_is_refused(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(InstanceError, match="is not a report"):
        reports.read(tmp_path)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_makes_no_element_of_a_page(text):
    plain, planted = (
        Elements(pages.as_html(reports.page(made, reports.statistics(made)))) for made in (hostile("x"), hostile(text))
    )
    assert planted.names == plain.names
    assert [name for name, _ in planted.attributes] == [name for name, _ in plain.attributes]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text_in_markdown(text):
    def elements(words: str) -> list[str]:
        made = hostile(words)
        page = pages.as_markdown(reports.page(made, reports.statistics(made)))
        return Elements(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(page)).names

    assert elements(text) == elements("x")


@given(st.text())
def test_any_text_is_one_line_that_a_terminal_may_show(text):
    shown = visible(text)
    assert shown.isprintable()
    assert "\n" not in pages.in_markdown(text)
    assert Elements(pages.in_html(text)).names == []


def test_a_page_loads_and_runs_nothing():
    page = pages.as_html(reports.page(report([[1]]), reports.statistics(report([[1]]))))
    assert "default-src 'none'" in page
    assert {"script", "link", "img", "iframe", "a"} & set(Elements(page).names) == set()


def test_a_gain_pairs_episodes_that_neither_report_voided_by_success_or_score():
    before, after = report([[0], [0], [1]]), report([[1], [0], [1]])
    broken = replace(after, outcomes=(*after.outcomes[:2], replace(after.outcomes[2], voided=True, success=False)))
    assert broken.since(before).mean == pytest.approx(0.5)
    assert after.since(before).mean == pytest.approx(1 / 3)
    before, after = report([[0], [0]]), report([[0], [1]])
    partial = replace(before, outcomes=tuple(replace(outcome, score=0.5) for outcome in before.outcomes))
    assert after.since(partial, of="score").mean == pytest.approx((-0.5 + 0.5) / 2)
    assert after.since(partial).mean == pytest.approx(1 / 2)


def test_a_tasks_own_figures_are_averaged_over_the_instances_that_have_them():
    figures = [({"errors": 2.0, "kept": 1.0}), ({"errors": 4.0, "kept": 1.0}), ({"errors": 9.0, "kept": 0.0}), {}]
    outcomes = tuple(outcome(n // 2, n % 2, figures=each) for n, each in enumerate(figures))
    made = replace(report([]), outcomes=outcomes)
    averaged = reports.statistics(made)["figures"]
    # instance 0: (2 + 4) / 2, instance 1: its only value 9; the mean over instances is 6
    assert (averaged["errors"]["mean"], averaged["errors"]["episodes"]) == (6.0, 3)
    assert averaged["errors"]["method"] == "bootstrap"
    assert averaged["errors"]["low"] < 6.0 < averaged["errors"]["high"]
    assert (averaged["kept"]["mean"], averaged["kept"]["method"]) == (0.5, "clustered wilson")
    assert "| errors | 6.000 |" in pages.as_markdown(reports.page(made, reports.statistics(made)))


def test_a_figure_survives_the_report_file(tmp_path):
    made = replace(report([]), outcomes=(outcome(0, figures={"errors": 2.0}),))
    written = reports.write(tmp_path, made)
    assert reports.read(tmp_path).outcomes[0].figures == {"errors": 2.0}
    assert written["figures"]["errors"] == {
        "mean": 2.0,
        "low": None,
        "high": None,
        "method": "no variance",
        "episodes": 1,
    }
