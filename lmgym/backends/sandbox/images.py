"""Images of sandboxes in Docker, made of local files: no registry is asked for anything."""

from __future__ import annotations

import io
import re
import shlex
import tarfile
import threading
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from lmgym.backends.sandbox import daemon, hostfiles
from lmgym.backends.sandbox.limits import Box
from lmgym.errors import InstanceError

REPOSITORY = "lmgym/sandbox"  # names of images that are made on demand
MIB = 1 << 20
BUILD_MEMORY = 2048 * MIB  # bytes of one step of a Dockerfile
BUILD_SECONDS = 600.0
_LOCK = threading.Lock()  # one image is made at a time


def base() -> str:
    """Return the name of the image of this machine's own programs and Python; it is made when it is first asked for."""
    name = f"{REPOSITORY}:base-{hostfiles.digest()}"
    with _LOCK:
        if not exists(name):
            load(io.BytesIO(hostfiles.archive()), name)
    return name


def of_box(box: Box) -> str:
    """Return the image that a box starts from: its own, or the base, with its trees in it."""
    if box.image and not exists(box.image):
        raise InstanceError(f"no image {box.image!r}: build it, or pull it with `docker pull {box.image}`")
    image = box.image or base()
    return _with_trees(image, box.trees) if box.trees else image


def exists(name: str) -> bool:
    """Return True if the daemon has an image of this name."""
    import docker

    with daemon.requests("look for an image") as connection:
        try:
            connection.inspect_image(name)
        except docker.errors.ImageNotFound:
            return False
    return True


def load(archive: Any, name: str, *, changes: tuple[str, ...] = ()) -> None:
    """Make an image of a root file system: a tar archive, as a binary file.

    `changes` are lines of a Dockerfile (ENV, WORKDIR, USER, ...).
    """
    with daemon.requests(f"make the image {name}") as connection:
        repository, _, tag = name.partition(":")
        query = {"fromSrc": "-", "repo": repository, "tag": tag or "latest"}
        url = connection._url("/images/create")
        lines = [*changes, f"LABEL {daemon.IMAGE}=1"]
        reply = connection._post(
            url,
            data=archive,
            params={**query, "changes": lines},
            headers={"Content-Type": "application/tar"},
            timeout=BUILD_SECONDS,
        )
        connection._raise_for_status(reply)


def build(folder: Path, name: str, *, base_image: str = "", network: bool = False) -> None:
    """Build an image of a folder with a Dockerfile, without a network unless asked.

    `base_image` takes the place of the image in the first FROM line. Raises InstanceError if the Dockerfile is missing
    or fails; then nothing of it is left.
    """
    dockerfile = folder / "Dockerfile"
    if not dockerfile.is_file():
        raise InstanceError(f"{folder} has no Dockerfile")
    text = dockerfile.read_text(encoding="utf-8", errors="replace")
    if base_image:
        text = re.sub(r"(?im)^(\s*FROM\s+(?:--platform=\S+\s+)?)\S+", rf"\g<1>{base_image}", text, count=1)
    import docker

    ignore = folder / ".dockerignore"
    exclude = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
    context = docker.utils.build.tar(str(folder), exclude=exclude, dockerfile=("Dockerfile", text), gzip=False)
    with context:
        _build(context, name, network=network, what=str(dockerfile))


def _build(context: Any, name: str, *, network: bool, what: str) -> None:
    """Send a build context and follow the build."""
    import docker

    with daemon.requests(f"build the image {name}") as connection:
        try:
            for line in connection.build(
                fileobj=context,
                custom_context=True,
                dockerfile="Dockerfile",
                tag=name,
                rm=True,
                forcerm=True,
                decode=True,
                network_mode="default" if network else "none",
                container_limits={"memory": BUILD_MEMORY, "memswap": BUILD_MEMORY},
                labels={daemon.IMAGE: "1"},
                timeout=BUILD_SECONDS,
            ):
                if "error" in line:
                    connection.prune_images({"dangling": True, "label": [f"{daemon.IMAGE}=1"]})
                    raise InstanceError(f"{what} fails: {_one_line(line['error'])}")
        except docker.errors.APIError as error:
            raise InstanceError(f"{what} fails: {_one_line(error.explanation)}") from error


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())[:300]


def delete(name: str) -> None:
    """Delete an image, if it is there."""
    import docker

    with daemon.requests(f"delete the image {name}") as connection:
        try:
            connection.remove_image(name, force=True)
        except docker.errors.ImageNotFound:
            return


def _with_trees(image: str, trees: Mapping[str, Path]) -> str:
    """Return an image with files of the host in it, each in the place of what was there."""
    with daemon.requests("look for an image") as connection:
        state = blake2b(connection.inspect_image(image)["Id"].encode(), digest_size=10)
    entries = [(inner, path, each) for inner, path in sorted(trees.items()) for each in _files(path)]
    for inner, path, each in entries:
        state.update(f"\0{inner}\0{each.relative_to(path)}\0".encode())
        if each.is_file():
            state.update(blake2b(each.read_bytes()).digest())
    name = f"{REPOSITORY}:trees-{state.hexdigest()}"
    with _LOCK:
        if not exists(name):
            with io.BytesIO() as context:
                _write_context(context, image, trees)
                _build(context, name, network=False, what=f"an image with {', '.join(sorted(trees))}")
    return name


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or a folder and what is in it."""
    yield path
    if path.is_dir():
        yield from sorted(each for each in path.rglob("*") if each.is_dir() or each.is_file())


def _write_context(target: io.BytesIO, image: str, trees: Mapping[str, Path]) -> None:
    lines = [f"FROM {image}", "USER 0:0", f"RUN rm -rf {shlex.join(sorted(trees))}"]
    with tarfile.open(fileobj=target, mode="w") as tar:
        for number, (inner, path) in enumerate(sorted(trees.items())):
            for each in _files(path):
                relative = PurePosixPath(inner[1:], *each.relative_to(path).parts)
                tar.add(each, f"tree{number}/{relative}", recursive=False, filter=hostfiles.ownerless)
            lines.append(f"COPY tree{number} /")
        data = "\n".join(lines).encode()
        member = tarfile.TarInfo("Dockerfile")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    target.seek(0)
