from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lmgym.env.registry import find
from lmgym.errors import ReplayError
from lmgym.policy.scripted import hinted
from lmgym.rollout import trust
from lmgym.rollout.context import Summarise
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Fork, Planner, Stop
from lmgym.rollout.replay import replay
from lmgym.rollout.segments import segments
from lmgym.types import Job

from .fakes import CONTEXTS, Bytes, Dicing, assert_rescored, assert_trained_once

DICE = "test/Dice-v0"
GUESS = "lmgym/GuessNumber-v0"


def play(jobs, policy=None, **engine):
    return list(Engine(**engine).run(policy or Bytes(), jobs))


@pytest.fixture
def parent():
    (t,) = play([Job(task=DICE, index=3, seed=5, id="p", prompt="Roll.", group="g", tags={"a": 1})])
    return t


def shown(trajectory):
    return [turn.observation.text for turn in trajectory.turns] + [trajectory.final.text]


def test_a_fork_shares_the_first_turns(parent):
    (child,) = play([fork(parent, 2, tags={"reset": 2})])
    assert (child.parent, child.root, child.forked_at) == ("p", "p", 2)
    assert all(a is b for a, b in zip(child.turns[:2], parent.turns[:2], strict=True))
    assert len(child.turns) == 4
    assert (child.prompt, child.group, child.tags, child.index, child.seed) == (
        "Roll.",
        "g",
        {"a": 1, "reset": 2},
        3,
        5,
    )
    assert [turn.fresh for turn in child.turns] == [True, False, False, False]
    (row,) = segments(child)
    assert row.ids[: sum(len(t.completion.prompt_ids) + len(t.completion.ids) for t in parent.turns[:2])] == tuple(
        i for t in parent.turns[:2] for i in (*t.completion.prompt_ids, *t.completion.ids)
    )


def test_a_forks_noise_is_its_own_and_one_at_the_end_plays_nothing_new(parent):
    policy = Bytes()
    (child,) = play([fork(parent, 4)], policy)
    assert (child.turns, child.score, policy.heard) == (parent.turns, parent.score, [])
    children = play([fork(parent, 2, number=n) for n in range(3)], policy)
    assert len({conversation.noise for conversation in policy.heard}) == 6
    words = [tuple(turn.action for turn in t.turns[2:]) for t in (parent, *children)]
    assert len(set(words)) == 4


def test_a_fork_keeps_the_parents_chance_unless_it_is_given_its_own(parent):
    same, other, again = play(
        [fork(parent, 2), fork(parent, 2, number=1, reseed=9), fork(parent, 2, number=2, reseed=9)]
    )
    assert shown(same) == shown(parent)
    assert shown(other)[:3] == shown(parent)[:3]  # the third was rolled before the fork
    assert shown(other)[3:] != shown(parent)[3:]
    assert shown(again) == shown(other)
    assert (same.reseed, other.reseed) == (None, 9)


def test_a_fork_of_a_fork_replays_the_chance_of_both(parent):
    (child,) = play([fork(parent, 1, reseed=9)])
    (grandchild,) = play([fork(child, 3)])
    assert (grandchild.parent, grandchild.root, grandchild.forked_at) == (child.id, "p", 3)
    assert shown(grandchild) == shown(child)
    (sibling,) = play([fork(child, 1, number=1)])  # where the child was given its chance, it keeps it
    assert shown(sibling) == shown(child)


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_token_of_a_tree_is_trained_once_in_any_context(context):
    trunk = play([Job(task=DICE, index=i, id=f"p{i}") for i in range(3)], context=context)
    forks = [fork(t, turn, number=n) for t in trunk for turn in range(len(t.turns) + 1) for n in range(2)]
    children = play(forks, context=context)
    grandchildren = play([fork(child, turn) for child in children[:6] for turn in (1, 3)], context=context)
    tree = [*trunk, *children, *grandchildren]
    assert assert_trained_once(tree) > 0
    assert_rescored(tree)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("seed", range(4))
def test_every_token_is_trained_once_whatever_a_planner_does(seed, context):
    jobs = [Job(task=DICE, index=i, id=str(i)) for i in range(12)]
    trajectories = play(jobs, Bytes(pace=3), planner=Dicing(seed), context=context, concurrency=5)
    assert len(trajectories) > 12
    assert_trained_once(trajectories)
    assert_rescored(trajectories)
    assert [replay(t).score for t in trajectories[:5]] == [t.score for t in trajectories[:5]]


