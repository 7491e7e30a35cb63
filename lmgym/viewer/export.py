"""Export as one HTML file with episodes and pictures; it loads nothing, and only its own script may run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from lmgym.rollout.picture_folder import picture_digests
from lmgym.viewer.episode import Decode, episode_json
from lmgym.viewer.index import EpisodeRow, RunFile, listing
from lmgym.viewer.local_server import as_json, page_file

LINK, HEAD = '<link rel="stylesheet" href="style.css">', "<title>"
SCRIPTS = '<script src="common.js" defer></script>\n<script src="app.js" defer></script>'
ICON = '<link rel="icon" href="icon.svg">'


def export(path: Path, runs: Sequence[RunFile], rows: Sequence[EpisodeRow], *, decode: Decode | None = None) -> None:
    """Write the file atomically, with one episode in memory at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.partial")
    script, style = page_file("common.js") + page_file("app.js"), page_file("style.css")
    before, after = page_file("index.html").split(SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    policy = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    before = before.replace(LINK, f"<style>{style}</style>").replace(ICON, '<link rel="icon" href="data:,">')
    with made.open("w", encoding="utf-8") as file:
        file.write(before.replace(HEAD, policy + HEAD, 1))
        file.write(_block("listing", as_json(listing(runs, rows))))
        written: set[tuple[int, str]] = set()
        for number, row in enumerate(rows):
            trajectory = runs[row.run].trajectory(row)
            file.write(_block(f"episode-{number}", as_json(episode_json(trajectory, decode=decode))))
            for digest in filter(str.isalnum, picture_digests([trajectory])):
                picture = None if (row.run, digest) in written else runs[row.run].picture(digest)
                written.add((row.run, digest))
                if picture is not None:
                    file.write(_block(f"picture-{row.run}-{digest}", as_json(base64.b64encode(picture).decode())))
        file.write(f"<script>{script}</script>{after}")
    made.replace(path)


def _block(name: str, content: bytes) -> str:
    """Return a script element with JSON data, which does not run; `as_json` escapes markup."""
    return f'<script type="application/json" id="{name}">{content.decode()}</script>\n'


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
