"""Files of a home folder that a policy left: damaged, endless, without rights, or too deep."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from lmgym.backends.desktop import home as template
from lmgym.backends.desktop.folders import remove_tree
from lmgym.backends.desktop.quota import exceeds
from lmgym.tasks.desktop import office
from lmgym.tasks.desktop.goals import content, snapshot
from lmgym.tasks.desktop.osworld.metrics.rules import opened
from lmgym.tasks.desktop.osworld.session import _tree

DEEP = 1_500  # nested folders: more than Python's recursion takes
READERS = {
    "xlsx": (office.workbook(("Stock", [("a", 1), ("b", 2)])), lambda path: office.read_cells(path, "Stock")),
    "docx": (office.document("one", "two"), office.read_paragraphs),
    "pptx": (office.deck(("title", "body")), office.read_slides),
    "pdf": (office.pdf("one", "two"), office.read_pdf),
}


def nested(folder: Path, levels: int) -> None:
    """Make nested folders; in the last, a file."""
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=inside)
        below = os.open("d", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = below
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
    os.close(inside)


@pytest.mark.parametrize("ending", READERS)
def test_damaged_files_count_as_empty(tmp_path: Path, ending: str) -> None:
    write, read = READERS[ending]
    path = tmp_path / f"a.{ending}"
    write(path)
    whole = path.read_bytes()
    assert read(path)
    rng = random.Random(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        read(path)
    path.write_bytes(whole[: len(whole) // 2])
    assert not read(path)
    for reader in (lambda name: read(Path(name)), lambda name: 1 // 0):
        assert not opened(reader, str(path))


def test_a_file_whose_packed_bytes_are_broken_counts_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    READERS["xlsx"][0](path)
    damaged = bytearray(path.read_bytes())
    start = damaged.find(b"xl/worksheets/sheet1.xml") + 32
    damaged[start : start + 40] = b"\xff" * 40
    path.write_bytes(damaged)
    assert office.read_cells(path) == {}


def test_a_sheet_with_a_cell_in_its_last_corner_is_not_read_cell_by_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    office.workbook(("Stock", [("a",)]))(path)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(
        b"</sheetData>", b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    )
    with zipfile.ZipFile(path, "w") as packed:
        for name, part in parts.items():
            packed.writestr(name, part)
    assert office.read_cells(path) == {}


def test_pipes_in_the_place_of_files_end_no_goal(tmp_path: Path) -> None:
    script = f"""
import os
from pathlib import Path
import numpy as np
from lmgym.tasks.desktop.families import FAMILIES
from lmgym.tasks.desktop.goals import snapshot
for name, build in FAMILIES.items():
    goal, home = build(np.random.default_rng(0)), Path({str(tmp_path)!r}) / name
    home.mkdir()
    goal.furnish(home)
    for path in [home / change for change in goal.changes]:
        if not path.is_dir() and path.parent.is_dir():
            path.unlink(missing_ok=True)
            os.mkfifo(path)
    goal.reached(home)
    snapshot(home)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_an_archive_that_unpacks_without_end_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    path.write_bytes(gzip.compress(packed.getvalue()))
    assert office.read_archive(path) == ["empty"]
    path.write_bytes(gzip.compress(b"\0" * (office.LARGEST + 1)) * 3)
    assert office.read_archive(path) == []
    path.write_bytes(b"no archive")
    assert office.read_archive(path) == []


def test_a_text_is_read_from_plain_files_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", office.LARGEST + 1)
    os.mkfifo(tmp_path / "pipe")
    assert content(tmp_path / "a") == "one\ntwo"
    assert [content(tmp_path / name) for name in ("link", "large", "pipe", "none", ".")] == [None] * 5


def test_a_snapshot_names_what_it_cannot_read(tmp_path: Path) -> None:
    nested(tmp_path, DEEP)
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 40)
    (tmp_path / ".hidden").touch()
    os.mkfifo(tmp_path / "pipe")
    digests = snapshot(tmp_path)
    assert digests.pop("large") == "unreadable"
    assert digests.pop("pipe") == "special"
    assert len(digests) == DEEP + 1
    nested(tmp_path / Path(*["d"] * DEEP), DEEP)
    assert "unreadable" in snapshot(tmp_path).values()
    assert exceeds([tmp_path])
    assert _tree(tmp_path)["children"]
    remove_tree(tmp_path)  # pytest cannot


def test_a_home_folder_is_restored_from_any_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, home = tmp_path / "template", tmp_path / "home"
    (kept / "Documents").mkdir(parents=True)
    monkeypatch.setattr(template, "template_folder", lambda: kept)
    home.mkdir()
    nested(home, 2 * DEEP)
    for name, mode in (("none", 0), ("read", 0o500)):
        (home / name / "inner").mkdir(parents=True)
        (home / name / "inner" / "x").touch()
        (home / name / "inner").chmod(mode)
        (home / name).chmod(mode)
    home.chmod(0o500)
    template.fill_home(home)
    assert [path.name for path in home.rglob("*")] == ["Documents"]
    remove_tree(home)
    assert not home.exists()


def test_folders_without_rights_are_no_error_for_another_user() -> None:
    script = """
import os, shutil, tempfile
from pathlib import Path
from lmgym.backends.desktop import home as template
from lmgym.tasks.desktop.goals import content, snapshot
if os.geteuid() == 0:
    os.setuid(65534)
folder = Path(tempfile.mkdtemp(dir="/tmp"))
kept, home = (folder / name for name in ("template", "home"))
template.template_folder = lambda: kept
kept.mkdir()
for mode in (0, 0o500):
    (home / "a" / "b").mkdir(parents=True)
    (home / "a" / "b" / "x").touch()
    (home / "a" / "b").chmod(mode)
    (home / "a").chmod(mode)
    assert mode or snapshot(home)["a/"] == "unreadable"
    assert content(home / "a" / "b" / "x") == (None if mode == 0 else "")
    template.fill_home(home)
    assert not list(home.iterdir())
shutil.rmtree(folder)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
