"""OSWorld's metrics of text documents: DOCX and ODT files, and Writer's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.tasks.desktop.osworld.metrics.rules import opened, registry_values, similarity

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def docx_file(path: str | None) -> Any:
    """Return a DOCX file; None if it is missing or broken."""
    from docx import Document

    return opened(Document, path)


def two_docx(one: str | None, other: str | None) -> tuple[Any, Any] | None:
    """Return two documents; None if either cannot be read."""
    documents = docx_file(one), docx_file(other)
    return None if documents[0] is None or documents[1] is None else documents


def _texts(path: str | None) -> list[str] | None:
    """Return the paragraphs of a DOCX or ODT file; None if it is neither."""
    if path is not None and path.endswith(".docx"):
        document = docx_file(path)
        return None if document is None else [paragraph.text for paragraph in document.paragraphs]
    if path is not None and path.endswith(".odt"):
        return opened(_odt_texts, path)
    return None


def _odt_texts(path: str) -> list[str]:
    from odf import teletype, text
    from odf.opendocument import load

    return [teletype.extractText(paragraph) for paragraph in load(path).getElementsByType(text.P)]


def compare_docx_files(
    result: str | None,
    expected: str | None,
    *,
    ignore_blanks: bool = True,
    ignore_case: bool = False,
    ignore_order: bool = False,
    content_only: bool = False,
    fuzzy_match: bool = False,
    delete_empty_lines: bool = False,
) -> float:
    """Compare the paragraphs of two documents of one kind."""
    if result is None or expected is None or result.rpartition(".")[2] != expected.rpartition(".")[2]:
        return 0.0
    pair = _texts(result), _texts(expected)
    if pair[0] is None or pair[1] is None:
        return 0.0
    sides = [list(pair[0]), list(pair[1])]
    if ignore_order:
        sides = [sorted(side) for side in sides]
    if delete_empty_lines:
        sides = [[line for line in side if line.strip()] for side in sides]
    if ignore_case:
        sides = [[line.lower() for line in side] for side in sides]
    if content_only or ignore_blanks:
        one, other = (" ".join("\n".join(side).split()) for side in sides)
        return similarity(one, other) if content_only or fuzzy_match else float(one == other)
    if len(sides[0]) != len(sides[1]):
        return 0.0
    if not fuzzy_match:
        return float(sides[0] == sides[1])
    return _mean([similarity(one, other) for one, other in zip(*sides, strict=True)], empty=1.0)


def _mean(scores: Sequence[float], *, empty: float) -> float:
    return sum(scores) / len(scores) if scores else empty


def compare_docx_files_and_ignore_new_lines(
    result: str | None, expected: str | None, *, ignore_blanks: bool = True
) -> float:
    """Compare the paragraphs of two DOCX files that are not empty."""
    pair = two_docx(result, expected)
    if pair is None:
        return 0.0
    one, other = ([each.text for each in document.paragraphs if each.text] for document in pair)
    if ignore_blanks:
        return float(" ".join("\n".join(one).split()) == " ".join("\n".join(other).split()))
    return float(one == other)


def compare_init_lines(result: str | None, expected: str | None) -> float:
    """Compare the paragraphs that both documents have from the start on."""
    pair = two_docx(result, expected)
    if pair is None:
        return 0.0
    return float(all(a.text == b.text for a, b in zip(pair[0].paragraphs, pair[1].paragraphs, strict=False)))


def compare_docx_tables(result: str | None, expected: str | None) -> float:
    """Compare the texts of all cells of all tables."""
    pair = two_docx(result, expected)

    def cells(document: Any) -> list[list[list[str]]]:
        return [[[cell.text.strip() for cell in row.cells] for row in table.rows] for table in document.tables]

    return float(pair is not None and cells(pair[0]) == cells(pair[1]))


def compare_docx_images(result: str | None, expected: str | None) -> float:
    """Compare the pixels of all pictures."""
    pair = two_docx(result, expected)
    return float(pair is not None and _pictures(pair[0]) == _pictures(pair[1]))


def _pictures(document: Any) -> list[bytes]:
    import io

    from PIL import Image

    related = [each for each in document.part.rels.values() if "image" in each.reltype]
    return [Image.open(io.BytesIO(each.target_part.blob)).tobytes() for each in related]


def compare_contains_image(result: str | None, expected: str | None) -> float:
    """Check that pictures stand in the same runs."""
    pair = two_docx(result, expected)
    if pair is None:
        return 0.0
    for one, other in zip(pair[0].paragraphs, pair[1].paragraphs, strict=False):
        for a, b in zip(one.runs, other.runs, strict=False):
            if ("graphicData" in a._element.xml) != ("graphicData" in b._element.xml):
                return 0.0
    return 1.0


def compare_line_spacing(result: str | None, expected: str | None) -> float:
    """Compare texts and line spacings."""
    pair = two_docx(result, expected)
    if pair is None or not compare_docx_files(result, expected):
        return 0.0
    one, other = ([each.paragraph_format.line_spacing for each in document.paragraphs] for document in pair)
    return float(one == other)


def compare_insert_equation(result: str | None, expected: str | None) -> float:
    """Check that the texts agree and an embedded object stands where one is expected."""
    pair = two_docx(result, expected)
    if pair is None or not compare_docx_files(result, expected):
        return 0.0
    return float(any(a.element.xpath(".//w:object") and b.element.xpath(".//w:object") for a, b in _run_pairs(pair)))


def compare_subscript_contains(result: str | None, expected: str | None) -> float:
    """Check that a subscript stands where one is expected."""
    pair = two_docx(result, expected)
    return float(pair is not None and any(a.font.subscript and b.font.subscript for a, b in _run_pairs(pair)))


def _run_pairs(pair: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    return [
        runs
        for one, other in zip(pair[0].paragraphs, pair[1].paragraphs, strict=False)
        for runs in zip(one.runs, other.runs, strict=False)
    ]


def _runs(document: Any) -> list[Any]:
    return [run for paragraph in document.paragraphs for run in paragraph.runs]


def compare_font_names(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check the font of all runs."""
    document = docx_file(result)
    return float(document is not None and all(run.font.name == expected["font_name"] for run in _runs(document)))


