import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import gymnasium
import pytest

import lmgym
from lmgym.env import registry
from lmgym.env.registry import build, find, load, options_of, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError, MissingExtra

from . import games

GUESS = "lmgym/GuessNumber-v0"


@pytest.fixture
def plugins(monkeypatch):
    """Let these modules of tests be the entry points of the plug-in group."""

    def use(*modules):
        points = [EntryPoint(name, name, registry.PLUGINS) for name in modules]
        monkeypatch.setattr(registry, "entry_points", lambda group: points if group == registry.PLUGINS else [])
        specs.cache_clear()

    yield use
    specs.cache_clear()


@pytest.mark.parametrize("name", [GUESS, "GuessNumber-v0", "guess_number"])
def test_a_task_is_found_by_id_short_id_and_folder(name):
    assert find(name).id == GUESS


def test_a_folders_name_means_its_first_id():
    assert find("wordle").id == "lmgym/Wordle-v0"
    assert find("WordleCounting-v0").options == {"colouring": "counting"}


@pytest.mark.parametrize(
    ("open_it", "message"),
    [
        (lambda: find("wordel"), "unknown task 'wordel'; did you mean wordle"),
        (lambda: find("lmgym/GuessNumbr-v0"), "did you mean GuessNumber-v0"),
        (lambda: find("zzz"), "unknown task 'zzz'; choose one of alfworld"),
        (lambda: build(GUESS, split="dev"), "unknown split 'dev' for lmgym/GuessNumber-v0; choose train, test"),
        (lambda: build(GUESS, lowest=3), "unknown option 'lowest' for lmgym/GuessNumber-v0; choose from highest"),
        (lambda: build(GUESS).reset(options={"index": 1_000_000}), "instances 0 to 999999; got index 1000000"),
        (lambda: build(GUESS, split="test").reset(options={"index": -1}), "0 to 999; got index -1"),
        (lambda: build(GUESS).reset(options={"index": "3"}), "got index '3'"),
        (lambda: build(GUESS).reset(options={"index": True}), "got index True"),
        (lambda: build(GUESS).reset(options={"index": 1.0}), "got index 1.0"),
        (lambda: build(GUESS).reset(options=["index"]), "options are a mapping such as {'index': 0}; got ['index']"),
        (lambda: build(GUESS).reset(options={"instance": "7"}), "is a mapping of names to values; got '7'"),
        (lambda: build(GUESS).reset(options={"idx": 1}), "takes the options 'index' and 'instance'; got 'idx'"),
        (lambda: build(GUESS).reset(options={"instance": {"number": 3}}), "takes no authored instances"),
        (lambda: build(GUESS).step("1"), "no episode is open; call reset"),
        (lambda: gymnasium.make(GUESS, split="dev"), "unknown split 'dev'"),
    ],
)
def test_what_does_not_exist_is_named_in_one_line(open_it, message):
    with pytest.raises(InstanceError) as caught:
        open_it()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_split_without_data_says_so():
    env = build(replace(find(GUESS), splits={"train": 0}))
    for options in ({}, {"index": 0}):
        with pytest.raises(InstanceError, match="has no instances for split 'train'"):
            env.reset(seed=0, options=options)


