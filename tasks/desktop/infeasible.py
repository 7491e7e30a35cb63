"""Goals that cannot be reached: the file, the part or the function that they ask for is missing."""

from __future__ import annotations

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.goals import FILES, TERMINAL, Builder, DesktopGoal, editor, note, office, words
from lmgym.tasks.desktop.moves import Move, key, shell
from lmgym.tasks.desktop.office import Writer, deck, document, pdf, workbook

Rng = np.random.Generator


def _impossible(text: str, files: dict[str, str | Writer], launches: tuple[Launch, ...], *look: Move) -> DesktopGoal:
    return DesktopGoal(text=text, files=files, launches=launches, plan=look, feasible=False)


def edit_missing_file(rng: Rng) -> DesktopGoal:
    """Ask for a change of a file that does not exist."""
    name, missing, *line = words(rng, 4)
    text = f'The home folder has a file {missing}.txt. Change its second line to "{" ".join(line)}".'
    return _impossible(text, {f"{name}.txt": note(rng, 3)}, TERMINAL, *shell("ls"))


def copy_missing_file(rng: Rng) -> DesktopGoal:
    """Ask for a copy of a file that does not exist."""
    missing, *names = words(rng, 4)
    text = f"Copy the picture {missing}.png of the home folder into the folder Documents."
    return _impossible(text, {f"{name}.txt": name for name in names}, FILES, key("home"))


def delete_missing_line(rng: Rng) -> DesktopGoal:
    """Ask for a line that a short text does not have."""
    file, line = f"{words(rng, 1)[0]}.txt", int(rng.integers(20, 60))
    return _impossible(f"Delete line {line} of {file}.", {file: note(rng, 4)}, editor(file), key("ctrl+end"))


def record_macro(rng: Rng) -> DesktopGoal:
    """Ask the text editor for a function that it does not have."""
    file = f"{words(rng, 1)[0]}.txt"
    text = f"Let the text editor record {file} as a macro with its macro recorder, and name the macro {file[:-4]}."
    return _impossible(text, {file: note(rng, 4)}, editor(file), key("alt+t"), key("escape"))


def download_page(rng: Rng) -> DesktopGoal:
    """Ask for a download where there is no network."""
    name = words(rng, 1)[0]
    text = f"In the terminal, download https://{name}.example.com/ into page.html."
    return _impossible(text, {}, TERMINAL, *shell("ls /sys/class/net /usr/bin/wget /usr/bin/curl"))


def become_root(rng: Rng) -> DesktopGoal:
    """Ask for rights that the user does not have."""
    name = words(rng, 1)[0]
    return _impossible(f"Make a folder {name} in /usr/share.", {}, TERMINAL, *shell(f"mkdir /usr/share/{name}"))


def edit_in_reader(rng: Rng) -> DesktopGoal:
    """Ask the PDF reader to change a document's words."""
    name, old, new = words(rng, 3)
    file = f"{name}.pdf"
    text = f'In the PDF reader, replace the word "{old}" in {file} by "{new}" and save the file.'
    return _impossible(text, {file: pdf(f"about {old}")}, (Launch("evince", (file,), file),), key("ctrl+home"))


def delete_missing_sheet(rng: Rng) -> DesktopGoal:
    """Ask for the deletion of a sheet that a workbook does not have."""
    *names, missing = (word.title() for word in words(rng, 3))
    book = workbook(*((name, [("Name", "Price")]) for name in names))
    text = f"Delete the sheet {missing} of stock.xlsx, which is open, and save the file."
    return _impossible(text, {"stock.xlsx": book}, office("stock.xlsx"), key("ctrl+end"))


def delete_missing_table(rng: Rng) -> DesktopGoal:
    """Ask for the deletion of a table that a document does not have."""
    lines = [" ".join(words(rng, 4)).capitalize() for _ in range(4)]
    text = "Delete the second table of letter.docx, keep its paragraphs, and save the file."
    return _impossible(text, {"letter.docx": document(*lines)}, office("letter.docx"), key("ctrl+end"))


def delete_missing_slide(rng: Rng) -> DesktopGoal:
    """Ask for the deletion of a slide that a short presentation does not have."""
    drawn, number = words(rng, 6), int(rng.integers(8, 20))
    slides = [(title.title(), body.capitalize()) for title, body in zip(drawn[::2], drawn[1::2], strict=True)]
    text = f"Delete slide {number} of talk.pptx and save the presentation."
    return _impossible(text, {"talk.pptx": deck(*slides)}, office("talk.pptx"), key("ctrl+end"))


FAMILIES: dict[Builder, int] = dict.fromkeys(
    (
        *(edit_missing_file, copy_missing_file, delete_missing_line, record_macro, download_page),
        *(become_root, edit_in_reader, delete_missing_sheet, delete_missing_table, delete_missing_slide),
    ),
    1,
)
