import itertools
import os
import random
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from lmgym.env import card, checks, golden, testing
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.env.spec import TaskSpec
from lmgym.env.testing import Finding, TaskError, check_task, findings
from lmgym.errors import InstanceError, MissingExtra

SPEC = TaskSpec(
    id="test/Sound-v0",
    entry_point=f"{__name__}:Sound",
    summary="Say the number shown, twice.",
    max_turns=4,
    splits={"train": 300, "test": 300},
    score="the share of the two",
    references={"null": 0.0, "oracle": 1.0},
)


class Sound(TextEnv):
    SPEC = SPEC

    def begin(self, index):
        self.number, self.said = index * 2 + (self.split == "test"), 0
        return Reply(f"say {self.number}")

    def act(self, action):
        if action != str(self.number):
            return Reply("no", valid=False)
        self.said += 1
        return Reply("yes", reward={"said": 0.5}, done=self.said == 2, score=1.0 if self.said == 2 else None)

    def oracle(self):
        while True:
            yield str(self.number)

    def admissible(self):
        return [str(self.number)]

    def score_if_cut(self):
        return self.said / 2


class Saved(Sound):
    def save(self):
        return {"number": self.number, "said": self.said}

    def restore(self, state):
        self.number, self.said = state["number"], state["said"]


class Forgetful(Saved):
    def restore(self, state):
        self.number = state["number"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for module in (card, golden):
        monkeypatch.setattr(module, "folder", lambda spec: tmp_path)
    return tmp_path


def wrong(spec, *, recorded=True):
    """Return the problems, by check, of a task whose card and goldens were just written."""
    card.write(spec)
    if recorded:
        golden.write(spec)
    found: dict[str, str] = {}
    for finding in findings(spec):
        if not finding.ok:
            found[finding.check] = f"{found.get(finding.check, '')}\n{finding.message}"
    return found


def test_a_sound_task_passes_and_every_check_says_what_holds():
    assert wrong(SPEC) == {}
    assert SPEC.id not in gymnasium.registry  # checked without leaving a trace
    found = check_task(SPEC)
    assert len(found) == 16
    assert all(isinstance(finding, Finding) and finding.message for finding in found)


def test_a_saved_episode_must_continue_the_same():
    assert list(checks.saved_episodes(checks.Subject(replace(SPEC, entry_point=f"{__name__}:Saved"), ("train",)))) == []
    forgetful = checks.Subject(replace(SPEC, entry_point=f"{__name__}:Forgetful"), ("train",))
    [problem, *_] = checks.saved_episodes(forgetful)
    assert "train/0 saved after 1 actions and continued in another environment: " in problem


def test_what_is_wrong_is_raised_in_a_line_each():
    with pytest.raises(TaskError) as caught:
        check_task(SPEC)
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["spec and card", "goldens"]
    assert isinstance(caught.value, AssertionError)


class Raises(Sound):
    def act(self, action):
        return super().act(str(int(action)))


class Global(Sound):
    def act(self, action):
        return Reply(f"no {random.random()}", valid=False)


class Unsteady(Sound):
    def begin(self, index):
        self.opened = getattr(self, "opened", 0) + 1
        return Reply(f"{super().begin(index).text} {min(self.opened, 2)}")


class Shared(Sound):
    words: list[str] = []

    def begin(self, index):
        self.words.clear()
        return super().begin(index)

    def act(self, action):
        self.words.append(action)
        return Reply(" ".join(self.words))


class Process(Sound):
    def act(self, action):
        return Reply(f"no {os.getpid()}", valid=False)


class Twin(Sound):
    def begin(self, index):
        reply = super().begin(index)
        self.number = index
        return Reply(reply.text.split()[0])


class Hidden(Twin):
    def fingerprint(self):
        return f"{self.split} {self.number}"


class Weak(Sound):
    def oracle(self):
        yield from (str(self.number), "no", "no", "no")


class Short(Sound):
    def oracle(self):
        yield str(self.number)


class Clumsy(Sound):
    def demonstrator(self):
        return itertools.repeat("please")


class Liar(Sound):
    def admissible(self):
        return ["anything"]


class Chatty(Sound):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {"score": 0.0, "success": False, **info}


class Uneven(Sound):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + 1, terminated, truncated, info


class Unwritable(Sound):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "mark": object}


class Misfit(Sound):
    PICTURES = Images(2, 2)

    def act(self, action):
        return Reply("look", images=(np.zeros((3, 3, 3), np.uint8),))


class ClosesOnce(Sound):
    closed = False

    def close(self):
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class Unpicklable(Sound):
    def __init__(self, **common):
        super().__init__(**common)
        self.words = lambda: "no"


class Boundless(Sound):
    def act(self, action):
        return Reply("yes", done=True, score=2.0)


