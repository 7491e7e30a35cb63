"""OSWorldOfficial: task files in OSWorld's layout, its metrics with values worked by hand, episodes on a desktop."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.desktop.osworld.files import available, read, reason_to_leave_out
from lmgym.tasks.desktop.osworld.metrics import METRICS
from lmgym.tasks.desktop.osworld.metrics.colours import difference
from lmgym.tasks.desktop.osworld.metrics.rules import fits
from lmgym.tasks.desktop.osworld.session import content_inside
from tests.components import desktop

openpyxl = pytest.importorskip("openpyxl")
docx = pytest.importorskip("docx")
pptx = pytest.importorskip("pptx")

URL = "https://files.example.org/notes.txt"
DOWNLOAD = {"type": "download", "parameters": {"files": [{"url": URL, "path": "/home/user/notes.txt"}]}}
SAVE = [
    {"type": "activate_window", "parameters": {"window_name": "notes.txt", "strict": False}},
    {
        "type": "execute",
        "parameters": {"command": ["python", "-c", "import pyautogui; import time; pyautogui.hotkey('ctrl', 's');"]},
    },
    {"type": "sleep", "parameters": {"seconds": 0.5}},
    {  # more than a policy may press
        "type": "execute",
        "parameters": {"command": ["python", "-c", "import pyautogui; pyautogui.press('down', presses=30)"]},
    },
]
NOTES = {"type": "vm_file", "path": "/home/user/notes.txt", "dest": "notes.txt"}
EDIT = {
    "instruction": "Write done at the start of notes.txt.",
    "related_apps": ["os"],
    "config": [DOWNLOAD, {"type": "open", "parameters": {"path": "/home/user/notes.txt"}}],
    "evaluator": {
        "postconfig": SAVE,
        "func": ["file_contains", "compare_text_file"],
        "conj": "and",
        "result": [NOTES, NOTES],
        "expected": [
            {"type": "rule", "rules": {"expected": ["done"]}},
            {"type": "cloud_file", "path": URL + "?gold", "dest": "gold.txt"},
        ],
        "options": [{}, {"ignore_blanks": True}],
    },
}
IMPOSSIBLE = {
    "instruction": "Turn the lamp in the kitchen on.",
    "related_apps": ["os"],
    "config": [],
    "evaluator": {"func": "infeasible", "result": {}, "expected": {}},
}
FOLDER = {
    "instruction": "Make the folder reports, or the folder plans.",
    "related_apps": ["terminal"],
    "config": [
        {
            "type": "execute",
            "parameters": {"command": "mkdir -p drafts && echo ready", "stdout": "said.txt", "shell": True},
        }
    ],
    "evaluator": {
        "func": ["check_include_exclude", "exact_match"],
        "conj": "or",
        "result": [
            {"type": "vm_command_line", "command": ["ls", "/home/user"]},
            {"type": "vm_command_line", "command": "cat .bashrc | wc -l", "shell": True},
        ],
        "expected": [
            {"type": "rule", "rules": {"include": ["drafts", "reports"], "exclude": ["missing"]}},
            {"type": "rule", "rules": {"expected": "2\n"}},
        ],
    },
}


def stored(root: Path, tasks: dict[str, dict[str, Any]]) -> Path:
    """Write task files in OSWorld's layout."""
    examples = root / "evaluation_examples"
    (examples / "examples" / "os").mkdir(parents=True)
    (examples / "test_all.json").write_text(json.dumps({"os": list(tasks)}))
    for name, content in tasks.items():
        (examples / "examples" / "os" / f"{name}.json").write_text(json.dumps({"id": name, **content}))
        (root / "cache" / name).mkdir(parents=True)
    return root


@pytest.fixture(name="data")
def stored_tasks(tmp_path, monkeypatch):
    vlc = {**IMPOSSIBLE, "related_apps": ["os", "vlc"]}
    other = {**EDIT, "evaluator": {**EDIT["evaluator"], "func": ["is_vlc_playing", "compare_text_file"]}}
    absent = {**EDIT, "config": [{"type": "download", "parameters": {"files": [{"url": "x", "path": "/home/user/x"}]}}]}
    tasks = {"edit": EDIT, "impossible": IMPOSSIBLE, "folder": FOLDER, "vlc": vlc, "metric": other, "absent": absent}
    root = stored(tmp_path, tasks)
    for name in ("edit", "metric"):
        (root / "cache" / name / f"{uuid5(NAMESPACE_URL, URL)}_notes.txt").write_text("first\nsecond\n")
        (root / "cache" / name / "gold.txt").write_text("donefirst second")
    monkeypatch.setenv("OSWORLD_DATA", str(root))
    return root


