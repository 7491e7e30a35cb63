"""A small root file system made of this machine's own files: Debian's packages named here, and the Python of lmgym."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from lmgym.backends.sandbox import inside
from lmgym.backends.sandbox.limits import Box
from lmgym.errors import MissingExtra

PYTHON = "/opt/python"  # where the Python of lmgym stands inside
PACKAGES = (
    *("bash", "dash", "coreutils", "findutils", "grep", "sed", "mawk", "diffutils", "patch", "tar", "gzip", "bzip2"),
    *("xz-utils", "git", "procps", "util-linux", "less", "make", "file", "hostname", "debianutils", "libc-bin"),
    *("libmagic-mgc", "libmagic1", "ncurses-base", "mime-support", "media-types"),
)
EMPTY = ("proc", "sys", "dev", "run", "home", "var")
NEEDED = ("bash", "coreutils", "findutils", "grep", "sed", "diffutils", "tar", "git", "procps")
LEFT_OUT = re.compile(
    r"/usr/share/(doc|man|locale|info|lintian|bug|bash-completion|menu|applications|pixmaps)\b|/(var|boot)\b|/etc/(?!alter)"
)
STANDARD = ("ensurepip", "idlelib", "lib2to3", "test", "tkinter", "turtledemo", "site-packages", "dist-packages")
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
DPKG = Path("/var/lib/dpkg/status")


@cache
def digest() -> str:
    """Return a name of what `archive` returns: it changes with this machine's packages, its Python and this module."""
    state = [sys.version, sys.base_prefix, Path(__file__).read_text(), str(inside.accounts())]
    if DPKG.exists():
        state.append(str(DPKG.stat().st_mtime_ns))
    return blake2b("\0".join(state).encode(), digest_size=6).hexdigest()


def archive() -> bytes:
    """Return the file system as a tar archive. Raises MissingExtra where Debian's packages are not to be had."""
    paths = set(_packages()) | set(_standard_library())
    paths |= set(_libraries(paths))
    files = {_inner(path): path for path in paths}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, text in inside.accounts().items():
            _add(tar, f"etc/{name}", text.encode())
        packages = f"{PYTHON[1:]}/lib/{VERSION}/site-packages"  # empty
        for folder in (*EMPTY, packages, *(each[1:] for each in inside.writable(Box()))):
            _folder(tar, folder)
        for link, target in _links():
            files.pop(link, None)
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
        for name, path in sorted(files.items()):
            tar.add(path, name, recursive=False, filter=ownerless)
    return buffer.getvalue()


def _inner(path: Path) -> str:
    """Return a file's path inside; a merged /usr has /bin and /lib in it."""
    prefix = Path(sys.base_prefix)
    if path.is_relative_to(prefix):
        folder, name, *_ = path.relative_to(prefix).parts
        if folder in ("bin", "lib") and name.startswith(("python", "libpython")):
            return str(Path(PYTHON[1:]) / path.relative_to(prefix))
    return str(path.parent.resolve() / path.name)[1:]


def _links() -> Iterator[tuple[str, str]]:
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            yield name, str(path.readlink())
    yield "usr/bin/python3", f"{PYTHON}/bin/python3"
    for library in Path(sys.base_prefix, "lib").glob("libpython*.so*"):
        yield f"usr/lib/{library.name}", f"{PYTHON}/lib/{library.name}"


def _packages() -> Iterator[Path]:
    """Yield the files of Debian's packages, without documentation."""
    if shutil.which("dpkg") is None:
        raise MissingExtra(
            "the base image is made of Debian's packages, and this machine has no dpkg: name an image in a Box"
        )
    done = subprocess.run(["dpkg", "-L", *PACKAGES], capture_output=True, text=True, check=False)
    missing = [name for name in NEEDED if f"package '{name}' is not installed" in done.stderr]
    if missing:
        raise MissingExtra(f"the base image needs: apt-get install {' '.join(missing)}")
    for line in done.stdout.splitlines():
        path = Path(line)
        if line.startswith("/") and not LEFT_OUT.match(line) and (path.is_symlink() or path.is_file()):
            yield path
    for line in ("/etc/alternatives/awk", "/usr/bin/awk", "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/mime.types"):
        if Path(line).exists():
            yield Path(line)


def _standard_library() -> Iterator[Path]:
    """Yield the interpreter and its standard library."""
    prefix = Path(sys.base_prefix)
    for name in ("python3", VERSION, "python"):
        if (prefix / "bin" / name).exists():
            yield prefix / "bin" / name
    yield from (prefix / "lib").glob("libpython*.so*")
    for folder, folders, files in os.walk(prefix / "lib" / VERSION):
        folders[:] = [name for name in folders if name not in STANDARD and not name.startswith("config-")]
        yield from (Path(folder, name) for name in files if ".opt-" not in name)


def _libraries(paths: set[Path]) -> Iterator[Path]:
    """Yield the shared libraries of programs, links to them included."""
    programs = [str(path) for path in paths if _is_program(path)]
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    for library in set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", done.stdout, re.MULTILINE)):
        path = Path(library)
        while path.is_symlink():
            yield path
            path = path.parent / path.readlink()
        yield path
    prefix = Path(sys.base_prefix, "lib")
    for root in (Path("/lib64"), Path("/lib")):  # the loader is known by this name
        yield from root.glob("ld-linux*.so.*")
    yield from prefix.glob("libpython3.so")


def _is_program(path: Path) -> bool:
    if path.is_symlink() or not (os.access(path, os.X_OK) or ".so" in path.name):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def ownerless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member that belongs to root, that all may read, and that is no setuid program."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = member.mode & 0o755 | 0o444
    return member


def _folder(tar: tarfile.TarFile, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, 0o1777 if name in ("tmp", "dev/shm") else 0o755
    tar.addfile(member)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o644
    tar.addfile(member, io.BytesIO(data))
