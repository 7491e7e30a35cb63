from __future__ import annotations

import pytest

from lmgym.errors import ReplayError
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Planner, Stop
from lmgym.rollout.replay import replay
from lmgym.types import Job

from .fakes import Bytes, Session, assert_rescored, assert_trained_once

RACE = "test/Race-v0"
TRIO = "test/Trio-v0"


def always(text):
    return Bytes(lambda _: text)


def play(job, seats=None, policy=None, **engine):
    return {t.seat: t for t in Engine(seats=seats or {}, **engine).run(policy or always("1"), [job])}


def rewards(trajectory):
    return [turn.reward for turn in trajectory.turns]


def test_each_seat_has_a_trajectory_and_earns_what_falls_to_it_until_its_next_turn():
    # 1 (1), black 2 (3), 1 (4), black 2 (6): black wins; each turn costs 0.25, the win pays 1, the loss -1
    seats = play(Job(task=RACE, index=0, id="g"), {"black": SeatConfig(policy=always("2"), prompt="You are black.")})
    agent, black = seats["agent"], seats["black"]
    assert [turn.action for turn in agent.turns] == ["1", "1"]
    assert [turn.action for turn in black.turns] == ["2", "2"]
    assert rewards(agent) == [-0.25, -1.25]
    assert agent.turns[1].terms == {"step": -0.25, "others": -1.0}
    assert rewards(black) == [-0.25, 0.75]
    assert (agent.score, agent.success, black.score, black.success) == (0.0, False, 1.0, True)
    assert (agent.id, agent.prompt) == ("g", None)
    assert (black.id, black.root, black.prompt) == ("g/black", "g/black", "You are black.")
    assert (agent.terminated, black.terminated, agent.final, black.final) == (True, True, black.final, agent.final)
    assert [turn.observation.text for turn in black.turns] == ["sum 1", "sum 4"]
    assert_rescored([agent, black])
    assert_trained_once([agent, black])


def test_a_seat_computed_elsewhere_is_not_waited_for_while_another_samples():
    class Far(Session):
        def step(self):
            waits.append(len(near.sessions[0]))
            return super().step()

        def poll(self):
            return super().step() if polls.append(1) or len(polls) % 3 == 0 else []

    class Near(Bytes):
        def session(self):
            self.sessions = [*getattr(self, "sessions", []), super().session()]
            return self.sessions[-1]

    class Remote(Bytes):
        def session(self):
            return Far(self)

    waits, polls, near = [], [], Near(lambda _: "1", pace=1)
    far = SeatConfig(policy=Remote(lambda _: "2"))
    jobs = [Job(task=RACE, index=0) for _ in range(6)]
    assert len(list(Engine(seats={"black": far}).run(near, jobs))) == 12
    assert polls
    assert set(waits) <= {0}


def test_a_model_in_the_other_seat_gives_the_agent_what_the_script_would():
    scripted = play(Job(task=RACE, index=0), policy=always("2"))["agent"]
    assert rewards(scripted) == [-0.25, 0.75]  # 2, black 1, 2
    seats = play(Job(task=RACE, index=0), {"black": SeatConfig(policy=always("1"))}, always("2"))["agent"]
    assert rewards(seats) == rewards(scripted)
    assert [t.observation for t in seats.turns] == [t.observation for t in scripted.turns]
    assert (seats.score, seats.stop) == (scripted.score, scripted.stop)


def test_one_policy_can_have_both_seats_and_a_frozen_one_says_so():
    policy = Bytes(lambda c: "2" if c.messages[0].text == "Win." else "1")
    seats = play(Job(task=RACE, index=0, prompt="Lose."), {"black": SeatConfig(prompt="Win.")}, policy)
    assert (seats["agent"].score, seats["black"].score) == (0.0, 1.0)
    assert len({c.noise for c in policy.heard}) == len(policy.heard)
    seats = play(Job(task=RACE, index=0, tags={"a": 1}), {"black": SeatConfig(policy=always("1"), trained=False)})
    assert (seats["agent"].tags, seats["black"].tags) == ({"a": 1}, {"a": 1, "trained": False})


def test_limits_and_budgets_are_the_agents():
    job = Job(task=RACE, index=0, options={"max_turns": 1})
    seats = play(job, {"black": SeatConfig(policy=always("1"))})
    scripted = play(job)
    assert {len(t.turns) for t in seats.values()} == {1}
    assert seats["agent"].stop == scripted["agent"].stop == "max_turns"
    assert seats["agent"].final.text == scripted["agent"].final.text == "sum 2"
    assert seats["agent"].score == 0.5
    assert seats["black"].final is None  # it was the agent's turn, and for its eyes
    seats = play(Job(task=RACE, index=0, budget=1), {"black": SeatConfig(policy=always("1"))})
    assert {(t.stop, len(t.turns)) for t in seats.values()} == {("budget", 1)}