def test_tasks_that_cannot_be_played_are_left_out_by_reason(data):
    chosen = available()
    assert [task.id for task in chosen.tasks] == ["edit", "impossible", "folder"]
    assert chosen.left_out == {
        "vlc": "no application vlc",
        "metric": "no metric is_vlc_playing",
        "absent": "a download is missing",
    }
    assert str(chosen).splitlines()[0] == "3 tasks"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"type": "chrome_open_tabs", "parameters": {"urls_to_open": []}}, "no step chrome_open_tabs"),
        ({"type": "open", "parameters": {"path": "/home/user/a.xcf"}}, "no application for .xcf files"),
        ({"type": "launch", "parameters": {"command": ["vlc", "a.mp4"]}}, "no program vlc"),
        ({"type": "execute", "parameters": {"command": "sudo reboot", "shell": True}}, "a command needs root"),
        (
            {
                "type": "execute",
                "parameters": {"command": ["python", "-c", "import pyautogui; print(pyautogui.size())"]},
            },
            "a step runs pyautogui code that is more than calls",
        ),
        (
            {"type": "execute", "parameters": {"command": "python3 -c \"import pyautogui; pyautogui.press('any')\""}},
            "a step presses a key that no keyboard has",
        ),
        ({"type": "launch", "parameters": {"command": ["libreoffice", "--calc"]}}, ""),
        ({"type": "execute", "parameters": {"command": ["python", "-c", "print(1)"]}}, ""),
    ],
)
def test_steps_that_cannot_be_done_are_reasons(tmp_path, step, reason):
    root = stored(tmp_path, {"one": {**IMPOSSIBLE, "config": [step]}})
    assert [reason_to_leave_out(task) for task in read(root)] == [reason]


@pytest.mark.parametrize(
    ("getter", "reason"),
    [
        ({"type": "default_video_player"}, "no getter default_video_player"),
        ({"type": "vm_file", "path": "/etc/passwd", "dest": "x"}, "a path is outside of the home folder"),
        ({"type": "vm_file", "path": "/home/user/../x", "dest": "x"}, "a path is outside of the home folder"),
        (
            {"type": "vm_file", "path": "/home/user/a.csv", "dest": "a.csv", "time_suffix": True},
            "a file is named by the time",
        ),
    ],
)
def test_getters_that_cannot_be_read_are_reasons(tmp_path, getter, reason):
    evaluator = {"func": "exact_match", "result": getter, "expected": {"type": "rule", "rules": {"expected": ""}}}
    root = stored(tmp_path, {"one": {**IMPOSSIBLE, "evaluator": evaluator}})
    assert [reason_to_leave_out(task) for task in read(root)] == [reason]


def test_a_folder_without_the_list_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(InstanceError, match="test_all.json"):
        list(read(tmp_path))
    root = stored(tmp_path, {"one": {"instruction": "x"}})
    with pytest.raises(InstanceError, match=r"one\.json"):
        list(read(root))


def test_without_data_there_are_no_tasks(monkeypatch):
    monkeypatch.delenv("OSWORLD_DATA", raising=False)
    env = build("lmgym/OSWorldOfficial-v0")
    with pytest.raises(InstanceError, match="not installed"):
        env.reset(seed=0)
    env.close()


def test_unknown_action_spaces_are_refused():
    with pytest.raises(InstanceError, match="unknown actions 'mouse'.*any, pyautogui, computer_13"):
        build("lmgym/OSWorldOfficial-v0", actions="mouse")


def test_links_out_of_the_home_folder_are_not_read(tmp_path):
    home, other = tmp_path / "home", tmp_path / "secret.txt"
    home.mkdir()
    other.write_text("secret")
    (home / "plain.txt").write_text("words")
    (home / "link.txt").symlink_to(other)
    (home / "folder").symlink_to(tmp_path)
    (home / "inner.txt").symlink_to("plain.txt")
    os.mkfifo(home / "pipe")
    contents = [content_inside(home, home / name) for name in ("plain.txt", "inner.txt")]
    assert contents == [b"words", b"words"]
    for name in ("link.txt", "folder/secret.txt", "folder", "pipe", "missing"):
        assert content_inside(home, home / name) is None