@pytest.mark.parametrize(
    ("task", "check", "message"),
    [
        (Raises, "hostile text", "action '' (0 characters) raises ValueError: invalid literal for int()"),
        (Global, "determinism", "train/0 replayed in the same environment: observation 1 was 'no 0."),
        (Global, "goldens", "observations at 1 was"),
        (Unsteady, "determinism", "observation 0 was 'say 0 1', is 'say 0 2'"),
        (Shared, "two at once", "train/1 beside another environment: observation 1 was '2', is '0 2'"),
        (Process, "vectors", "sync and async differ at turn 1"),
        (Twin, "disjoint splits", "train/0 and test/0 are the same instance"),
        (Weak, "references", "oracle scores 0.5 on test (mean of 5); the spec says 1.0"),
        (Short, "references", "oracle on test/0 stops after 1 actions, before the end"),
        (Clumsy, "demonstrator", "on train/1 its action 'please' is not valid"),
        (Liar, "admissible", "'anything' is admissible and not valid"),
        (Chatty, "endings", "score or success in info before the end"),
        (Uneven, "endings", "reward is 1.0, its terms are"),
        (Unwritable, "endings", "TypeError: Object of type type is not JSON serializable"),
        (Misfit, "hostile text", "the answer does not fit the space"),
        (ClosesOnce, "closing twice", "RuntimeError: closed already"),
        (Boundless, "endings", "ValueError: test/Sound-v0 must end with a score in [0, 1]; got 2.0"),
    ],
)
def test_a_broken_promise_is_found(task, check, message):
    spec = replace(SPEC, entry_point=f"{__name__}:{task.__name__}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(golden, "record", lambda spec: [])  # a broken task may not get through its own recording
        if check == "goldens":
            patch.undo()
        found = wrong(spec)
    assert message in found[check]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "Sound"}, "id 'Sound' does not have the form namespace/Name-v0"),
        ({"held_out": ("dev",)}, "held_out names 'dev', which is not a split"),
        ({"references": {"oracle": 3.0}}, "reference oracle is 3.0; scores are in [0, 1]"),
        ({"entry_point": f"{__name__}:Finding"}, f"{__name__}:Finding is not a TextEnv"),
    ],
)
def test_an_unsound_spec_is_found(change, message):
    subject = testing.Subject(replace(SPEC, **change), ("train",))
    assert message in list(testing.spec_and_card(subject))


def test_a_card_that_says_something_else_is_found_and_mended(folder):
    readme = folder / "README.md"
    assert card.differs(SPEC).startswith("README.md is missing")
    readme.write_text("# Mine\n")
    assert "has no block <!-- spec test/Sound-v0 -->" in card.differs(SPEC)
    card.write(SPEC)
    other = replace(SPEC, id="test/Other-v0", summary="a | b")
    card.write(other)
    readme.write_text(readme.read_text() + "\nMore.\n")
    assert card.differs(SPEC) is card.differs(other) is None
    changed = replace(SPEC, max_turns=5)
    assert "differs from the spec" in card.differs(changed)
    before = readme.read_text()
    card.write(changed)
    assert readme.read_text() == before.replace("| turns | 4 at most |", "| turns | 5 at most |", 1)


def test_a_card_without_its_end_is_left_alone(folder):
    (folder / "README.md").write_text("<!-- spec test/Sound-v0 -->\nwords\n")
    with pytest.raises(InstanceError, match="has no <!-- /spec -->"):
        card.write(SPEC)


def test_heavy_imports_of_a_spec_are_found(tmp_path, monkeypatch):
    package = tmp_path / "heavy_task"
    package.mkdir()
    (package / "env.py").write_text("")
    (package / "__init__.py").write_text("import wave\nimport heavy_task.env\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(testing, "HEAVY", frozenset({"wave"}))
    subject = testing.Subject(replace(SPEC, entry_point="heavy_task.env:Heavy"), ("train",))
    assert list(testing.light_import(subject)) == [
        "import heavy_task loads wave, heavy_task.env: import them inside functions"
    ]
    (package / "__init__.py").write_text("import nothing_like_this\n")
    [said] = testing.light_import(subject)
    assert said == "import heavy_task fails: ModuleNotFoundError: No module named 'nothing_like_this'"


def test_official_data_that_is_absent_is_a_note_and_a_missing_split_is_not():
    spec = replace(SPEC, splits={**SPEC.splits, "official": 0})
    card.write(spec)
    golden.write(spec)

    class Half(Sound):
        def size(self):
            return super().size() if self.split != "official" else 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "build", lambda spec, split: Half(spec=spec, split=split))
        found = {finding.check: finding for finding in findings(spec)}
    assert found["split official"].ok
    assert found["split official"].message.startswith("skipped: test/Sound-v0 has no instances")
    broken = replace(SPEC, splits={"train": 0, "test": 5}, entry_point=f"{__name__}:Closed")
    [said] = [finding for finding in findings(broken) if finding.check == "split test"]
    assert (said.ok, said.message) == (False, "skipped: no such file")


class Closed(Sound):
    def begin(self, index):
        raise InstanceError("no such file")


@pytest.mark.parametrize(
    "change",
    [
        {"entry_point": f"{__name__}:Twin", "overlap": "there is one board"},
        {"entry_point": f"{__name__}:Hidden"},  # its fingerprint tells instances apart
        {"splits": {"train": 1}},
    ],
)
def test_splits_may_share_instances_look_alike_or_have_one(change):
    spec = replace(SPEC, **change)
    assert wrong(spec) == {}
    assert ("| splits share instances | there is one board |" in card.card(spec)) == bool(spec.overlap)


def test_a_missing_package_is_raised_and_official_data_needs_no_goldens():
    with pytest.raises(MissingExtra):
        check_task(replace(SPEC, entry_point="no_such_package.env:Task", extras=("web",)))
    subject = testing.Subject(replace(SPEC, splits={"official": 0}), ())
    assert list(checks.goldens(subject)) == []
