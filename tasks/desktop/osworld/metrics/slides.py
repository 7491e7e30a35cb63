"""OSWorld's metrics of slides, and of Impress's and LibreOffice's settings."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from lmgym.tasks.desktop.osworld.metrics.rules import opened, registry_values

TOLERANCE = 0.005  # relative difference of two lengths that count as equal
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
PICTURE, TABLE, FREEFORM = 13, 19, 5  # kinds of shapes
SOLID, BACKGROUND = 1, 5  # kinds of fills
HALF_INCH = 457_200  # in English Metric Units, as all lengths here
LOW = 3_600_000  # top of what stands at the bottom of a slide
RIGHT = 4_320_000  # left edge of what stands at the right
HIGH = 1_980_000  # top of what stands at the top
MOVED_TITLE = "Product Comparison"  # names that OSWorld's tasks leave out of a comparison
MOVED_TEXT = "Elaborate on what you want to discuss."
STRONG = 50  # by which a colour's component is above the others
EXAMINED = (  # on unless a task turns them off
    *("number_of_slides", "shape", "text", "indent", "font_name", "font_size", "font_bold", "font_italic"),
    *("color_rgb", "font_underline", "strike_through", "alignment", "bullets", "background_color", "note"),
)


def _deck(path: str | None) -> Any:
    from pptx import Presentation

    return opened(Presentation, path)


def compare_pptx_files(
    result: str | None, expected: str | None, *, approximately_tolerance: float = TOLERANCE, **options: bool
) -> float:
    """Compare two presentations in all that `examine_...` does not turn off."""
    own, gold = _deck(result), _deck(expected)
    if own is None or gold is None:
        return 0.0
    examined = {name: options.get(f"examine_{name}", True) for name in EXAMINED} | {
        name.removeprefix("examine_"): value for name, value in options.items() if name.startswith("examine_")
    }
    if examined["number_of_slides"] and len(own.slides) != len(gold.slides):
        return 0.0
    for number, (one, other) in enumerate(zip(own.slides, gold.slides, strict=False), 1):
        comparison = _SlideComparison(number, examined, approximately_tolerance)
        if not comparison.slides(one, other):
            return 0.0
    return 1.0


class _SlideComparison:
    """The comparison of two slides; `examined` says of what."""

    def __init__(self, number: int, examined: Mapping[str, bool], tolerance: float) -> None:
        self.number, self.examined, self.tolerance = number, examined, tolerance

    def on(self, name: str) -> bool:
        """Return True if a property is examined; those outside of EXAMINED are off unless a task turns them on."""
        return self.examined.get(name, False)

    def slides(self, one: Any, other: Any) -> bool:
        """Return True if two slides agree."""
        if self.on("background_color") and _background(one) != _background(other):
            return False
        if self.on("note") and _notes(one) != _notes(other):
            return False
        if len(one.shapes) != len(other.shapes):
            return False
        if not all(self.shapes(a, b) for a, b in zip(one.shapes, other.shapes, strict=True)):
            return False
        texts = list(_text_shapes(one.shapes)), list(_text_shapes(other.shapes))
        if len(texts[0]) != len(texts[1]):
            return False
        if self.on("bullets") and not _same_bullets(one, other):
            return False
        return not self.on("alignment") or all(self.aligned(a, b) for a, b in zip(*texts, strict=True))

    def shapes(self, one: Any, other: Any) -> bool:
        """Return True if two shapes agree in place and content."""
        if not self.placed(one, other):
            return False
        if TABLE == one.shape_type == other.shape_type and not self.tables(one.table, other.table):
            return False
        if not (one.has_text_frame and other.has_text_frame):
            return True
        if self.on("text") and one.text_frame.text.strip() != other.text_frame.text.strip():
            return False
        frames = one.text_frame.paragraphs, other.text_frame.paragraphs
        return all(self.paragraphs(a, b) for a, b in zip(*frames, strict=False))

    def placed(self, one: Any, other: Any) -> bool:
        """Return True if two shapes stand where they should; options of single tasks ask for a move instead."""
        same = all(self.near(getattr(one, side), getattr(other, side)) for side in ("left", "top", "width", "height"))
        texts = one.has_text_frame and other.has_text_frame
        text = one.text_frame.text if texts and one.text_frame.text == other.text_frame.text else None
        kinds = one.shape_type, other.shape_type
        lowered = one.top > other.top and one.top >= LOW
        checks: dict[str, Callable[[], bool]] = {
            "title_bottom_position": lambda: (text != MOVED_TITLE or lowered) if text is not None else same,
            "table_bottom_position": lambda: lowered if self.number == 3 and kinds == (TABLE, TABLE) else same,
            "right_position": lambda: (
                self.number != 2
                or one.has_text_frame
                or other.has_text_frame
                or (one.left > other.left and one.left >= RIGHT)
            ),
            "top_position": lambda: (
                self.number != 2 or kinds != (PICTURE, PICTURE) or (one.top < other.top and one.top <= HIGH)
            ),
            "shape_for_shift_size": lambda: same or text == MOVED_TEXT,
            "shape": lambda: same,
            "image_size": lambda: (
                self.near(one.width, other.width) and self.near(one.height, other.height)
                if kinds == (PICTURE, PICTURE)
                else same
            ),
            "modify_height": lambda: (
                self.near(one.height, other.height)
                if not (one.has_text_frame or other.has_text_frame) or kinds == (FREEFORM, FREEFORM)
                else same
            ),
        }
        return all(check() for name, check in checks.items() if self.on(name))

    def near(self, one: int | None, other: int | None) -> bool:
        """Return True if two lengths are about equal."""
        return one == other or (
            bool(one) and bool(other) and math.isclose(one or 0, other or 0, rel_tol=self.tolerance)
        )

    def tables(self, one: Any, other: Any) -> bool:
        """Return True if the runs of two tables agree in colour and emphasis."""
        cells = ([cell for row in table.rows for cell in row.cells] for table in (one, other))
        for a, b in zip(*cells, strict=False):
            for p, q in zip(a.text_frame.paragraphs, b.text_frame.paragraphs, strict=False):
                for run, gold in zip(p.runs, q.runs, strict=False):
                    if self.on("color_rgb") and not _same_colour(run, gold):
                        return False
                    if any(bool(getattr(run.font, x)) != bool(getattr(gold.font, x)) for x in ("bold", "italic")):
                        return False
                    if not _same_underline(run, gold):
                        return False
        return True

    def paragraphs(self, one: Any, other: Any) -> bool:
        """Return True if two paragraphs agree."""
        if self.on("alignment") and _alignment(one) != _alignment(other):
            return False
        if self.on("text") and one.text != other.text:
            return False
        if self.on("indent") and one.level != other.level:
            return False
        return all(self.runs(a, b) for a, b in zip(one.runs, other.runs, strict=False))

    def runs(self, one: Any, other: Any) -> bool:
        """Return True if two runs have the same font."""
        checks: dict[str, Callable[[], bool]] = {
            "font_name": lambda: one.font.name == other.font.name,
            "font_size": lambda: one.font.size == other.font.size,
            "font_bold": lambda: bool(one.font.bold) == bool(other.font.bold),
            "font_italic": lambda: bool(one.font.italic) == bool(other.font.italic),
            "color_rgb": lambda: _same_colour(one, other),
            "font_underline": lambda: _same_underline(one, other),
            "strike_through": lambda: _strike(one) == _strike(other),
        }
        return all(check() for name, check in checks.items() if self.on(name))

    def aligned(self, one: Any, other: Any) -> bool:
        """Return True if two text shapes, of groups too, have the same text and alignments."""
        if self.on("text") and one.text_frame.text.strip() != other.text_frame.text.strip():
            return False
        frames = one.text_frame.paragraphs, other.text_frame.paragraphs
        return all(_alignment(a) == _alignment(b) for a, b in zip(*frames, strict=False))


def _background(slide: Any) -> Any:
    """Return the colour of a slide's background, or of its master's; None if it is no plain colour."""
    fill = slide.background.fill
    if fill.type == BACKGROUND:
        fill = slide.slide_layout.slide_master.background.fill
    return _rgb(fill.fore_color) if fill.type == SOLID else None


def _rgb(colour: Any) -> Any:
    return getattr(colour, "rgb", None)


def _notes(slide: Any) -> str:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    return frame.text.strip() if frame is not None else ""


def _text_shapes(shapes: Any) -> Iterator[Any]:
    for shape in shapes:
        if shape.has_text_frame:
            yield shape
        yield from _text_shapes(getattr(shape, "shapes", ()))


def _alignment(paragraph: Any) -> int:
    from pptx.enum.text import PP_ALIGN

    return int(PP_ALIGN.LEFT if paragraph.alignment is None else paragraph.alignment)


def _same_colour(one: Any, other: Any) -> bool:
    colours = one.font.color, other.font.color
    return not all(hasattr(colour, "rgb") for colour in colours) or colours[0].rgb == colours[1].rgb


def _same_underline(one: Any, other: Any) -> bool:
    """Return True if underlines agree; no underline and one that is turned off are the same."""
    pair = one.font.underline, other.font.underline
    return pair[0] == pair[1] or (None in pair and True not in pair)


def _strike(run: Any) -> str:
    return str(run.font._element.attrib.get("strike", "noStrike"))


def _same_bullets(one: Any, other: Any) -> bool:
    return _bullets(one) == _bullets(other)


def _bullets(slide: Any) -> list[tuple[str, str, str]]:
    """Return level, bullet and text of all paragraphs with text."""
    bullets = []
    for paragraph in slide._element.iter(f"{DRAWING}p"):
        words = "".join(part.text or "" for part in paragraph.iter(f"{DRAWING}t"))
        about = paragraph.find(f"{DRAWING}pPr")
        sign = None if about is None else about.find(f"{DRAWING}buChar")
        if words.strip():
            level = "" if about is None else about.get("lvl") or "0"
            bullets.append((level or "0", "" if sign is None else sign.get("char"), words))
    return bullets


def check_image_stretch_and_center(result: str | None, expected: str | None) -> float:
    """Check that the first picture of the original fills the first slide."""
    own, gold = _deck(result), _deck(expected)
    if own is None or gold is None or not own.slides or not gold.slides:
        return 0.0
    originals = [shape for shape in gold.slides[0].shapes if shape.shape_type == PICTURE]
    pictures = [shape for shape in own.slides[0].shapes if shape.shape_type == PICTURE]
    same = [each for each in pictures if originals and each.image.blob == originals[0].image.blob]
    if not same:
        return 0.0
    shape, width, height = same[-1], gold.slide_width, gold.slide_height
    differences = (
        shape.width - width,
        shape.height - height,
        shape.left - (width - shape.width) / 2,
        shape.top - (height - shape.height) / 2,
    )
    return float(all(abs(each) <= HALF_INCH for each in differences))


def check_slide_numbers_color(result: str | None) -> float:
    """Check that the numbers of slides are red in the master, if a slide has one."""
    deck = _deck(result)
    if deck is None or not any(each.text_frame.text.isdigit() for s in deck.slides for each in _text_shapes(s.shapes)):
        return 0.0
    for master in deck.slide_masters:
        for place in master.placeholders:
            if place.has_text_frame and place.text_frame.text == "<number>":
                return float(_rgb(place.text_frame.paragraphs[0].font.color) == (255, 0, 0))
    return 0.0


def check_strikethrough(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check that the first runs of paragraphs, given by their numbers, are struck through."""
    deck = _deck(result)
    if deck is None:
        return 0.0
    try:
        runs = [
            deck.slides[slide].shapes[shape].text_frame.paragraphs[paragraph].runs[0]
            for slide in expected["slide_index_s"]
            for shape in expected["shape_index_s"]
            for paragraph in expected["paragraph_index_s"]
        ]
    except (IndexError, AttributeError):
        return 0.0
    return float(all("strike" in run.font._element.attrib for run in runs))