@pytest.mark.parametrize(
    ("value", "method", "ref", "expected"),
    [
        (3, "eq", 3, True),
        (3, "lt", 3, False),
        (2.05, "approx:0.1", 2, True),
        ("2.2", "approx:0.1", 2, False),
        (None, "approx:0.1", 2, False),
        ("Total: 5", "re", r"^Total: \d$", True),
        ("TOTAL", "re.I", "total", True),
        (2, "range.te", [0, 2], True),  # 0 < 2 <= 2
        (0, "range.te", [0, 2], False),
        ("'a,b'", "str_list_eq", ["a", "b"], True),
        ("b,a", "str_list_eq", ["a", "b"], False),
        ("b,a", "str_set_eq", ["a", "b"], True),
    ],
)
def test_rules_for_values(value, method, ref, expected):
    assert fits(value, {"method": method, "ref": ref}) is expected


def test_an_unknown_rule_is_an_error_of_the_task():
    with pytest.raises(InstanceError, match="unknown method"):
        fits(1, {"method": "near", "ref": 1})


def measure(name: str, *values: Any, **options: Any) -> float:
    return METRICS[name](*values, **options)


def text_file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_values():
    assert measure("exact_match", "a", {"expected": "a"}) == 1
    assert measure("exact_match", "a ", {"expected": "a"}) == 0
    assert measure("match_in_list", 3, {"expected": [1, 3]}) == 1
    assert measure("is_in_list", ["x", "y"], {"expected": "z"}) == 0
    assert measure("fuzzy_match", "abcd", {"expected": "abce"}) == 0.75  # 2 edits in 8 characters
    assert measure("literal_match", ["A", 1], ["a", "1"], type="list", ignore_case=True) == 1
    assert measure("check_include_exclude", "one two", {"include": ["one"], "exclude": ["three"]}) == 1
    assert measure("check_include_exclude", None, {"include": []}) == 0
    assert measure("check_text_enlarged", "1.25\n") == 1
    assert measure("check_text_enlarged", "many") == 0
    listing = {"children": [{"name": "b.jpg"}, {"name": "a.jpg"}]}
    assert measure("check_moved_jpgs", listing, {"expected": ["a.jpg", "b.jpg"]}) == 1
    assert measure("check_moved_jpgs", None, {"expected": ["a.jpg"]}) == 0
    assert measure("check_direct_json_object", "{'a': 1}", {"expected": {"a": 1}}) == 1
    assert measure("check_direct_json_object", {"a": "xyz"}, {"expected": {"a": "y"}, "expect_in_result": True}) == 1
    assert measure("check_direct_json_object", "no json", {"expected": {"a": 1}}) == 0


def test_text_files(tmp_path):
    one = text_file(tmp_path, "one.txt", "a  b\nc\n")
    other = text_file(tmp_path, "other.txt", "A b c")
    assert measure("compare_text_file", one, other) == 0
    assert measure("compare_text_file", one, other, ignore_blanks=True, ignore_case=True) == 1
    assert measure("compare_text_file", None, other) == 0
    assert (
        measure("diff_text_file", text_file(tmp_path, "x", "a\nb\nc\nd"), text_file(tmp_path, "y", "a\nb\nc\ne"))
        == 0.75
    )
    assert measure("file_contains", one, {"expected": ["a", "c"]}) == 1
    assert (
        measure("check_line_number", text_file(tmp_path, "log", "at 10:00:01\nno\n23:59:60 x\n"), {"expected": "2"})
        == 1
    )
    assert (
        measure("compare_result_files", text_file(tmp_path, "r", "about 3.5 m"), text_file(tmp_path, "g", "3.5")) == 1
    )
    assert measure("compare_result_files", text_file(tmp_path, "r", "3.50001"), text_file(tmp_path, "g", "3.5000")) == 1
    assert (
        measure(
            "compare_python_pure_text", text_file(tmp_path, "p", "#!/x\n\nx = 1 \n"), text_file(tmp_path, "q", "x = 1")
        )
        == 1
    )
    assert measure("check_list", one, {"expect": ["^a", "c$"], "unexpect": ["z"]}) == 1
    table = text_file(tmp_path, "t.csv", "name,age\nAda,36\n")
    assert measure("check_csv", table, {"expect": [{"name": "Ada", "age": "36"}], "unexpect": [{"age": "37"}]}) == 1
    assert measure("compare_csv", table, [one, text_file(tmp_path, "u.csv", "NAME,AGE\nada,36")], ignore_case=True) == 1
    settings = text_file(tmp_path, "s.json", '{"a": {"b": [1, 2]}, "c": true}')
    rules = {
        "expect": [{"key": ["a", "b", 1], "method": "eq", "ref": 2}],
        "unexpect": [{"key": ["d"], "method": "eq", "ref": 1}],
    }
    assert measure("check_json", settings, rules) == 1
    assert measure("check_json_settings", settings, {"expected": {"c": True}}) == 1
    assert measure("check_json_settings", settings, {"expected": {"c": False}}) == 0
    keys = text_file(tmp_path, "k.json", '// mine\n[{"key": "f2"}]')
    assert measure("check_json_keybindings", keys, {"expected": {"key": "f2"}}) == 1


