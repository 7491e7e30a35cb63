from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from lmgym.viewer.index import open_runs
from lmgym.viewer.server import Viewer


@contextmanager
def serving(*paths, **more):
    """A viewer of `paths` at work."""
    runs = open_runs(paths)
    viewer = Viewer(runs, [row for run in runs for row in run.rows], **more)
    thread = threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield viewer
    finally:
        viewer.shutdown()
        thread.join()
        viewer.server_close()
        for run in runs:
            run.close()


@pytest.fixture
def served():
    return serving
