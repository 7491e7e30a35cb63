"""The viewer's server: nothing is written and nothing but the runs' own files is read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmgym.viewer.episode import Decode, shown
from lmgym.viewer.index import EpisodeRow, RunFile, listing
from lmgym.viewer.local_server import JSON, Answer, LocalServer, RequestHandler, as_json, page_file
from lmgym.viewer.search import search

PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
}
PICTURE = re.compile(r"picture/(\d{1,4})/([0-9a-f]{32})\.png")
EPISODE = re.compile(r"episode/(\d{1,9})")


class Viewer(LocalServer):
    """Shows episodes at `url` until it is shut down."""

    def __init__(
        self,
        runs: Sequence[RunFile],
        rows: Sequence[EpisodeRow],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        decode: Decode | None = None,
    ) -> None:
        """Listen on `host`; port 0 takes a free one. Raises OSError where the port is taken."""
        super().__init__(RequestHandler, host=host, port=port)
        self.runs, self.rows, self.decode = runs, rows, decode

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer | None:
        """Content and type of what lies at `path`, None where nothing does."""
        if path in PAGE:
            name, kind = PAGE[path]
            return page_file(name).encode(), kind
        if path == "listing.json":
            return as_json(listing(self.runs, self.rows)), JSON
        if path == "search.json":
            return self._search(query)
        if (asked := EPISODE.fullmatch(path)) and int(asked[1]) < len(self.rows):
            row = self.rows[int(asked[1])]
            return as_json(shown(self.runs[row.run].trajectory(row), decode=self.decode)), JSON
        if (asked := PICTURE.fullmatch(path)) and int(asked[1]) < len(self.runs):
            picture = self.runs[int(asked[1])].picture(asked[2])
            return None if picture is None else (picture, "image/png")
        return super().answer(path, query)

    def _search(self, query: dict[str, list[str]]) -> Answer | None:
        words, start = query.get("words", [""])[0], query.get("start", ["0"])[0]
        if not words or not re.fullmatch(r"\d{1,9}", start):
            return None
        found = search(self.runs, self.rows, words, start=int(start))
        return as_json({"hits": found.hits, "next": found.next}), JSON
