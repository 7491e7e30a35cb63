"""Office files and archives: written before an episode, read after it. What cannot be read counts as empty."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lmgym.tasks.desktop.reading import read_plain

Writer = Callable[[Path], object]
Content = TypeVar("Content")
LARGEST = 20 << 20  # bytes of a file, unpacked
MOST_CELLS = 1 << 20  # of a sheet, empty ones before the last included
Rows = Sequence[Sequence[Any]]


def workbook(*sheets: tuple[str, Rows]) -> Writer:
    """Return a function that writes a spreadsheet of named sheets."""

    def write(path: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets:
            page = book.create_sheet(name)
            for row in rows:
                page.append(list(row))
        book.save(path)

    return write


def charted(title: str, rows: Rows) -> Writer:
    """Return a function that writes a spreadsheet of one sheet: names, their numbers, and a bar chart of them."""

    def write(path: Path) -> None:
        import openpyxl
        from openpyxl.chart import BarChart, Reference

        book = openpyxl.Workbook()
        page = book.active
        page.title = title
        for row in rows:
            page.append(list(row))
        chart = BarChart()
        chart.title, chart.width, chart.height = title, 10, 6
        chart.add_data(Reference(page, min_col=2, min_row=1, max_row=len(rows)))
        chart.set_categories(Reference(page, min_col=1, min_row=1, max_row=len(rows)))
        page.add_chart(chart, "D2")
        book.save(path)

    return write


def picture(width: int, height: int, color: str) -> Writer:
    """Return a function that writes a PNG picture of a disc on white; sizes are in pixels."""

    def write(path: Path) -> None:
        from PIL import Image, ImageDraw

        image = Image.new("RGB", (width, height), "white")
        ImageDraw.Draw(image).ellipse((width // 4, height // 4, 3 * width // 4, 3 * height // 4), fill=color)
        image.save(path, "PNG")

    return write


def document(*paragraphs: str) -> Writer:
    """Return a function that writes a text document of plain paragraphs."""

    def write(path: Path) -> None:
        import docx

        text = docx.Document()
        for paragraph in paragraphs:
            text.add_paragraph(paragraph)
        text.save(str(path))

    return write


def deck(*slides: tuple[str, str]) -> Writer:
    """Return a function that writes slides of a title and a body each."""

    def write(path: Path) -> None:
        import pptx

        show = pptx.Presentation()
        for title, body in slides:
            slide = show.slides.add_slide(show.slide_layouts[1])
            slide.shapes.title.text = title
            slide.placeholders[1].text = body
        show.save(str(path))

    return write


def pdf(*lines: str) -> Writer:
    """Return a function that writes one page of lines; they are plain ASCII without brackets."""
    drawing = "BT /F1 16 Tf 60 760 Td 24 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
    objects = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R/Resources<</Font<</F1 4 0 R>>>>>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Length {len(drawing)}>>\nstream\n{drawing}\nendstream",
    )
    file, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(file))
        file += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    file += f"xref\n0 6\n0000000000 65535 f \n{table}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n{len(file)}\n%%EOF\n"
    return partial(Path.write_text, data=file, encoding="ascii")


def read_cells(path: Path, sheet: str = "", *, formulas: bool = False) -> dict[str, Any]:
    """Return the values, or the formulas, of a sheet's cells that are not empty; of the first sheet by default."""

    def read(file: io.BytesIO) -> dict[str, Any]:
        book = _book(file, formulas=formulas)
        page = book[sheet] if sheet else book.worksheets[0]
        return {cell.coordinate: cell.value for row in page.iter_rows() for cell in row if cell.value is not None}

    return _safely(path, read, {})


def read_book(path: Path, look: Callable[[Any], Content], otherwise: Content) -> Content:
    """Return what `look` finds in an openpyxl workbook."""
    return _safely(path, lambda file: look(_book(file, formulas=True)), otherwise)


def read_document(path: Path, look: Callable[[Any], Content], otherwise: Content) -> Content:
    """Return what `look` finds in a python-docx document."""

    def read(file: io.BytesIO) -> Content:
        import docx

        return look(docx.Document(file))

    return _safely(path, read, otherwise)


def read_paragraphs(path: Path) -> list[tuple[str, str]]:
    """Return the style and the text of each paragraph of a document that has text."""
    return read_document(path, lambda text: [(p.style.name, p.text) for p in text.paragraphs if p.text.strip()], [])


def read_charts(path: Path) -> list[list[float]]:
    """Return the numbers of each chart of a document, in the order that they are drawn in."""

    def read(file: io.BytesIO) -> list[list[float]]:
        import docx
        from lxml import etree

        parts = docx.Document(file).part.package.iter_parts()
        charts = [etree.fromstring(part.blob) for part in parts if part.partname.startswith("/word/charts/chart")]
        return [[float(value.text) for value in chart.iterfind(".//{*}val//{*}v")] for chart in charts]

    return _safely(path, read, [])


def read_slides(path: Path) -> list[list[str]]:
    """Return the texts of each slide, title first."""

    def read(file: io.BytesIO) -> list[list[str]]:
        import pptx

        return [
            [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame and shape.text_frame.text]
            for slide in pptx.Presentation(file).slides
        ]

    return _safely(path, read, [])


def read_pdf(path: Path) -> list[str]:
    """Return the text of each page of a PDF file."""

    def read(file: io.BytesIO) -> list[str]:
        from pypdf import PdfReader

        return [page.extract_text() for page in PdfReader(file).pages]

    return _safely(path, read, [], zipped=False)


def read_picture(path: Path) -> tuple[str, tuple[int, int], bytes] | None:
    """Return the mode, the size and the pixels of a picture; None if it is none."""

    def read(file: io.BytesIO) -> tuple[str, tuple[int, int], bytes]:
        from PIL import Image

        with Image.open(file) as image:
            if image.width * image.height > LARGEST:
                raise ValueError("the picture is too large to be compared")
            return image.mode, image.size, image.tobytes()

    return _safely(path, read, None, zipped=False)


def read_archive(path: Path) -> list[str]:
    """Return the names of the files in a .tar.gz archive."""

    def read(file: io.BytesIO) -> list[str]:
        unpacked = gzip.GzipFile(fileobj=file).read(LARGEST)
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as packed:
            return [member.name for member in packed.getmembers() if member.isfile()]

    return _safely(path, read, [], zipped=False)


def _book(file: io.BytesIO, *, formulas: bool) -> Any:
    import openpyxl

    book = openpyxl.load_workbook(file, data_only=not formulas)
    if any(page.max_row * page.max_column > MOST_CELLS for page in book.worksheets):
        raise ValueError("a sheet is too large to be read cell by cell")
    return book


def _safely(path: Path, read: Callable[[io.BytesIO], Content], otherwise: Content, *, zipped: bool = True) -> Content:
    """Return what `read` finds in a file; `otherwise` if it is missing, too large, no plain file or damaged."""
    content = read_plain(path, LARGEST)
    if content is None:
        return otherwise
    try:
        if zipped:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                if sum(part.file_size for part in packed.infolist()) > LARGEST:
                    return otherwise
        return read(io.BytesIO(content))
    except Exception:  # noqa: BLE001  # the libraries raise errors of many kinds on damaged files, which policies write
        return otherwise