def check_slide_orientation_Portrait(result: str | None) -> float:  # OSWorld's name
    """Check that slides are higher than wide."""
    deck = _deck(result)
    return float(deck is not None and deck.slide_width < deck.slide_height)


def evaluate_presentation_fill_to_rgb_distance(result: str | None, expected: Mapping[str, Any]) -> float:
    """Return 1 minus the mean distance of the slides' backgrounds to a colour, as a share of the largest."""
    deck = _deck(result)
    if deck is None or not len(deck.slides):
        return 0.0

    def distance(slide: Any) -> float:
        colour = _background(slide)
        if colour is None or tuple(colour) == tuple(expected.get("original_rgb") or ()):
            return 1.0
        return math.dist(tuple(colour), expected["rgb"]) / math.dist((0, 0, 0), (255, 255, 255))

    return 1 - sum(distance(slide) for slide in deck.slides) / len(deck.slides)


def check_transition(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check a slide's transition."""
    root = opened(lambda path: _xml(path, f"ppt/slides/slide{expected['slide_idx'] + 1}.xml"), result)
    if root is None:
        return 0.0
    transition = next(root.iter(f"{SLIDES}transition"), None)
    wanted = f"{SLIDES}{expected['transition_type']}"
    return float(transition is not None and next(transition.iter(wanted), None) is not None)


def check_page_number_colors(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check the last but one colour of the master, which is that of slide numbers in OSWorld's files."""
    root = opened(lambda path: _xml(path, "ppt/slideMasters/slideMaster1.xml"), result)
    if root is None:
        return 0.0
    values = [each for fill in root.iter(f"{DRAWING}solidFill") for each in fill.iter(f"{DRAWING}srgbClr")]
    if len(values) < 2:
        return 0.0
    text = values[-2].get("val")
    parts = dict(zip(("red", "green", "blue"), (int(text[i : i + 2], 16) for i in (0, 2, 4)), strict=True))
    if expected["color"] == "black":
        return float(max(parts.values()) < STRONG)
    main = parts.pop(expected["color"])
    return float(main > max(parts.values()) + STRONG)


def _xml(path: str, name: str) -> Any:
    from lxml import etree

    with zipfile.ZipFile(path) as archive:
        return etree.fromstring(archive.read(name))


def check_left_panel(result: str | None) -> float:
    """Look for Impress's panel of slides in the accessibility tree."""
    from lxml import etree

    root = etree.fromstring((result or "<desktop-frame/>").encode())
    return float(any(each.get("name") == "Slides View" for each in root.iter("document-frame")))


def check_presenter_console_disable(result: str | None) -> float:
    """Check that the presenter console is off."""
    values = registry_values(result, "/org.openoffice.Office.Impress/Misc/Start", "EnablePresenterScreen")
    return float(values[:1] == ["false"])


def check_auto_saving_time(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check the minutes between automatic savings."""
    values = registry_values(result, "/org.openoffice.Office.Common/Save/Document", "AutoSaveTimeIntervall")
    return float(values[-1:] == [str(expected["minutes"])])


def check_libre_locale(result: str | None, expected: Mapping[str, Any]) -> float:
    """Check LibreOffice's locale against patterns."""
    values = registry_values(result, "/org.openoffice.Setup/L10N", "ooSetupSystemLocale")
    return float(any(fnmatch(value, pattern) for value in values[-1:] for pattern in expected["locale_set"]))


METRICS = (
    *(compare_pptx_files, check_image_stretch_and_center, check_slide_numbers_color, check_strikethrough),
    *(check_slide_orientation_Portrait, evaluate_presentation_fill_to_rgb_distance, check_transition),
    *(check_page_number_colors, check_left_panel, check_presenter_console_disable, check_auto_saving_time),
    *(check_libre_locale,),
)