@pytest.mark.parametrize("turn", [-1, 5])
def test_there_must_be_such_a_turn(parent, turn):
    with pytest.raises(ReplayError, match="has 4 turns"):
        fork(parent, turn)


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (1, lambda turn: {"observation": replace(turn.observation, text="rolled 7")}, "'rolled 7'"),
        (0, lambda turn: {"info": {**turn.info, "reward_terms": {"pips": 9.0}}}, r"earned 9\.0"),
        (0, lambda turn: {"action": "stop", "info": {}, "terms": {"reward": 0.0}}, "ended after 1 of the 3 turns"),
    ],
)
def test_other_observations_rewards_or_ends_than_recorded_are_an_error(parent, number, change, message):
    turns = list(parent.turns)
    turns[number] = replace(turns[number], **change(turns[number]))
    with pytest.raises(ReplayError, match=message):
        play([fork(replace(parent, turns=tuple(turns)), 3)])


def test_rewards_that_a_recipe_added_are_not_in_the_way(parent):
    shaped = [replace(t, reward=t.reward + 2, terms={**t.terms, "bonus": 2.0}) for t in parent.turns]
    (child,) = play([fork(replace(parent, turns=tuple(shaped)), 2)])
    assert [t.reward for t in child.turns] == [t.reward for t in parent.turns]


def wordle(**options):
    (t,) = play([Job(task="lmgym/Wordle-v0", index=0, id="w")], Bytes(lambda _: "crane"))
    return replace(t, options=options)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"words": "secret.txt"}, "may open the file words='secret.txt'"),
        ({"words": ["deep", {"in": "secret.txt"}]}, "may open the file words="),
        ({"colouring": "python:os:getcwd"}, "imports colouring='python:os:getcwd'"),
        ({"others": "hf:secret"}, "imports others='hf:secret'"),
        ({"others": {"black": "python:os:getcwd"}}, "imports others="),
    ],
)
def test_a_strangers_record_is_forked_and_replayed_only_where_it_is_trusted(options, why):
    record = wordle(**options)
    for call in (replay, lambda record: fork(record, 1)):
        with pytest.raises(ReplayError, match=f"{re.escape(why)}.*trusted=True"):
            call(record)
    with pytest.raises(ReplayError, match="trusted=True"):
        fork(wordle(), 1, others=[replace(record, seat="black")])
    assert fork(record, 1, trusted=True).options == options


def test_a_strangers_actions_that_are_code_are_forked_only_where_they_are_trusted(monkeypatch):
    monkeypatch.setattr(trust, "find", lambda task: replace(find(task), runs_code=True))
    with pytest.raises(ReplayError, match="runs its actions as code"):
        fork(wordle(), 1)
    assert fork(wordle(), 1, trusted=True).prefix == wordle().turns[:1]


def test_a_file_that_a_record_names_is_opened_only_where_it_is_trusted(tmp_path):
    (tmp_path / "words").write_text("crane\nslate\nghost\nblimp\npound\n")
    job = Job(task="lmgym/Wordle-v0", split="test", index=0, id="w", options={"words": str(tmp_path / "words")})
    (record,) = play([job], Bytes(lambda _: "crane"))
    with pytest.raises(ReplayError, match="may open"):
        replay(record)
    assert replay(record, trusted=True).score == record.score
    assert play([fork(record, 1, trusted=True)], Bytes(lambda _: "crane"))[0].parent == "w"


def test_options_that_the_spec_knows_and_numbers_are_no_names_of_files():
    known = {"colouring": "counting", "others": "scripted", "split": "test"}
    assert fork(wordle(**known), 1).options == known
    desktop = {"width": 640, "by": "name", "touch": False, "windows": None}
    assert fork(replace(wordle(**desktop), task="lmgym/ClickTargetDesktop-v0"), 0).options == desktop