def test_archives(tmp_path):
    paths = []
    for name, content in (("a.zip", b"1"), ("b.zip", b"1"), ("c.zip", b"2")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("x.bin", content)
        paths.append(str(tmp_path / name))
    assert measure("compare_zip_files", paths[0], paths[1]) == 1
    assert measure("compare_zip_files", paths[0], paths[2]) == 0
    assert measure("compare_zip_files", text_file(tmp_path, "broken.zip", "no"), paths[0]) == 0


def document(folder: Path, name: str, *lines: str) -> Any:
    written = docx.Document()
    for line in lines:
        written.add_paragraph(line)
    written.save(str(folder / name))
    return str(folder / name)


def test_documents(tmp_path):
    gold = document(tmp_path, "gold.docx", "One two", "", "Three")
    same = document(tmp_path, "same.docx", "One  two", "Three")
    assert measure("compare_docx_files", same, gold) == 1
    assert measure("compare_docx_files", same, gold, ignore_blanks=False) == 0
    assert measure("compare_docx_files", document(tmp_path, "x.docx", "three", "one two"), gold, ignore_order=True) == 0
    low = document(tmp_path, "low.docx", "one two", "", "three")
    assert measure("compare_docx_files", low, gold) == 0
    assert measure("compare_docx_files", low, gold, ignore_case=True, ignore_blanks=False) == 1
    assert 0.7 < measure("compare_docx_files", low, gold, content_only=True) < 1
    assert measure("compare_docx_files", text_file(tmp_path, "broken.docx", "no"), gold) == 0
    assert measure("compare_docx_files", None, gold) == 0
    assert measure("compare_docx_lines", document(tmp_path, "r.docx", "Three", "One two"), gold) == 1
    assert measure("evaluate_conversion", low) == 1
    assert measure("evaluate_conversion", document(tmp_path, "caps.docx", "LOUD")) == 0
    trains = document(tmp_path, "t.docx", "10:00,T1,S1,1", "10:05,T2,S1,2", "10:09,T1,S2,1")
    assert measure("check_no_duplicates", trains, document(tmp_path, "u.docx", "10:00,T1,S1,1", "10:05,T2,S1,2")) == 1
    assert measure("check_no_duplicates", trains, trains) == 0
    first = document(tmp_path, "ref.docx", "Text", "References", "Smith 2001")
    assert measure("compare_references", first, first) == 1
    assert measure("compare_references", gold, first) == 0


def test_formats_of_documents(tmp_path):
    written = docx.Document()
    for spacing in (1.0, 2.0, 1.5):
        paragraph = written.add_paragraph()
        paragraph.paragraph_format.line_spacing = spacing
        run = paragraph.add_run("words")
        run.font.name, run.italic, run.font.size = "Arial", True, docx.shared.Pt(14)
    written.paragraphs[0].alignment = docx.enum.text.WD_ALIGN_PARAGRAPH.CENTER
    written.paragraphs[-1].runs[0].font.strike = True
    path = str(tmp_path / "formats.docx")
    written.save(path)
    plain = document(tmp_path, "plain.docx", "words", "words", "words")
    assert measure("evaluate_spacing", path) == 1
    assert measure("compare_font_names", path, {"font_name": "Arial"}) == 1
    assert measure("is_first_line_centered", path) == 1
    assert measure("check_italic_font_size_14", path, plain) == 1
    assert measure("evaluate_strike_through_last_paragraph", path, plain) == 1
    assert measure("contains_page_break", path) == 0
    for name in ("evaluate_spacing", "is_first_line_centered", "has_page_numbers_in_footers"):
        assert measure(name, plain) == 0
    assert measure("evaluate_strike_through_last_paragraph", plain, path) == 0


@pytest.mark.parametrize(
    ("one", "other", "expected"),  # of the supplement of Sharma, Wu and Dalal 2005
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0000),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.4900, -0.0010), (50.0, -2.4900, 0.0011), 7.2195),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_of_colours(one, other, expected):
    assert difference(one, other) == pytest.approx(expected, abs=1e-4)


