"""What is known of a task without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Standard:
    """What a leaderboard entry plays, so that nothing can be left out or picked."""

    split: str = ""  # every instance of it; "": test where there is one, else the last
    tries: int = 1  # of each instance


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """The card of a task in code. An id is a promise: if golden episodes change, the id gets the next version."""

    id: str  # "lmgym/Name-v0"
    entry_point: str  # "package.module:Class", a TextEnv
    summary: str  # one sentence
    max_turns: int  # of the agent; then the episode is cut and scored by `score_if_cut`
    splits: Mapping[str, int]  # instances by split; 0 where official data says how many
    score: str  # what 1 means, in a sentence
    references: Mapping[str, float | str]  # known scores with their origin: null, random, oracle, published
    extras: tuple[str, ...] = ()  # of setup.cfg, that the task needs
    player: Literal["inline", "thread", "process"] = "inline"
    deterministic: bool = True  # same seed and actions, same episode
    source: str = ""  # where rules and data come from, with licence
    held_out: tuple[str, ...] = ()  # splits on which training bars a leaderboard entry
    overlap: str = ""  # why splits share instances, where they must: "a board game has one start"
    options: Mapping[str, Any] = field(default_factory=dict)  # what this id sets; gym.make may override
    goldens: Literal["exact", "outcome"] = "exact"  # outcome: where pixels or trees differ between builds
    standard: Standard = field(default_factory=Standard)
    part_of: str = ""  # id of the task that this is one page, game or level of: listed, and carded, with it
    runs_code: bool = False  # actions are executed: a stranger's are replayed in an isolating sandbox only
    # options that strangers may set, and to what
    public: Mapping[str, range | tuple[Any, ...]] = field(default_factory=dict)
    told: tuple[str, ...] = ()  # names of its own in info, beside the base class's, that strangers may see
    partial: str = ""  # what a score above 0 is called, where others count it as success: reports have its share
    elsewhere: bool = False  # played at a server, which has the instances: no goldens, table or entries of its own

    @property
    def name(self) -> str:
        """The task's folder, as in `make baseline TASK=name`."""
        return self.entry_point.partition(":")[0].split(".")[-2]

    @property
    def package(self) -> str:
        """Import name of the task's folder."""
        return self.entry_point.partition(":")[0].rpartition(".")[0]
