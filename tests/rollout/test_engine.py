from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from lmgym.errors import InstanceError, RecipeError
from lmgym.policy.scripted import hinted
from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import Planner, Replace, Stop
from lmgym.types import Job, Message

from . import games
from .fakes import Bytes, assert_rescored, assert_trained_once

GUESS = "lmgym/GuessNumber-v0"
DICE = "test/Dice-v0"


def jobs(count, task=GUESS, **fields):
    return [Job(task=task, index=i, id=f"job{i}", **fields) for i in range(count)]


def play(given, policy=None, **engine):
    return list(Engine(**engine).run(policy or Bytes(), given))


def said(trajectory):
    return [turn.action for turn in trajectory.turns]


def test_a_trajectory_holds_what_was_shown_said_and_earned():
    (t,) = play(jobs(1), hinted("demonstrator"))
    assert t.turns[0].observation.text.startswith("I think of a whole number from 1 to 100")
    assert t.turns[0].action == "50"
    assert [turn.reward for turn in t.turns] == [0.0] * (len(t.turns) - 1) + [1.0]
    assert t.turns[-1].terms == {"reward": 1.0}
    assert (t.terminated, t.truncated, t.stop, t.score, t.success) == (True, False, "done", 1.0, True)
    assert (t.final.text, t.id, t.root, t.parent, t.task, t.index) == ("Correct!", "job0", "job0", None, GUESS, 0)
    assert {turn.kind for turn in t.turns} == {"given"}  # nobody sampled these words
    assert [turn.fresh for turn in t.turns] == [True] + [False] * (len(t.turns) - 1)  # as the view goes on


def test_one_segment_holds_an_episode_whose_view_only_grows():
    trajectories = play(jobs(5))
    assert [turn.fresh for turn in trajectories[0].turns] == [True] + [False] * (len(trajectories[0].turns) - 1)
    assert_rescored(trajectories)
    assert assert_trained_once(trajectories) > 0


def test_the_system_prompt_is_the_jobs():
    policy = Bytes()
    (t,) = play([Job(task=GUESS, index=0, prompt="Be brief.")], policy)
    assert t.prompt == "Be brief."
    assert policy.heard[0].messages[0] == Message(role="system", text="Be brief.")


def test_trajectories_come_as_episodes_end_and_in_lockstep_in_the_order_of_jobs():
    def answer(conversation):  # episode 0 takes 4 turns, the others one
        return "roll" if conversation.messages[0].text == "game 0" else "stop"

    free = play(jobs(5, DICE), Bytes(answer), concurrency=2)
    assert [t.index for t in free] == [1, 2, 3, 0, 4]
    strict = play(jobs(5, DICE), Bytes(answer), concurrency=2, lockstep=True)
    assert [t.index for t in strict] == [0, 1, 2, 3, 4]


def test_whatever_is_ready_goes_to_the_policy_at_once_and_in_lockstep_a_call_waits_for_all():
    policy = Bytes(pace=2)
    play(jobs(8, DICE), policy, concurrency=4)
    assert set(policy.batches) == {2}  # nobody waits for the slow half
    strict = Bytes(pace=3)
    play(jobs(4, DICE), strict, concurrency=4, lockstep=True)
    assert strict.batches == [3, 1] * 4


def test_jobs_are_drawn_as_there_is_room():
    drawn = []

    def endless():
        for i in itertools.count():
            drawn.append(i)
            yield Job(task=DICE, index=i % 100)

    run = Engine(concurrency=3).run(Bytes(), endless())
    next(run)
    run.close()
    assert drawn == [0, 1, 2]