def has_page_numbers_in_footers(result: str | None) -> float:
    """Check that the footer of every section begins with a line that has a digit."""
    document = docx_file(result)
    if document is None:
        return 0.0
    lines = [section.footer.paragraphs[:1] for section in document.sections]
    return float(all(line and any(letter.isdigit() for letter in line[0].text) for line in lines))


def is_first_line_centered(result: str | None) -> float:
    """Check that the first paragraph is centred."""
    from docx.enum.text import WD_PARAGRAPH_ALIGNMENT

    document = docx_file(result)
    if document is None or not document.paragraphs:
        return 0.0
    return float(document.paragraphs[0].paragraph_format.alignment == WD_PARAGRAPH_ALIGNMENT.CENTER)


def check_tabstops(
    result: str | None, expected: str | None, *, word_number_split_by_tabstop: int | None = None, index: int = 0
) -> float:
    """Return 1 minus the mean distance of tab stops, as a share of the text's width."""
    pair = two_docx(result, expected)
    if pair is None:
        return 0.0
    own, gold = ([each for each in document.paragraphs if each.text.strip()] for document in pair)
    if len(own) != len(gold) or not own:
        return 0.0
    if word_number_split_by_tabstop is not None:
        for paragraph in own:
            parts = paragraph.text.split("\t")
            if index >= len(parts) or len(parts[index].split()) != word_number_split_by_tabstop:
                return 0.0
    section = pair[1].sections[0]
    width = section.page_width - section.left_margin - section.right_margin
    distance = 0.0
    for one, other in zip(own, gold, strict=True):
        stops = _tab_stops(one), _tab_stops(other)
        if [stop.alignment for stop in stops[0]] != [stop.alignment for stop in stops[1]]:
            return 0.0
        distance += sum(abs(a.position - b.position) for a, b in zip(*stops, strict=True)) / width
    return max(0.0, 1 - distance / len(own))


def _tab_stops(paragraph: Any) -> list[Any]:
    """Return the tab stops of a paragraph that somebody has set."""
    from docx.enum.text import WD_TAB_ALIGNMENT as Tab

    stops = paragraph.paragraph_format.tab_stops
    return [each for each in stops if each.alignment != Tab.CLEAR and (each.alignment, each.position) != (Tab.LEFT, 0)]