def test_what_is_earned_before_a_seats_first_turn_goes_to_that_turn_and_forks_need_the_views_of_all():
    seats = play(Job(task=TRIO, index=0), {"black": SeatConfig(), "red": SeatConfig()}, always("x"))
    assert rewards(seats["agent"]) == [21.0, 1.0]  # 10 + 1, and 10 more by red's second turn
    assert seats["agent"].turns[0].terms == {"reward": 1.0, "others": 20.0}
    assert rewards(seats["black"]) == [21.0, 1.0]
    assert rewards(seats["red"]) == [11.0, 11.0]  # its last turn is followed by black's, which pays it 10
    assert {seat: t.score for seat, t in seats.items()} == {"agent": 0.5, "black": 1.0, "red": 0.0}
    plies = {seat: [turn.info["ply"] for turn in t.turns] for seat, t in seats.items()}
    assert plies == {"red": [0, 3], "agent": [1, 4], "black": [2, 5]}
    with pytest.raises(ReplayError, match="others"):
        fork(seats["agent"], 1)
    with pytest.raises(ReplayError, match="others"):
        fork(seats["red"], 1)
    configs = {"black": SeatConfig()}
    seats = play(Job(task=RACE, index=0, id="g"), configs, always("1"))
    (agent, black) = seats["agent"], seats["black"]
    forked = play(fork(black, 1, others=[agent]), configs, always("2"))
    assert [turn.action for turn in forked["black"].turns] == ["1", "2"]
    assert {seat: t.forked_at for seat, t in forked.items()} == {"agent": 2, "black": 1}


def test_the_environment_plays_the_seats_that_the_cast_leaves_out():
    whole = play(Job(task=TRIO, index=0), {"black": SeatConfig(), "red": SeatConfig()}, always("x"))
    partly = play(Job(task=TRIO, index=0), {"black": SeatConfig()}, always("x"))
    assert list(partly) == ["agent", "black"]
    assert rewards(partly["agent"]) == rewards(whole["agent"])
    assert rewards(partly["black"]) == rewards(whole["black"])
    assert partly["agent"].turns[0].observation.text == "red 0!"
    alone = play(Job(task=TRIO, index=0), policy=always("x"))
    assert list(alone) == ["agent"]
    assert rewards(alone["agent"]) == rewards(whole["agent"])


def test_forks_share_the_turns_of_all_seats():
    configs = {"black": SeatConfig(), "red": SeatConfig()}
    policy = Bytes()
    seats = play(Job(task=TRIO, index=0, id="g"), configs, policy)
    agent, *others = seats.values()
    job = fork(agent, 1, others=others)  # before ply 4: red, agent, black and red again
    assert [turn.info["ply"] for turn in job.prefix] == [0, 1, 2, 3]
    forked = play(job, configs, policy)
    assert {seat: t.forked_at for seat, t in forked.items()} == {"agent": 1, "black": 1, "red": 2}
    assert {seat: t.parent for seat, t in forked.items()} == {"agent": "g", "black": "g/black", "red": "g/red"}
    assert {seat: t.root for seat, t in forked.items()} == {"agent": "g", "black": "g/black", "red": "g/red"}
    assert {seat: rewards(t) for seat, t in forked.items()} == {seat: rewards(t) for seat, t in seats.items()}
    assert forked["agent"].turns[1].action != agent.turns[1].action
    everything = [*seats.values(), *forked.values()]
    assert_rescored(everything)
    assert_trained_once(everything)


def test_replaying_proves_all_seats():
    configs = {"black": SeatConfig(prompt="You are black."), "red": SeatConfig()}
    seats = play(Job(task=TRIO, index=0), configs, Bytes())
    agent, *others = seats.values()
    assert replay(agent, others=others).score == agent.score

    class Stops(Planner):
        def after_step(self, node):
            return Stop("enough") if node.seat == "black" else super().after_step(node)

    agent, *others = play(Job(task=TRIO, index=0), configs, Bytes(), planner=Stops()).values()
    assert [(t.seat, len(t.turns)) for t in (agent, *others)] == [("agent", 1), ("black", 0), ("red", 1)]
    assert replay(agent, others=others).score == 0.0


def test_lockstep_gives_the_same_bits_with_any_player_and_several_seats():
    def run(player):
        engine = Engine(
            seats={"black": SeatConfig(), "red": SeatConfig()}, lockstep=True, player=player, processes=1, concurrency=3
        )
        return list(engine.run(Bytes(pace=1), [Job(task=TRIO, index=i, id=f"g{i}") for i in range(5)]))

    inline = run("inline")
    assert [t.id for t in inline[:4]] == ["g0", "g0/black", "g0/red", "g1"]
    assert run("process") == inline
