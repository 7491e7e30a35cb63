"""The gallery and the page of metrics say what the code does."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from lmgym.env.registry import specs
from tests.command import command

from .blocks import ROOT

source = importlib.util.spec_from_file_location("gallery", ROOT / "docs/site/gallery.py")
assert source is not None
assert source.loader is not None
gallery = importlib.util.module_from_spec(source)
source.loader.exec_module(gallery)

PAGE = (ROOT / "docs/reference/gallery.md").read_text()
CHEAP = [
    spec.id
    for spec in gallery.tasks()
    if spec.player == "inline"
    and f"pictures/gallery/{spec.id[6:]}" not in PAGE
    and not {"reasoning", "babyai"}.intersection(spec.extras)  # packages that warn when imported, or are slow
]


@pytest.mark.parametrize("task", CHEAP)
def test_gallery_shows_the_oracle_of_text_tasks(task: str) -> None:
    assert gallery.episode(specs()[task]) in PAGE, "run `make cards`"


def test_gallery_has_every_task_and_its_pictures() -> None:
    assert all(f"## {spec.id.partition('/')[2]}\n" in PAGE for spec in gallery.tasks()), "run `make cards`"
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE):
        assert (ROOT / "docs/reference" / picture).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["bc", "mc", "ppo", "grpo", "refuel"])
def test_metrics_page_explains_every_name(algorithm: str, tmp_path: Path) -> None:
    words = ["train", algorithm, "guess_number", "--model", "tiny:1m", "--evaluate", "4", "--steps", "1"]
    words += [] if algorithm == "bc" else ["--warmup", "1"]
    assert command(*words, "--out", str(tmp_path / "run")) == 0
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    page = (ROOT / "docs/reference/metrics.md").read_text()
    assert {name for row in rows for name in row} <= set(re.findall(r"`(\w+)`", page))