def test_environments_serve_one_episode_after_the_other_and_live_within_a_block_from_run_to_run():
    games.made.clear(), games.closed.clear()
    engine = Engine(concurrency=4)
    trajectories = list(engine.run(Bytes(), jobs(20, DICE)))
    assert (engine.stats.played, engine.stats.steps) == (20, sum(len(t.turns) for t in trajectories))
    assert len(games.made) == 4
    assert sorted(map(id, games.closed)) == sorted(map(id, games.made))
    games.made.clear(), games.closed.clear()
    with Engine(concurrency=4) as engine:
        for _ in range(3):
            assert len(list(engine.run(Bytes(), jobs(8, DICE)))) == 8
        assert (len(games.made), len(games.closed)) == (4, 0)
    assert len(games.closed) == 4
    games.made.clear(), games.closed.clear()
    given = [Job(task=DICE, index=i, options={"flag": str(i)}) for i in range(12)]
    with Engine(concurrency=3) as engine:
        assert len(list(engine.run(Bytes(), given))) == 12
        assert len(games.made) - len(games.closed) <= 2 * 3


@pytest.mark.parametrize(
    ("lockstep", "task_limits", "most"), [(False, True, 2), (True, True, 2), (False, False, 4), (True, False, 4)]
)
def test_a_task_limits_its_environments_at_once_unless_told_otherwise(lockstep, task_limits, most):
    games.made.clear()
    mixed = [job for pair in zip(jobs(6, DICE), jobs(6, "test/Heavy-v0"), strict=True) for job in pair]
    given = [replace(job, id=f"job{number}") for number, job in enumerate(mixed)]
    assert len(play(given, concurrency=8, lockstep=lockstep, task_limits=task_limits)) == 12
    assert sum(isinstance(game, games.Heavy) for game in games.made) == most


@pytest.mark.parametrize("how", ["close", "error"])
def test_environments_are_closed_however_a_run_ends(how):
    games.made.clear(), games.closed.clear()
    if how == "close":
        run = Engine(concurrency=4).run(Bytes(), jobs(20, DICE))
        next(run)
        run.close()
    else:
        with pytest.raises(InstanceError, match="got index 100"):
            play([*jobs(3, DICE), Job(task=DICE, index=100)])
    assert len(games.made) == len(games.closed) == 4


def test_an_engine_runs_one_run_at_a_time():
    engine = Engine()
    run = engine.run(Bytes(), jobs(100))
    next(run)
    with pytest.raises(RecipeError, match="this engine is running"):
        next(engine.run(Bytes(), jobs(1)))
    run.close()
    assert len(list(engine.run(Bytes(), jobs(2)))) == 2


def test_two_jobs_of_one_name_are_refused():
    with pytest.raises(RecipeError, match="job0"):
        play(jobs(2) + jobs(1))


def test_unnamed_jobs_never_share_their_noise():
    policy = Bytes()
    engine = Engine()
    unnamed = [Job(task=GUESS, index=0) for _ in range(3)]
    trajectories = [*engine.run(policy, unnamed), *engine.run(policy, unnamed)]
    assert len({t.id for t in trajectories}) == 6
    assert len({conversation.noise for conversation in policy.heard}) == len(policy.heard)


def test_noise_depends_on_the_job_alone():
    alone = play(jobs(9)[4:5])
    among = play(jobs(9), Bytes(pace=1), concurrency=3)
    assert alone == [t for t in among if t.id == "job4"]


def test_a_cut_scores_by_the_tasks_limit_or_the_jobs():
    (t,) = play(jobs(1, DICE), Bytes(lambda _: "roll"))
    assert (t.terminated, t.truncated, t.stop, len(t.turns)) == (False, True, "max_turns", 4)
    pips = sum(int(text.split()[1]) for text in [*(turn.observation.text for turn in t.turns[1:]), t.final.text])
    assert (t.score, t.success) == (pips / 24, False)
    assert t.reward == pytest.approx(pips / 4 - 4 * 0.5, abs=1e-12)
    (t,) = play(jobs(1, DICE, budget=2), Bytes(lambda _: "roll"))
    assert (t.truncated, t.stop, len(t.turns)) == (True, "budget", 2)
    assert t.score == sum(int(text.split()[1]) for text in (t.turns[1].observation.text, t.final.text)) / 24
    (t,) = play(jobs(1, DICE, budget=0))
    assert (t.turns, t.stop, t.score, t.final.text) == ((), "budget", 0.0, "game 0")


