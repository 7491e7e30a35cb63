"""The command `lmgym` in the process of a test."""

from __future__ import annotations

import sys

import pytest

from lmgym.cli import main


def command(*words: str) -> int:
    """Run `lmgym WORDS` and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["lmgym", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)