def test_coloured_words_in_tables(tmp_path):
    written = docx.Document()
    cell = written.add_table(1, 1).cell(0, 0)
    for word, colour in (("apple", (255, 0, 0)), ("pear", (0, 0, 254))):
        cell.paragraphs[0].add_run(word).font.color.rgb = docx.shared.RGBColor(*colour)
    path = str(tmp_path / "words.docx")
    written.save(path)
    assert measure("evaluate_colored_words_in_tables", path, path) == 1
    cell.paragraphs[0].runs[1].font.color.rgb = docx.shared.RGBColor(255, 0, 0)
    written.save(path)
    assert measure("evaluate_colored_words_in_tables", path, path) == 0


def workbook(folder: Path, name: str, rows: list[list[Any]]) -> str:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(folder / name)
    return str(folder / name)


def test_sheets(tmp_path):
    rows = [["name", "price"], ["pen", 1.5], ["ink", 4.25]]
    gold = workbook(tmp_path, "gold.xlsx", rows)
    near = workbook(tmp_path, "near.xlsx", [*rows[:2], ["ink", 4.25001]])
    data = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}
    assert measure("compare_table", near, gold, rules=[data]) == 1
    assert measure("compare_table", near, gold, rules=[{**data, "precision": 6}]) == 0
    assert measure("compare_table", near, gold, rules=[{**data, "sheet_idx0": "RNMissing"}]) == 0
    assert measure("compare_table", gold, gold, rules=[{"type": "sheet_name"}, data]) == 1
    cell = {"type": "check_cell", "sheet_idx": 0, "coordinate": "B3"}
    assert (
        measure("compare_table", near, rules=[{**cell, "props": {"value": {"method": "approx:0.01", "ref": 4.25}}}])
        == 1
    )
    assert measure("compare_table", near, rules=[{**cell, "props": {"font_bold": {"method": "eq", "ref": True}}}]) == 0
    fuzzy = {"type": "sheet_fuzzy", "sheet_idx0": "RI0", "sheet_idx1": "EI0"}
    part = {"range": ["A1:A3"], "type": "exact_match", "ignore_case": True}
    loud = workbook(tmp_path, "loud.xlsx", [["NAME"], ["PEN"], ["INK"]])
    assert measure("compare_table", loud, gold, rules=[{**fuzzy, "rules": [part]}]) == 1
    assert measure("compare_table", loud, gold, rules=[{**fuzzy, "rules": [{**part, "ignore_case": False}]}]) == 0
    with pytest.raises(InstanceError, match="unknown rule"):
        measure("compare_table", gold, gold, rules=[{"type": "colour"}])
    assert measure("compare_table", None, gold, rules=[data]) == 0


def test_charts_styles_and_views_of_sheets(tmp_path):
    paths = []
    for bold in (True, False):
        book = openpyxl.Workbook()
        sheet = book.active
        for row in ([1, 2], [3, 4], [5, 6]):
            sheet.append(row)
        sheet["A1"].font = openpyxl.styles.Font(bold=bold)
        sheet.freeze_panes = "B2" if bold else None
        sheet.sheet_view.zoomScale = 150
        chart = openpyxl.chart.BarChart()
        chart.add_data(openpyxl.chart.Reference(sheet, min_col=1 if bold else 2, min_row=1, max_row=3))
        chart.title = "Sales"
        sheet.add_chart(chart, "D1")
        sheet.auto_filter.ref = "A1:B3"
        paths.append(str(tmp_path / f"{bold}.xlsx"))
        book.save(paths[-1])
    both = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
    for rule in (
        {"type": "style", "props": ["font_bold", "number_format", "bgcolor", "merge"]},
        {"type": "freeze"},
        {"type": "chart", "chart_props": ["title", "type", "direction"]},
    ):
        assert measure("compare_table", paths[0], paths[0], rules=[rule | both]) == 1
        assert measure("compare_table", paths[0], paths[1], rules=[rule | both]) == 0
    for rule in (
        {"type": "filter"},
        {"type": "row_props", "props": ["hidden"]},
        {"type": "sparkline"},
        {"type": "pivot_table"},
    ):
        assert measure("compare_table", paths[0], paths[1], rules=[rule | both]) == 1
    assert measure("compare_table", paths[0], rules=[{"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": 150}]) == 1


def slides(folder: Path, name: str, change: Any = lambda deck: None) -> str:
    deck = pptx.Presentation()
    for title, body in (("One", "first"), ("Two", "second")):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
    change(deck)
    deck.save(str(folder / name))
    return str(folder / name)