@pytest.mark.parametrize(("context", "turns"), [(5, 0), (30, 1), (45, 2)])
def test_a_full_context_cuts_the_episode(context, turns):
    # prompt "game 0" 8 + role 1, "roll" and its end 5, then "rolled N" 10 + role 1 and 5 again: 9, 25, 41
    (t,) = play(jobs(1, DICE), Bytes(lambda _: "roll", context=context))
    assert (t.truncated, t.terminated, t.stop, len(t.turns)) == (True, False, "context", turns + (context > 9))
    assert t.final is not None
    assert "score" in t.info


def test_a_planner_can_stop_an_episode_that_is_not_over():
    class Impatient(Planner):
        def after_step(self, node):
            return Stop("enough") if len(node.turns) == 3 else super().after_step(node)

    (t,) = play(jobs(1, DICE), planner=Impatient())
    assert (t.stop, t.truncated, len(t.turns)) == ("enough", True, 3)
    assert t.score > 0
    (t,) = play(jobs(1, DICE), Bytes(lambda c: "stop" if len(c.messages) == 5 else "roll"), planner=Impatient())
    assert (t.stop, t.score, len(t.turns)) == ("done", 0.25, 3)


def test_a_planner_can_replace_what_the_policy_would_say():
    class Patch(Planner):
        wants = frozenset({"admissible"})

        def before_step(self, node):
            return Replace(node.hints["admissible"][0], {"patched": True}) if len(node.turns) == 1 else None

    policy = Bytes(lambda _: "x")
    (t,) = play(jobs(1, DICE), policy, planner=Patch())
    assert said(t) == ["x", "roll", "x", "x"]
    assert [turn.kind for turn in t.turns] == ["act", "given", "act", "act"]
    assert [turn.fresh for turn in t.turns] == [True, False, True, False]
    assert (t.turns[1].completion.ids, t.turns[1].info["patched"]) == ((), True)
    assert [m.text for m in policy.heard[1].messages if m.role == "assistant"] == ["x", "roll"]
    assert_rescored([t])
    assert assert_trained_once([t]) == 6


def test_after_an_episode_a_planner_can_ask_for_more():
    class Again(Planner):
        def after_episode(self, trajectory, others):
            if trajectory.index == 0:
                yield Job(task=DICE, index=7, tags={"because": trajectory.id})

    trajectories = play(jobs(3, DICE), planner=Again())
    assert [t.index for t in trajectories] == [0, 1, 2, 7]
    assert trajectories[-1].tags == {"because": "job0"}


def test_hints_are_what_the_policy_wants():
    policy = Bytes(lambda c: c.hints["admissible"][1], wants=frozenset({"admissible"}))
    (t,) = play(jobs(1, DICE), policy)
    assert [conversation.hints for conversation in policy.heard] == [{"admissible": ["roll", "stop"]}]
    assert said(t) == ["stop"]


def test_an_oracle_goes_on_while_it_is_followed_and_starts_anew_when_not():
    asked = []

    def answer(conversation):
        asked.append(conversation.hints["oracle"])
        return "roll" if len(asked) == 2 else asked[-1]

    play(jobs(1, DICE), Bytes(answer, wants=frozenset({"oracle"})))
    assert asked == ["oracle 0", "oracle 1", "oracle 2", "oracle 3"]


def test_a_trajectory_has_what_its_job_carries_and_tries_share_their_chance_alone():
    job = Job(task="guess_number", index=3, options={"highest": 10}, seed=5, attempt=2, group="g", tags={"a": 1})
    (t,) = play([job])
    assert (t.task, t.options, t.seed, t.attempt, t.group, t.tags) == (GUESS, {"highest": 10}, 5, 2, "g", {"a": 1})
    first, second = play([Job(task=DICE, index=0, seed=3, attempt=n, id=f"try{n}") for n in (0, 1)])
    assert said(first) != said(second)
    assert [t.observation for t in first.turns] == [t.observation for t in second.turns]
