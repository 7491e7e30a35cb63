"""Fresh instances are played by the entry's own policy, with the entry's own settings, or by nobody."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lmgym.board import entry as entries
from lmgym.board import fresh
from lmgym.board.entry import Entry
from lmgym.board.store import BoardStore
from lmgym.board.verdict import Verdict, figures
from lmgym.board.verify import verify
from lmgym.cli.again import Again
from lmgym.errors import PolicyError, SubmissionError
from tests.board.forge import Forger
from tests.evaluation.server import serving

SECRET = "a long secret that nobody guesses"
WORDLE = "lmgym/Wordle-v0"
SETTINGS = {
    "temperature": 0.2,
    "max_tokens": 50,
    "tools": "none",
    "prompt": "Be brief.",
    "request": {"top_p": 0.5, "stop": ["END"]},
}


def asked(entry: dict[str, Any], _: object) -> None:
    """An endpoint's entry."""
    entry["policy"].update(name="endpoint: fake", kind="model")
    entry["settings"].update(SETTINGS)


def zeroed(verdict: Verdict) -> Verdict:
    """The same, had no episode been won."""
    count = len(verdict.outcomes.index)
    none = msgspec.structs.replace(verdict.outcomes, score=(0.0,) * count, success=(False,) * count)
    return msgspec.structs.replace(verdict, **figures(none))


class Kept:
    """A board with an entry of an endpoint that scores 0, and a hidden seed."""

    def __init__(self, forger: Forger) -> None:
        self.path = forger.change(asked)
        self.store = BoardStore(self.path.parents[2])
        self.store.commit(WORDLE, fresh.digest(WORDLE, SECRET), reason="")
        self.secret = self.store.root / "secret.txt"
        self.secret.write_text(SECRET)
        self.found: Entry = entries.read(self.path)
        self.verdict = zeroed(verify(self.path, workers=1))

    def judged(self, model: str, **more: Any) -> Verdict:
        again = Again.of(model, secret=self.secret, instances=10, seat=more.pop("seat", None))
        found = more.pop("found", self.found)
        return again.judge(self.path, found, self.verdict, self.store.log)


@pytest.fixture
def kept(forger: Forger) -> Kept:
    return Kept(forger)


def test_fresh_instances_are_asked_for_as_the_entry_was(kept: Kept) -> None:
    with serving(lambda body: {"content": "<think>no idea</think>zzzzz"}) as server:
        verdict = kept.judged(server.model)
    assert verdict.mark == "reproduced"
    assert verdict.fresh is not None
    assert (verdict.fresh["policy"], verdict.fresh["instances"], verdict.fresh["score"]) == ("endpoint: fake", 10, 0.0)
    assert "127.0.0.1" not in str(verdict.fresh)
    assert server.requests == 60
    for body in server.bodies:
        assert (body["temperature"], body["max_tokens"], body["top_p"], body["stop"]) == (0.2, 50, 0.5, ["END"])
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert "no idea" not in str(body["messages"])  # thinking is not shown again, as in an evaluation


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("demonstrator", r"the entry's policy is endpoint: fake \(model\); --model is demonstrator \(script\)"),
        ("http://127.0.0.1:9/v1#other", "--model is endpoint: other"),
        ("python:tests.board.test_again:asked", r"--model is python:tests.board.test_again:asked \(script\)"),
        ("tiny", "the entry's weights are not stated"),
    ],
)
def test_another_policy_than_the_entrys_reproduces_nothing(kept: Kept, model: str, message: str) -> None:
    with pytest.raises(SubmissionError, match=message):
        kept.judged(model)


def test_a_better_score_is_another_policys(kept: Kept) -> None:
    mine = msgspec.structs.replace(kept.found.policy, name="demonstrator", kind="script")
    with pytest.raises(SubmissionError, match=r"scores 1\.000 .*, above the entry's 0\.000"):
        kept.judged("demonstrator", found=msgspec.structs.replace(kept.found, policy=mine, settings={"seed": 0}))


def test_other_seats_are_played_by_whom_the_entry_names(kept: Kept) -> None:
    settings = {**kept.found.settings, "seats": {"user": "endpoint: chatter"}}
    two = msgspec.structs.replace(kept.found, seats=("agent", "user"), settings=settings)
    for seat, message in (
        (None, "the entry's user is endpoint: chatter: say where it is, by --seat user=MODEL"),
        (["user=http://127.0.0.1:9/v1#else"], "that of --seat is endpoint: else"),
        (["ghost=null"], "does not say who plays the seat 'ghost'"),
    ):
        with pytest.raises(SubmissionError, match=message):
            kept.judged("http://127.0.0.1:9/v1#fake", found=two, seat=seat)
    silent = msgspec.structs.replace(two, settings=kept.found.settings)
    with pytest.raises(SubmissionError, match="does not say who plays the seat 'user'"):
        kept.judged("http://127.0.0.1:9/v1#fake", found=silent)


def test_a_key_in_the_place_of_a_policy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMGYM_API_KEY", "planted-0123456789")
    with pytest.raises(PolicyError) as error:
        Again.of("cmd:play planted-0123456789", seat=None)
    assert "planted" not in str(error.value)
