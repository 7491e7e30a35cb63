"""Counts of a run of the engine, and the limit of its faults."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmgym.errors import BackendError
from lmgym.rollout.workers import Fault

MAX_FAULT_SHARE = 0.1  # of the episodes that ended
MIN_EPISODES = 20  # ended episodes from which on the share of faults is judged


@dataclass
class Stats:
    """Counts of a run."""

    played: int = 0  # episodes that ended
    steps: int = 0  # actions that environments answered
    restored: int = 0  # forks that started from a saved state instead of replaying their prefix
    voided: int = 0  # episodes lost to a broken backend
    retried: int = 0  # voided episodes that were queued again
    abandoned: int = 0  # jobs given up after three voided episodes
    faults: int = 0  # causes: the death of one worker may void many episodes
    latest: str = ""  # message of the latest fault
    events: set[str] = field(default_factory=set)  # faults that raise an error in each of the episodes they void

    def void(self, fault: Fault, episodes: int) -> None:
        """Count a fault. Raises BackendError if faults exceed a tenth of the episodes that ended."""
        self.faults += fault.error.event not in self.events
        if fault.error.event:
            self.events.add(fault.error.event)
        self.latest = str(fault.error)
        self.voided += episodes
        ended = self.played + self.voided
        if ended >= MIN_EPISODES and self.faults > MAX_FAULT_SHARE * ended:
            raise BackendError(f"{self.faults} faults in {ended} episodes; the last: {self.latest}") from fault.error
