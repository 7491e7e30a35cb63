"""The rollout engine: policies play jobs in environments, and trajectories come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from lmgym.errors import RecipeError
from lmgym.policy.base import Policy
from lmgym.rollout.context import Context, Full
from lmgym.rollout.env_pool import EnvPool, Kind
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.planner import Planner
from lmgym.rollout.run import Run, Stats
from lmgym.types import Job, Trajectory


@dataclass(kw_only=True)
class Engine:
    """Plays jobs, many at once.

    Within `with engine:` its environments are kept from run to run; otherwise they are closed when a run ends. A run
    is bit-reproducible where players are inline, or in lockstep.
    """

    context: Context = field(default_factory=Full)
    planner: Planner = field(default_factory=Planner)
    seats: Mapping[str, SeatConfig] = field(
        default_factory=dict
    )  # by seat; the task's own players have the seats not named
    concurrency: int = 64  # episodes live at once
    lockstep: bool = False  # a call waits for all live environments and takes them in the order of jobs
    player: Kind | None = None  # where environments live; None: as their SPECs say
    timeout: float | None = 600.0  # seconds of one call to an environment in a thread or a process
    processes: int | None = None  # at most; None: one a core
    max_tokens: int | None = None  # of an answer; None leaves it to the policy
    pictures: MutableMapping[str, bytes] = field(default_factory=dict)  # PNGs by digest, as messages name them
    stats: Stats = field(default_factory=Stats)  # of the latest run

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise RecipeError(f"concurrency must be at least 1; got {self.concurrency}")
        self._env_pool: EnvPool | None = None
        self._kept = False
        self._running = False
        self._named = 0

    def run(self, policy: Policy, jobs: Iterable[Job]) -> Iterator[Trajectory]:
        """Play `jobs`, drawn as there is room for them; `policy` has every seat that `seats` gives to nobody else.

        Trajectories come as their episodes end; in lockstep in the order of jobs. Each seat of an episode has its
        own. Raises BackendError where more than a tenth of the episodes break.
        """
        if self._running:
            raise RecipeError("this engine is running: exhaust or close the run before, or use another engine")
        self._running, self.stats = True, Stats()
        if self._env_pool is None:
            self._env_pool = EnvPool(timeout=self.timeout, processes=self.processes, spare=self.concurrency)
        whole = False
        try:
            yield from Run(self, policy, iter(jobs), self._env_pool).play()
            whole = True
        finally:
            self._running = False
            if not (whole and self._kept):
                self.close()

    def close(self) -> None:
        """Close all environments."""
        if self._env_pool is not None:
            self._env_pool.close()
            self._env_pool = None

    def new_id(self) -> str:
        """Name for a job that has none; never given twice by this engine."""
        self._named += 1
        return f"e{self._named - 1}"

    def pids(self) -> list[int]:
        """Of the processes that environments live in."""
        return self._env_pool.pids() if self._env_pool else []

    def __enter__(self) -> Self:
        """Keep environments until the end of the block."""
        self._kept = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        self._kept = False
        self.close()