def check_highlighted_words(result: str | None, expected: str | None) -> float:
    """Check that an ODT file has the expected text and no span on yellow ground."""
    if not compare_docx_files(result, expected):
        return 0.0
    yellow = opened(_has_yellow_span, result)
    return float(yellow is False)


def _has_yellow_span(path: str) -> bool:
    from odf import text
    from odf.opendocument import load

    document = load(path)
    used = {span.getAttribute("stylename") for span in document.getElementsByType(text.Span)}
    for style in document.automaticstyles.childNodes:
        if style.getAttribute("name") in used:
            for part in style.childNodes:
                if "#ffff00" in {value for (_, name), value in part.attributes.items() if name == "background-color"}:
                    return True
    return False


def compare_highlighted_text(result: str | None, expected: str | None) -> float:
    """Compare the sets of highlighted texts."""
    pair = two_docx(result, expected)

    def highlighted(document: Any) -> set[str | None]:
        chosen = set()
        for run in document.element.body.iter(f"{WORD}r"):
            marks = [mark for mark in run.iter(f"{WORD}highlight") if mark.get(f"{WORD}val") != "none"]
            words = next(run.iter(f"{WORD}t"), None)
            if marks and words is not None:
                chosen.add(words.text)
        return chosen

    return float(pair is not None and highlighted(pair[0]) == highlighted(pair[1]))


def evaluate_strike_through_last_paragraph(result: str | None, expected: str | None) -> float:
    """Check that the texts agree and the last paragraph is struck through."""
    document = docx_file(result)
    if document is None or not document.paragraphs or not compare_docx_files(result, expected):
        return 0.0
    return float(all(run.font.strike for run in document.paragraphs[-1].runs))


def evaluate_conversion(result: str | None) -> float:
    """Check that no run is in capitals, tables included."""
    document = docx_file(result)
    if document is None:
        return 0.0
    cells = [cell for table in document.tables for row in table.rows for cell in row.cells]
    runs = [*_runs(document), *(run for cell in cells for run in _runs(cell))]
    return float(not any(run.text.isupper() for run in runs))


def evaluate_spacing(result: str | None) -> float:
    """Check that the first three paragraphs have the line spacings 1, 2 and 1.5."""
    document = docx_file(result)
    if document is None:
        return 0.0
    return float([each.paragraph_format.line_spacing for each in document.paragraphs[:3]] == [1.0, 2.0, 1.5])


def check_italic_font_size_14(result: str | None, expected: str | None) -> float:
    """Check that the texts agree and all italics have 14 points."""
    document = docx_file(result)
    if document is None or not compare_docx_files(result, expected):
        return 0.0
    sizes = [run.font.size for run in _runs(document) if run.italic]
    return float(all(size is not None and size.pt == 14 for size in sizes))


def contains_page_break(result: str | None, expected: Mapping[str, Any] | None = None) -> float:
    """Check that there are page breaks, or as many as expected."""
    document = docx_file(result)
    if document is None:
        return 0.0
    breaks = [each for run in _runs(document) for each in run.element.iter(f"{WORD}br")]
    count = sum(each.get(f"{WORD}type") == "page" for each in breaks)
    wanted = (expected or {}).get("page_break_count")
    return float(count > 0 and wanted in (None, count))


def find_default_font(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check Writer's default font in LibreOffice's settings."""
    values = registry_values(result, "/org.openoffice.Office.Writer/DefaultFont", "Standard")
    return float(values[-1:] == [expected["font_name"]])


METRICS = (
    *(compare_docx_files, compare_docx_files_and_ignore_new_lines, compare_init_lines),
    *(compare_docx_tables, compare_docx_images, compare_contains_image, compare_line_spacing),
    *(compare_insert_equation, compare_subscript_contains, compare_font_names, has_page_numbers_in_footers),
    *(is_first_line_centered, check_tabstops, check_highlighted_words, compare_highlighted_text),
    *(evaluate_strike_through_last_paragraph, evaluate_conversion, evaluate_spacing, check_italic_font_size_14),
    *(contains_page_break, find_default_font),
)
