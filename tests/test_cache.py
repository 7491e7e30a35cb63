"""The cache falls back to the temporary directory only where no other user can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmgym.cache import cache_folders


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the temporary directory that is used where $LMGYM_CACHE cannot be written."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"lmgym-{os.getuid()}"


def test_a_cache_that_can_be_written_is_the_only_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    assert cache_folders("games") == [tmp_path / "games"]


def test_elsewhere_a_private_folder_is_made_in_the_temporary_directory(private):
    for _ in range(2):
        assert cache_folders("games")[1:] == [private / "games"]
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_is_refused(private):
    for path in (private, private / "games"):
        path.mkdir()
        path.chmod(0o777)
        assert cache_folders("games")[1:] == []
        path.chmod(0o755)


def test_a_link_and_a_folder_of_another_user_are_refused(private, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    private.symlink_to(tmp_path / "elsewhere")
    assert cache_folders("games")[1:] == []
    private.unlink()
    other = os.getuid() + 1
    monkeypatch.setattr("os.getuid", lambda: other)
    private.with_name(f"lmgym-{other}").mkdir(mode=0o700)
    assert cache_folders("games")[1:] == []
