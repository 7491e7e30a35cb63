"""Specification of a task, which is known without importing its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Standard:
    """The episodes of a leaderboard entry, fixed so that none can be left out or picked."""

    split: str = ""  # all of its instances; "": test if there is one, else the last
    tries: int = 1  # of each instance


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """A task's specification. An id is a promise: if golden episodes change, it gets the next version."""

    id: str  # "lmgym/Name-v0"
    entry_point: str  # "package.module:Class", a TextEnv
    summary: str  # one sentence
    max_turns: int  # of the agent; then the episode is truncated and scored by `score_if_cut`
    splits: Mapping[str, int]  # instances by split; 0 if official data determines the number
    score: str  # meaning of score 1, in a sentence
    references: Mapping[str, float | str]  # known scores by origin: null, random, oracle, published
    vector_entry_point: str = ""  # "package.module:Class", a VectorEnv, registered as "lmgym/NameVector-v0"
    extras: tuple[str, ...] = ()  # of setup.cfg that the task needs
    instructions: str = ""  # for models that are not trained on the task, if observations do not say how to act
    answer_tokens: int = 32  # limit of an answer of a local model, unless one is set
    prose: bool = False  # an action is a whole text, such as a message or a program, in a form that the task explains
    seats: tuple[str, ...] = ()  # beside the agent's, such as "user" or "black"
    parallel_calls: bool = False  # an action may hold several tool calls, executed in order
    thoughts: bool = (
        False  # the thinking of an answer is part of the action, in `<think>` and `</think>` before its words
    )
    player: Literal["inline", "thread", "process"] = "inline"
    concurrency: int | None = None  # most episodes at once, where each has large programs of its own
    deterministic: bool = True  # the same seed and actions make the same episode
    source: str = ""  # origin and licence of rules and data
    held_out: tuple[str, ...] = ()  # splits on which training bars a leaderboard entry
    overlap: str = ""  # reason why splits share instances: "a board game has one start"
    options: Mapping[str, Any] = field(default_factory=dict)  # defaults of this id; gym.make may override them
    goldens: Literal["exact", "outcome"] = "exact"  # outcome: if pixels or trees differ between builds
    standard: Standard = field(default_factory=Standard)
    part_of: str = ""  # id of the task that this is a page, game or level of, and whose card it shares
    runs_code: bool = False  # actions are executed as code: strangers' actions are replayed in a sandbox only
    sandboxed: bool = False  # with `runs_code`: they run in sandboxes of the task, so replays need none around them
    call_timeout: float = 0.0  # seconds that a reset or a step may take, if more than the engine allows
    replay_timeout: float = 0.0  # seconds that the replay of an episode may take, if more than `lmgym verify` allows
    # options that strangers may set, with the allowed values
    public: Mapping[str, range | tuple[Any, ...]] = field(default_factory=dict)
    public_info: tuple[str, ...] = ()  # the task's own keys of info that strangers may see
    partial: str = ""  # name of a score above 0, if others count it as success: reports show its share
    remote: bool = False  # played on a server that has the instances: no goldens, table or entries of its own

    @property
    def isolated(self) -> bool:
        """Return True if strangers' episodes may be replayed only inside a sandbox."""
        return self.runs_code and not self.sandboxed

    @property
    def name(self) -> str:
        """Name of the task's folder, as in `make baseline TASK=name`."""
        return self.entry_point.partition(":")[0].split(".")[-2]

    @property
    def package(self) -> str:
        """Import name of the task's folder."""
        return self.entry_point.partition(":")[0].rpartition(".")[0]