def body_run(deck: Any) -> Any:
    return deck.slides[0].placeholders[1].text_frame.paragraphs[0].runs[0]


@pytest.mark.parametrize(
    ("change", "examined"),
    [
        (lambda deck: setattr(body_run(deck).font, "bold", True), "font_bold"),
        (lambda deck: setattr(body_run(deck).font, "size", 400_000), "font_size"),
        (lambda deck: setattr(body_run(deck).font, "underline", True), "font_underline"),
        (lambda deck: body_run(deck).font._element.set("strike", "sngStrike"), "strike_through"),
        (lambda deck: setattr(deck.slides[0].placeholders[1].text_frame.paragraphs[0], "level", 1), "indent"),
        (lambda deck: setattr(deck.slides[0].placeholders[1], "left", 0), "shape"),
        (lambda deck: setattr(deck.slides[0].notes_slide.notes_text_frame, "text", "say this"), "note"),
    ],
)
def test_slides_differ_in_what_is_examined(tmp_path, change, examined):
    gold, other = slides(tmp_path, "gold.pptx"), slides(tmp_path, "other.pptx", change)
    assert measure("compare_pptx_files", gold, gold) == 1
    assert measure("compare_pptx_files", other, gold) == 0
    off = {f"examine_{examined}": False}
    if examined == "indent":  # a bullet's level is examined twice
        off["examine_bullets"] = False
    assert measure("compare_pptx_files", other, gold, **off) == 1


def test_slides_and_settings(tmp_path):
    def red(deck: Any) -> None:
        for slide in deck.slides:
            slide.background.fill.solid()
            slide.background.fill.fore_color.rgb = pptx.dml.color.RGBColor(255, 0, 0)

    gold, coloured = slides(tmp_path, "gold.pptx"), slides(tmp_path, "red.pptx", red)
    distance = "evaluate_presentation_fill_to_rgb_distance"
    assert measure(distance, coloured, {"rgb": [255, 0, 0]}) == 1
    assert measure(distance, coloured, {"rgb": [0, 0, 0]}) == pytest.approx(1 - 1 / 3**0.5)
    assert measure(distance, gold, {"rgb": [255, 0, 0]}) == 0
    assert measure("check_slide_orientation_Portrait", gold) == 0
    assert measure("check_transition", gold, {"slide_idx": 0, "transition_type": "dissolve"}) == 0
    xml = (
        '<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
        '<item oor:path="/org.openoffice.Office.Common/Save/Document">'
        '<prop oor:name="AutoSaveTimeIntervall"><value>3</value></prop></item></oor:items>'
    )
    path = text_file(tmp_path, "registry.xcu", xml)
    assert measure("check_auto_saving_time", path, {"minutes": 3}) == 1
    assert measure("check_auto_saving_time", path, {"minutes": 5}) == 0
    assert measure("find_default_font", path, {"font_name": "Arial"}) == 0
    assert measure("check_left_panel", '<desktop-frame><document-frame name="Slides View"/></desktop-frame>') == 1


def played(title: str, replies: list[str], **options: Any) -> float:
    env = build("lmgym/OSWorldOfficial-v0", **options)
    trace = play(env, given(replies), index=env.unwrapped.index_of(title))
    env.close()
    assert trace.terminated
    return float(trace.infos[-1]["score"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_tasks_are_played_and_judged_on_the_desktop(data):
    desktop()
    typed = ["import pyautogui; pyautogui.hotkey('ctrl', 'home')", "pyautogui.typewrite('done')", "DONE"]
    assert played("edit", typed, actions="pyautogui") == 1
    assert played("edit", ["DONE"]) == 0
    assert played("edit", ["FAIL"]) == 0
    assert played("impossible", ["FAIL"]) == 1
    assert played("impossible", ["DONE"]) == 0
    assert played("folder", ["DONE"]) == 1  # by the second metric alone


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_action_of_another_space_is_refused(data):
    desktop()
    env = build("lmgym/OSWorldOfficial-v0", actions="computer_13", observe="none")
    observation, _ = env.reset(seed=0, options={"index": 1})
    assert '"action_type": "CLICK"' in observation["text"]
    assert "click(" not in observation["text"]
    *_, info = env.step("pyautogui.click(3, 4)")
    assert not info["valid"]
    *_, info = env.step('{"action_type": "MOVE_TO", "parameters": {"x": 100, "y": 200}}')
    assert info["valid"]
    env.close()
