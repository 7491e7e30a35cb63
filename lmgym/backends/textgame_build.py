"""Generate and compile TextWorld games, and cache them on disk.

A game is compiled once per user: the cache holds one zip per game, named by a digest of its recipe.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lmgym.backends.textgame import Story, undisturbed
from lmgym.cache import cache_folders
from lmgym.errors import BackendError

FORMAT = 1  # of the cache: a new one forgets the old files
MEMBERS = ("game.z8", "game.json")


@contextlib.contextmanager
def generating(seed: int) -> Iterator[None]:
    """Run TextWorld's generators with all their random streams derived from `seed`."""
    with undisturbed():
        import textworld

        before = textworld.g_rng.seed
        textworld.g_rng.set_seed(seed)
        try:
            yield
        finally:
            textworld.g_rng.set_seed(before)


def story(recipe: Mapping[str, Any], make: Callable[[], Any]) -> Story:
    """Return the compiled game of a recipe, from the cache or newly made by `make`, which returns a `textworld.Game`.

    The recipe is JSON and holds everything that the game depends on, except the engine's version.
    """
    name = f"{_digest(recipe)}.zip"
    folders = cache_folders("textworld")
    for folder in folders:
        if kept := _read(folder / name):
            return kept
    made = compile_game(make())
    _write(folders[-1] / name, made)
    return made


def compile_game(game: Any) -> Story:
    """Compile a `textworld.Game` with TextWorld's compilers, without their index.

    The stock function takes 0.37 s, this one 0.25 s.
    """
    from textworld.generator.inform7 import generate_inform7_source
    from textworld.generator.inform7.world2inform7 import I7_DEFAULT_PATH

    inform = Path(os.environ.get("INFORM_HOME", I7_DEFAULT_PATH), "share", "inform7")
    with tempfile.TemporaryDirectory(prefix="lmgym-inform-") as name:
        project = Path(name)
        (project / "Source").mkdir()
        (project / "uuid.txt").touch()
        (project / "Source" / "story.ni").write_text(generate_inform7_source(game), encoding="utf-8")
        options = ("--internal", inform / "Internal", "--format=.z8", "--noindex", "--project", project)
        _run(inform / "Compilers" / "ni", *options)
        _run(inform / "Compilers" / "inform6", "-E2wSv8F0", project / "Build" / "auto.inf", project / MEMBERS[0])
        return Story((project / MEMBERS[0]).read_bytes(), json.dumps(game.serialize()))


def _run(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        output = (getattr(error, "stdout", None) or b"").decode("utf-8", "replace")[-2000:]
        raise BackendError(f"Inform could not compile a TextWorld game: {error}\n{output}".rstrip()) from error


def _digest(recipe: Mapping[str, Any]) -> str:
    parts = [FORMAT, version("textworld"), dict(recipe)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> Story | None:
    """Return a cached game; None where there is none, or its content does not match its digest."""
    try:
        with zipfile.ZipFile(path) as archive:
            z8, game = (archive.read(member) for member in MEMBERS)
            intact = archive.comment == _checksum(z8, game)
        return Story(z8, game.decode()) if intact else None
    except (OSError, KeyError, ValueError, EOFError, zlib.error, zipfile.BadZipFile):
        return None


def _write(path: Path, story: Story) -> None:
    """Cache a game as a whole file; do nothing where the folder cannot be written."""
    contents = (story.z8, story.game.encode())
    with contextlib.suppress(OSError):
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with open(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as kept:
                for member, content in zip(MEMBERS, contents, strict=True):
                    kept.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED)
                kept.comment = _checksum(*contents)
            os.replace(name, path)
        except OSError:
            os.unlink(name)


def _checksum(*contents: bytes) -> bytes:
    """Return the digest of a game's files, which the archive carries as its comment."""
    return b" ".join(hashlib.sha256(content).hexdigest().encode() for content in contents)