@pytest.mark.parametrize("how", [Stop("rewound"), Fork(turn=1, stop="rewound")])
def test_a_planner_forks_what_its_engine_played_whatever_it_names(tmp_path, how):
    class Rewind(Planner):
        def after_step(self, node):
            return how if node.job.parent is None and len(node.turns) == 2 else super().after_step(node)

        def after_episode(self, trajectory, others):
            return [fork(trajectory, 1, trusted=True)] if isinstance(how, Stop) and trajectory.parent is None else []

    (tmp_path / "words").write_text("crane\nslate\nghost\nblimp\npound\n")
    job = Job(task="lmgym/Wordle-v0", split="test", index=0, id="w", options={"words": str(tmp_path / "words")})
    trunk, again = play([job], Bytes(lambda _: "ghost"), planner=Rewind(), lockstep=True)
    assert (trunk.stop, trunk.truncated, len(trunk.turns)) == ("rewound", True, 2)
    assert (again.parent, again.forked_at, again.stop, len(again.turns)) == ("w", 1, "done", 6)
    assert_trained_once([trunk, again])


def test_a_prefix_that_nobody_played_belongs_to_its_trajectory(parent):
    (t,) = play([Job(task=DICE, index=3, seed=5, prefix=parent.turns[:2])])
    assert (t.parent, t.forked_at, t.turns[:2]) == (None, 0, parent.turns[:2])
    assert [turn.fresh for turn in t.turns] == [True, False, True, False]  # the prompt is another one


def test_a_planner_forks_a_running_episode():
    class Branching(Planner):
        def after_step(self, node):
            if node.job.parent is None and len(node.turns) == 2:
                return Fork(2, reseed=40)
            return super().after_step(node)

    trunk, *branches = play([Job(task=DICE, index=0, id="p")], planner=Branching(), lockstep=True)
    assert [b.id for b in branches] == ["p+2.0", "p+2.1"]
    assert [(b.parent, b.forked_at, b.reseed) for b in branches] == [("p", 2, 40), ("p", 2, 41)]
    assert all(b.turns[:2] == trunk.turns[:2] for b in branches)
    assert len({tuple(t.action for t in each.turns) for each in (trunk, *branches)}) == 3
    assert_trained_once([trunk, *branches])


@pytest.mark.parametrize("player", ["inline", "thread", "process"])
def test_replaying_proves_an_episode(parent, player):
    again = replay(parent, player=player)
    assert (again.score, again.success, again.final) == (parent.score, parent.success, parent.final)


def test_replaying_proves_episodes_however_they_ended():
    class Stops(Planner):
        def after_step(self, node):
            return Stop("enough") if node.job.index == 1 and len(node.turns) == 2 else super().after_step(node)

    def answer(conversation):
        return "stop" if conversation.messages[0].text == "game 2" else "roll"

    jobs = [Job(task=DICE, index=i, budget=1 if i == 3 else None) for i in range(4)]
    jobs.append(Job(task=DICE, index=5, budget=0))
    trajectories = [
        *play(jobs, Bytes(answer), planner=Stops()),
        *play([Job(task=DICE, index=8)], Bytes(context=40)),
        *play([Job(task=DICE, index=9)], context=Summarise(48)),
        *play([Job(task=GUESS, seed=12)], hinted("demonstrator")),  # the instance drawn from the seed
    ]
    stops = {t.stop for t in trajectories}
    assert stops == {"max_turns", "enough", "done", "budget", "context"}
    for t in trajectories:
        assert replay(t).score == t.score


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: replace(t, info={**t.info, "score": 1.0}), r"score was 1\.0, is 0\."),
        (lambda t: replace(t, info={**t.info, "success": True}), "success was True, is False"),
        (lambda t: replace(t, terminated=True, truncated=False), "terminated was True, is False"),
        (lambda t: replace(t, final=replace(t.final, text="won")), "final was"),
        (lambda t: replace(t, stop="done"), "stop was 'done', is 'max_turns'"),
        (lambda t: replace(t, turns=t.turns[:-1]), "stop was 'max_turns', is 'context'"),
        (lambda t: replace(t, turns=(*t.turns, t.turns[0])), "ended after 4 of the 5"),
        (lambda t: replace(t, seed=6), r"turn 1 earned 0\.75, but 0\.25 in the replay"),
    ],
)
def test_replaying_finds_what_is_not_true(parent, change, message):
    with pytest.raises(ReplayError, match=message):
        replay(change(parent))
