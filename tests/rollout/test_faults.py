"""Faults: each separate error counts, and one event counts once however many episodes it voids."""

import pytest

from lmgym.errors import BackendError
from lmgym.rollout.stats import Stats
from lmgym.rollout.workers import Fault


def test_one_event_that_voids_many_episodes_is_one_fault():
    stats = Stats()
    for slot in range(50):
        stats.void(Fault((slot,), BackendError("Chromium died", event="death of process 7")), 1)
    assert (stats.voided, stats.faults) == (50, 1)


def test_errors_without_an_event_are_faults_each_and_stop_the_run_above_a_tenth():
    stats = Stats(played=30)
    for slot in range(3):
        stats.void(Fault((slot,), BackendError("lost")), 1)
    assert stats.faults == 3
    with pytest.raises(BackendError, match="4 faults in 34 episodes"):
        stats.void(Fault((3,), BackendError("lost")), 1)
