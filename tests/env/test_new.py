import importlib

import pytest

from lmgym.env import new
from lmgym.env.new import scaffold
from lmgym.env.testing import check_task
from lmgym.errors import InstanceError


@pytest.mark.parametrize(
    ("name", "folder", "package", "task"),
    [
        ("fetch_water", "plain", "fetch_water", "fetch_water/FetchWater-v0"),
        ("TidyRoom2", "shop/games", "shop.games.tidy_room2", "shop/TidyRoom2-v0"),
    ],
)
def test_a_new_task_passes_every_check(tmp_path, monkeypatch, name, folder, package, task):
    parent = tmp_path / folder
    parent.mkdir(parents=True)
    if "/" in folder:
        for inside in (parent, parent.parent):
            (inside / "__init__.py").touch()
    target = scaffold(name, parent)
    assert {path.name for path in target.iterdir() if path.is_file()} == {
        *("__init__.py", "env.py", "prompt.md", "README.md", "golden.jsonl")
    }
    monkeypatch.syspath_prepend(tmp_path if "/" in folder else parent)
    spec = importlib.import_module(package).SPEC
    assert (spec.id, spec.package) == (task, package)
    check_task(spec)
    assert f"lmgym.tasks =\n    {target.name} = {package}" in (target / "README.md").read_text()


def test_a_task_of_lmgym_itself_stands_in_its_name_space():
    folder = new.Path(importlib.import_module("lmgym.tasks").__path__[0])
    assert new._package(folder.resolve() / "x") == (folder.resolve().parent, "lmgym.tasks.x")


@pytest.mark.parametrize(
    "name", ["", "2048", "a-b", "a b", "../x", "été", "class", "_", "none", "reply", "text_env", "warning", "json"]
)
def test_what_cannot_name_a_task_is_refused(tmp_path, name):
    with pytest.raises(InstanceError, match="cannot name a task"):
        scaffold(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(InstanceError, match="exists; choose another name"):
        scaffold("mine", tmp_path)
