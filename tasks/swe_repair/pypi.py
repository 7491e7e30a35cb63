"""Small PyPI libraries, from source archives that carry their tests; pip fetches an archive when it is first needed."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lmgym.cache import cache_folders
from lmgym.errors import InstanceError

LOCK = threading.Lock()  # one process fetches an archive once
TEXTS = (".py", ".txt")  # files of tests


@dataclass(frozen=True)
class Release:
    """A release of a library, pinned by the digest of its source archive."""

    name: str
    version: str
    sha256: str
    licence: str  # its text stays in the repository
    source: str  # folder of the code
    tests: str  # folder of the tests, or the one file of them
    modules: tuple[str, ...] = ()  # files that may get a bug; (): all
    without: tuple[str, ...] = ()  # files of tests that need a network, seconds, or a part that is not there
    deselected: tuple[str, ...] = ()  # tests of the same kind

    @property
    def archive(self) -> str:
        """Name of the archive's file."""
        return f"{self.name.replace('-', '_')}-{self.version}.tar.gz"


RELEASES = (
    Release(
        name="boltons",
        version="26.2.0",
        sha256="d39cfd15c1a1c3bd4d705c82252fa9edb8e4f5e8cc039f8e39afac7b1b47e92c",
        licence="BSD-3-Clause",
        source="boltons",
        tests="tests",
        modules=tuple(
            f"boltons/{name}utils.py"
            for name in ("cache", "dict", "format", "iter", "list", "math", "named", "queue", "set", "stats")
            + ("str", "table", "time", "type", "url")
        ),
        without=tuple(
            f"test_{name}.py"
            for name in ("debugutils_trace", "ecoutils", "fileutils", "funcutils", "funcutils_fb", "funcutils_fb_py3")
            + ("gcutils", "ioutils", "jsonutils", "pathutils", "socketutils", "tbutils", "tbutils_parsed_exc")
        ),
    ),
    Release(
        name="inflection",
        version="0.5.1",
        sha256="1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417",
        licence="MIT",
        source="inflection",
        tests="test_inflection.py",
    ),
    Release(
        name="more-itertools",
        version="11.2.1",
        sha256="cbf08fd0af284dc69718b9b76a8e6203df624d70209ea511e4219d350c856f63",
        licence="MIT",
        source="more_itertools",
        tests="tests",
        modules=("more_itertools/recipes.py",),
        without=("test_more.py",),
        deselected=(
            "test_recipes.py::PrimeFunctionTests::test_primes",
            "test_recipes.py::PrimeFunctionTests::test_nth_prime_approximate",
            "test_recipes.py::RunningMedianTests::test_vs_statistics_median",
            "test_recipes.py::PolynomialFromRootsTests::test_large",
        ),
    ),
    Release(
        name="parse",
        version="1.22.4",
        sha256="706d458feed5a81b02768d3156e8070baf6cee7d150a3a3c0cd43101a875c3b5",
        licence="MIT",
        source="parse",
        tests="tests",
    ),
    Release(
        name="tabulate",
        version="0.10.0",
        sha256="e2cfde8f79420f6deeffdeda9aaec3b6bc5abce947655d17ac662b126e48a60d",
        licence="MIT",
        source="tabulate",
        tests="test",
        without=("test_cli.py",),
    ),
    Release(
        name="toolz",
        version="1.2.0",
        sha256="9667a038e9d6ecba37995e26cb2f59ec6420b6ad8dd9677de59db9b956b08490",
        licence="BSD-3-Clause",
        source="toolz",
        tests="toolz/tests",
        modules=("toolz/dicttoolz.py", "toolz/functoolz.py", "toolz/itertoolz.py", "toolz/recipes.py"),
        without=("test_inspect_args.py", "test_package.py", "test_signatures.py", "test_tlz.py"),
    ),
)
BY_NAME = {release.name: release for release in RELEASES}


def texts(release: Release) -> dict[str, str]:
    """Return a library's code, tests, guide and licence by path, its tests in the folder `tests`.

    Raises InstanceError if the archive is not here and pip cannot fetch it, or if it is not the pinned one.
    """
    return dict(_taken(release, _content(release)))


def _taken(release: Release, content: bytes) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar.getmembers():
            path = _place(release, PurePosixPath(*PurePosixPath(member.name).parts[1:]))
            file = tar.extractfile(member) if path is not None and member.isreg() else None
            if path is not None and file is not None:
                yield path, file.read().decode("utf-8").replace("\r\n", "\n")


def _place(release: Release, path: PurePosixPath) -> str | None:
    """Return where a file of the archive stands in the repository; None if it is left out."""
    tests = PurePosixPath(release.tests)
    if path == tests:
        return f"tests/{path.name}"
    if path.is_relative_to(tests):
        kept = path.suffix in TEXTS and path.name not in release.without
        return f"tests/{path.relative_to(tests)}" if kept else None
    if path.is_relative_to(release.source):
        return str(path) if path.suffix == ".py" and "tests" not in path.parts else None
    return str(path) if len(path.parts) == 1 and path.name.startswith(("LICENSE", "README")) else None


def _content(release: Release) -> bytes:
    """Return the archive of a library, fetched if it is not in the cache."""
    folders = [folder / "archives" for folder in cache_folders("swe")]
    with LOCK:
        path = next((folder / release.archive for folder in folders if (folder / release.archive).is_file()), None)
        content = (path or _fetched(release, folders[-1])).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != release.sha256:
        raise InstanceError(f"{path or release.archive} has sha256 {digest}, not {release.sha256}: remove the file")
    return content


def _fetched(release: Release, folder: Path) -> Path:
    """Fetch an archive into a folder with pip, which checks its digest before it reads it; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{release.name}=={release.version}"
    logging.getLogger(__name__).warning("fetching the source of %s with pip, once", wanted)
    command = ["pip", "download", "--no-deps", "--no-binary", ":all:"]
    with tempfile.TemporaryDirectory() as scratch:  # not in the cache, where a killed fetch would leave it for good
        pinned = Path(scratch, "requirements.txt")
        pinned.write_text(f"{wanted} --hash=sha256:{release.sha256}\n", encoding="utf-8")
        options = ["--quiet", "--retries", "1", "--timeout", "20", "--dest", scratch, "--requirement", str(pinned)]
        pip = subprocess.run([sys.executable, "-m", *command, *options], capture_output=True, text=True, check=False)
        path = Path(scratch, release.archive)
        if pip.returncode or not path.is_file():
            reason = (pip.stderr.strip().splitlines() or ["pip wrote no archive"])[-1]
            by_hand = " ".join([*command, "--dest", str(folder), wanted])
            raise InstanceError(f"the source of {wanted} cannot be fetched ({reason}); fetch it by hand: {by_hand}")
        part = folder / f".{release.archive}-{os.getpid()}"
        shutil.copyfile(path, part)
        os.replace(part, folder / release.archive)
    return folder / release.archive
