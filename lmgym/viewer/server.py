"""The server of the viewer, which reads only the files of the given runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmgym.viewer.episode import Decode, episode_json
from lmgym.viewer.index import EpisodeRow, RunFile, listing
from lmgym.viewer.local_server import JSON, Answer, LocalServer, RequestHandler, as_json
from lmgym.viewer.search import search

PICTURE = re.compile(r"picture/(\d{1,4})/([0-9a-f]{32})\.png")
EPISODE = re.compile(r"episode/(\d{1,9})")


class Viewer(LocalServer):
    """A server of recorded episodes."""

    page, script = "index.html", "app.js"

    def __init__(
        self,
        runs: Sequence[RunFile],
        rows: Sequence[EpisodeRow],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        decode: Decode | None = None,
    ) -> None:
        """Listen on `host`; port 0 picks a free port. Raises OSError if the port is in use."""
        super().__init__(RequestHandler, host=host, port=port)
        self.runs, self.rows, self.decode = runs, rows, decode

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer | None:
        """Return the content and MIME type at `path`, None if there is none."""
        if path == "listing.json":
            return as_json(listing(self.runs, self.rows)), JSON
        if path == "search.json":
            words, start = query.get("words", [""])[0], query.get("start", ["0"])[0]
            if not words or not re.fullmatch(r"\d{1,9}", start):
                return None
            result = search(self.runs, self.rows, words, start=int(start))
            return as_json({"hits": result.hits, "next": result.next}), JSON
        if (match := EPISODE.fullmatch(path)) and int(match[1]) < len(self.rows):
            row = self.rows[int(match[1])]
            return as_json(episode_json(self.runs[row.run].trajectory(row), decode=self.decode)), JSON
        if (match := PICTURE.fullmatch(path)) and int(match[1]) < len(self.runs):
            picture = self.runs[int(match[1])].picture(match[2])
            return None if picture is None else (picture, "image/png")
        return super().answer(path, query)
