import pytest
from stateflow import Machine, Refused, Transition


def door():
    return Machine(
        "closed",
        [
            Transition("closed", "open", "open", guard=lambda data: not data.get("locked")),
            Transition("open", "close", "closed"),
            Transition("closed", "lock", "closed", action=lambda data: data.update(locked=True)),
            Transition("any", "burn", "ash"),
            Transition("ruin", "rebuild", "closed"),
        ],
        parents={"open": "any", "closed": "any"},
    )


def test_transitions():
    machine = door()
    assert machine.send("open") == "open"
    assert machine.send("close") == "closed"
    assert machine.history == ["closed", "open", "closed"]


def test_guards():
    machine = door()
    machine.send("lock")
    with pytest.raises(Refused, match="closed does not take open"):
        machine.send("open")
    assert machine.send("open", locked=False) == "open"


def test_refused_events_change_nothing():
    machine = door()
    with pytest.raises(Refused):
        machine.send("close", note="x")
    assert machine.data == {}
    assert machine.history == ["closed"]


def test_states_take_the_events_of_enclosing_ones():
    machine = door()
    assert machine.inside("any")
    assert machine.send("burn") == "ash"
    assert not machine.inside("any")


def test_inner_transitions_come_first():
    machine = Machine("a", [Transition("all", "go", "x"), Transition("a", "go", "y")], parents={"a": "all"})
    assert machine.send("go") == "y"


def test_events():
    machine = door()
    assert machine.events() == ["burn", "lock", "open"]
    machine.send("lock")
    assert machine.events() == ["burn", "lock"]


def test_watchers_learn_what_is_left_and_entered():
    machine = Machine("a1", [Transition("a1", "go", "b1")], parents={"a1": "a", "b1": "b", "a": "top", "b": "top"})
    log = []
    machine.watchers.append(lambda left, entered: log.append((left, entered)))
    machine.send("go")
    assert log == [(["a1", "a"], ["b", "b1"])]


def test_self_transitions_leave_and_enter():
    machine = door()
    assert machine.path("closed", "closed") == (["closed"], ["closed"])


def test_run_stops_at_the_first_refusal():
    machine = door()
    assert machine.run(["open", "close", "close", "open"]) == 2
    assert machine.state == "closed"


def test_unreachable():
    assert door().unreachable() == ["ruin"]
