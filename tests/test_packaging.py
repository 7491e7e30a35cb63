"""The wheel holds the files of the tree and works wherever it is installed."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.interop.venvs import NEEDS

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "lmgym": "lmgym",
    "tasks": "lmgym/tasks",
    "baselines": "lmgym/baselines",
    "leaderboards": "lmgym/leaderboards",
}
UNSHIPPED = (  # a picture of a README, and the board's data, which belong to the repository
    "baselines/curves/curves.png",
    *(f"leaderboards/{name}" for name in ("archive/", "curves/", "entries/", "verdicts/", "history.jsonl")),
)


def files_of_the_tree() -> list[str]:
    """Return the files that git tracks or would add."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy, so that two builds never share a build/ folder
    source.mkdir()
    for name in files_of_the_tree():
        if not name.startswith("tests/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_wheel_holds_every_file_of_the_tree(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info" not in name}
    shipped = [name for name in files_of_the_tree() if not name.startswith(UNSHIPPED)]
    wanted = {
        f"{package}/{name.removeprefix(f'{folder}/')}"
        for folder, package in FOLDERS.items()
        for name in shipped
        if name.startswith(f"{folder}/")
    }
    assert packed == wanted


@pytest.mark.parametrize("place", ["wheel", "clone"])
def test_tasks_are_made_from_a_wheel_and_from_a_plain_clone(wheel: Path, tmp_path: Path, place: str) -> None:
    code = "import gymnasium, lmgym; e = gymnasium.make('lmgym/GuessNumber-v0'); e.reset(seed=0); print(lmgym.__file__)"
    where = tmp_path if place == "wheel" else ROOT
    if place == "wheel":
        zipfile.ZipFile(wheel).extractall(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent.parent == where


@pytest.mark.parametrize("library", NEEDS)
def test_extra_of_a_library_admits_the_version_that_is_tested(library: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options.extras_require"][library].split("\n")
    (asked,) = (each for each in map(Requirement, filter(None, lines)) if not each.name.startswith("lmgym"))
    tested = Requirement(NEEDS[library][0])
    assert tested.name == asked.name
    (exact,) = tested.specifier
    assert exact.version in asked.specifier
