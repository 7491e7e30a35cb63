from __future__ import annotations

from lmgym.rollout.segments import segments
from lmgym.types import Completion, Message, Trajectory, Turn


def turn(prompt_ids, ids, *, fresh=False, kind="act", logprobs=None, version=0):
    said = Completion(
        text="x",
        prompt_ids=prompt_ids,
        ids=ids,
        logprobs=tuple(-0.5 * i for i in ids) if logprobs is None else logprobs,
        entropy=tuple(0.25 * i for i in ids) if logprobs is None else (),
        version=version,
    )
    return Turn(observation=Message(role="user", text="o"), completion=said, action="x", fresh=fresh, kind=kind)


def episode(*turns, **fields):
    return Trajectory(id="t", root="t", task="x", split="train", turns=turns, **fields)


def test_a_row_ends_where_a_turn_is_fresh():
    t = episode(
        turn((1, 2), (3, 4), fresh=True, version=5),
        turn((5,), (6,), version=4),
        turn((7,), (8,), fresh=True, version=6),
    )
    first, second = segments(t)
    assert first.ids == (1, 2, 3, 4, 5, 6)
    assert first.sampled == (False, False, True, True, False, True)
    assert first.given == (False,) * 6
    assert first.turn == (-1, -1, 0, 0, -1, 1)
    assert first.logprobs == (0.0, 0.0, -1.5, -2.0, 0.0, -3.0)
    assert first.entropy == (0.0, 0.0, 0.75, 1.0, 0.0, 1.5)
    assert (first.start, first.stop, first.number, first.version, len(first)) == (0, 2, 0, 4, 6)
    assert (second.ids, second.turn, second.number, second.trajectory) == ((7, 8), (-1, 2), 1, t)


def test_turns_of_the_parent_are_seen_but_not_trained_and_rows_of_them_alone_left_out():
    turns = (turn((1,), (2,), fresh=True), turn((3,), (4,)), turn((5,), (6,)))
    (row,) = segments(episode(*turns, parent="p", forked_at=2))
    assert row.ids == (1, 2, 3, 4, 5, 6)
    assert row.sampled == (False,) * 5 + (True,)
    assert row.turn == (-1,) * 5 + (2,)
    assert row.logprobs[-1] == -3.0
    (every,) = segments(episode(*turns, parent="p", forked_at=2), prefix="every")
    assert every.sampled == (False, True) * 3
    turns = (turn((1,), (2,), fresh=True), turn((3,), (4,), fresh=True))
    assert [row.ids for row in segments(episode(*turns, parent="p", forked_at=1))] == [(3, 4)]
    assert segments(episode(*turns, parent="p", forked_at=2)) == []


def test_words_nobody_sampled_are_flagged():
    t = episode(turn((1,), (2, 3), fresh=True, kind="given", logprobs=()), turn((4,), (5,)))
    (row,) = segments(t)
    assert row.given == (False, True, True, False, False)
    assert row.sampled == (False, False, False, False, True)
    assert row.turn == (-1, 0, 0, -1, 1)
    assert row.logprobs == (0.0, 0.0, 0.0, 0.0, -2.5)


def test_turns_without_ids_have_no_tokens_and_summaries_train_like_actions():
    assert segments(episode(turn((), (), fresh=True, kind="given"))) == []
    assert segments(episode()) == []
    t = episode(turn((1,), (2,), fresh=True), turn((), (), kind="given"), turn((3,), (4,), fresh=True))
    assert [row.ids for row in segments(t)] == [(1, 2), (3, 4)]
    (row,) = segments(episode(turn((1,), (2,), fresh=True), turn((3,), (4,), kind="summary")))
    assert row.sampled == (False, True, False, True)