def test_the_options_of_a_task_are_its_class_and_its_bases_and_override_those_of_the_id():
    common = {"split": "train", "others": "scripted", "render_mode": None}
    assert options_of(load(find(GUESS))) == {"highest": 100, **common}
    counting, lmrl = build("WordleCounting-v0"), build("WordleCounting-v0", colouring="lmrl")
    assert counting.unwrapped.colour is not lmrl.unwrapped.colour


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path, monkeypatch):
    (tmp_path / "needy_task").mkdir()
    (tmp_path / "needy_task" / "__init__.py").write_text("")
    (tmp_path / "needy_task" / "env.py").write_text("import no_such_package.inside\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = replace(games.RACE, entry_point="needy_task.env:Needy", extras=("swe", "web"))
    with pytest.raises(MissingExtra) as caught:
        build(spec)
    assert str(caught.value) == "test/Race-v0 needs no_such_package: pip install 'lmgym[swe,web]'"
    assert isinstance(caught.value, ImportError)
    with pytest.raises(ModuleNotFoundError):  # no extra could help
        build(replace(spec, extras=()))


class Late(games.Race):
    """Imports what it needs when it is made."""

    def __init__(self, **common):
        super().__init__(**common)
        __import__("no_such_package")


def test_a_package_missing_when_an_environment_is_made_is_named_too():
    with pytest.raises(MissingExtra, match="needs no_such_package"):
        build(replace(games.RACE, entry_point=f"{__name__}:Late", extras=("web",)))


SPEC = games.RACE
VARIANTS = (games.GALLERY,)


def test_a_plug_in_brings_its_spec_and_variants(plugins):
    plugins(__name__)
    assert find("Race-v0") is SPEC
    assert find("test/Gallery-v0") is games.GALLERY
    try:
        registry.register_all()
        env = gymnasium.make("test/Race-v0", first="black")
        assert env.reset(seed=0)[0]["text"] == "sum 1"
    finally:
        for spec in (SPEC, *VARIANTS):
            gymnasium.registry.pop(spec.id, None)


@pytest.mark.parametrize(("module", "reason"), [("no_such_package", "No module named"), ("json", "attribute 'SPEC'")])
def test_a_broken_plug_in_takes_no_other_task_away(plugins, module, reason):
    plugins(module, __name__)
    with pytest.warns(UserWarning, match=rf"plug-in {module} \({module}\) are left out: .*{reason}"):
        assert {GUESS, "test/Race-v0"} <= set(specs())


def test_a_plug_in_that_cannot_be_read_takes_no_other_task_away(plugins, tmp_path, monkeypatch):
    (tmp_path / "broken_tasks.py").write_text("SPEC = (")
    monkeypatch.syspath_prepend(tmp_path)
    plugins("broken_tasks", __name__)
    with pytest.warns(UserWarning, match="left out: SyntaxError"):
        assert {GUESS, "test/Race-v0"} <= set(specs())


def test_two_tasks_of_one_id_are_refused(plugins):
    plugins(__name__, __name__)
    with pytest.raises(InstanceError, match="two tasks have the id test/Race-v0"):
        specs()


def test_every_id_is_registered_and_made_by_gymnasium_alone():
    assert set(specs()) <= set(gymnasium.registry)
    before = dict(gymnasium.registry)
    registry.register_all()
    assert gymnasium.registry == before
    code = f"import gymnasium; print(gymnasium.make('lmgym:{GUESS}').reset(seed=1)[0]['text'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "from 1 to 100" in done.stdout


def test_the_library_raises_one_tree():
    assert issubclass(InstanceError, LmgymError)
    assert issubclass(MissingExtra, LmgymError)
    assert lmgym.__version__


def test_a_spec_knows_its_folder():
    spec = TaskSpec(**{**vars(games.RACE), "entry_point": "lmgym.tasks.web_shop.env:WebShop"})
    assert (spec.name, spec.package) == ("web_shop", "lmgym.tasks.web_shop")


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("Maze-v0", {"max_turns": "5"}, "max_turns takes an int, such as 100; got '5'"),
        ("Maze-v0", {"max_turns": True}, "max_turns takes an int, such as 100; got True"),
        ("TryAgain-v0", {"penalty": "x"}, "option penalty takes a number, such as 0.0; got 'x'"),
        ("TryAgain-v0", {"penalty": True}, "option penalty takes a number, such as 0.0; got True"),
        ("TwentyQuestions-v0", {"objects": 3}, "option objects takes a path; got 3"),
        ("Tau2RetailOfficial-v0", {"data": 3}, "option data takes a path; got 3"),
    ],
)
def test_an_option_of_another_type_is_named(task, options, message):
    with pytest.raises(InstanceError, match=f"^lmgym/{task}: {message}$"):
        gymnasium.make(f"lmgym/{task}", **options)


def test_whole_numbers_are_numbers_and_paths_are_paths(tmp_path):
    assert build("TryAgain-v0", penalty=1).unwrapped.penalty == 1
    with pytest.raises(InstanceError, match="objects|nothing"):
        build("TwentyQuestions-v0", objects=tmp_path / "nothing")
