"""An environment with the hints it gives and the scripted seats of its task.

An EnvHandle lives where its environment runs: in the engine's thread, in a thread of its own or in another process.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmgym.env import registry
from lmgym.env.pictures import encode
from lmgym.errors import BackendError, InstanceError
from lmgym.types import FIRST_SEAT, Message

ALONE = frozenset({FIRST_SEAT})
ENDING = ("seat", "score", "success", "seat_scores", "figures")  # of info, from the last of several steps

Answer = tuple[Mapping[str, Any], float, bool, bool, dict[str, Any]]  # of an environment's step
HintNames = Mapping[str, frozenset[str]]  # by seat: of {"oracle", "demonstrator", "admissible"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Task, split, options and seats of an environment; episodes of equal settings share one in turn."""

    task: str
    split: str
    options: Mapping[str, Any]
    seats: frozenset[str] = ALONE  # played by policies; the task's scripted players take the others

    def key(self) -> str:
        """Return a string that is equal for settings that can share an environment."""
        return json.dumps([self.task, self.split, self.options, sorted(self.seats)], sort_keys=True, default=repr)

    def opened(self) -> EnvHandle:
        """Make the environment here and return its handle."""
        return EnvHandle(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """An environment's answer to a reset, a step or a cut."""

    observation: Message
    seat: str  # whose turn it is
    info: Mapping[str, Any]
    reward: float = 0.0  # of the seat that acted
    terms: Mapping[str, float] = field(default_factory=dict)
    earned: Mapping[str, float] = field(default_factory=dict)  # by the seats that did not act
    terminated: bool = False
    truncated: bool = False
    hints: Mapping[str, Any] = field(default_factory=dict)  # for the seat on turn
    tools: tuple[Mapping[str, Any], ...] = ()  # of the seat on turn; empty after the end
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # PNG by digest
    state: bytes | None = None  # of the environment after the step, if it was to be saved and could be


class EnvHandle:
    """One environment."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        options = {"others": "scripted" if setting.seats == ALONE else "caller", **setting.options}
        self.env = registry.build(setting.task, split=setting.split, **options)
        self.task = self.env.unwrapped
        self.hint_names: HintNames = {}
        # by name of the hint: its actions, kept while the policy follows them, and the latest of these
        self.hinted: dict[str, tuple[Iterator[str], str | None]] = {}
        self.latest: StepResult | None = None  # of the running episode

    def reset(self, seed: int, options: Mapping[str, Any], hint_names: HintNames) -> StepResult:
        """Open an episode with the environment's reset `options`."""
        self.hint_names = hint_names
        self.hinted.clear()
        observation, info = self.env.reset(seed=seed, options=dict(options))
        return self._result((observation, 0.0, False, False, info), None)

    def step(self, action: str, reseed: int | None = None, saving: bool = False) -> StepResult:
        """Play an action of the seat on turn; `reseed` seeds the chance of the rest of the episode.

        With `saving`, the result has the environment's state, if the task can save it.
        """
        if reseed is not None:
            self.task.reseed(reseed)
        self.hinted = {name: hinted for name, hinted in self.hinted.items() if hinted[1] == action}
        return self._result(self.env.step(action), None if self.latest is None else self.latest.seat, saving)

    def restore(self, result: StepResult, hint_names: HintNames) -> StepResult:
        """Continue the episode whose latest result, with its state, is `result`; return it as a step would."""
        if result.state is None:
            raise InstanceError(f"{self.setting.task}: the result to continue from has no state")
        self.hint_names = hint_names
        self.hinted.clear()
        self.env.restore_episode(result.state)
        self.latest = result
        return result

    def cut(self) -> StepResult:
        """Truncate the episode and return its last observation with score and success."""
        if self.latest is None:
            raise InstanceError(f"{self.setting.task}: no episode is open; call reset() first")
        return StepResult(
            observation=self.latest.observation, seat=self.latest.seat, info=self.task.cut(), truncated=True
        )

    def ask(self, name: str) -> Any:
        """Return a hint for the present state: the next action of the "oracle" or "demonstrator", or "admissible"."""
        if name == "admissible":
            return self.task.admissible()
        actions, _ = self.hinted.get(name, (iter(()), None))
        action = next(actions, None)
        if action is None:
            actions = self.task.oracle() if name == "oracle" else self.task.demonstrator()
            action = next(actions, None)
        self.hinted[name] = actions, action
        return action

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _result(self, answer: Answer, actor: str | None, saving: bool = False) -> StepResult:
        """Let scripted seats play until a seat of the engine is on turn or the episode ends; return the result."""
        observation, reward, terminated, truncated, info = answer
        earned = {seat: gain for seat, gain in info.get("seat_rewards", {}).items() if seat != actor}
        terms = info["reward_terms"]
        if info["seat"] not in self.setting.seats and not (terminated or truncated):
            gains: dict[str, float] = {}
            observation, terminated, truncated, info = self._play_scripted(info, gains)
            if own := gains.pop(actor or "", 0.0):
                reward, terms = float(reward) + own, {**terms, "others": terms.get("others", 0.0) + own}
                info["reward_terms"] = terms
            earned = {seat: earned.get(seat, 0.0) + gains.get(seat, 0.0) for seat in {**earned, **gains}}
        pictures = [encode(picture) for picture in observation.get("images", ())]
        ended = terminated or truncated
        hint_names = () if ended else self.hint_names.get(info["seat"], ())
        hints = {name: self.ask(name) for name in hint_names}
        self.latest = StepResult(
            observation=Message(role="user", text=observation["text"], images=tuple(name for name, _ in pictures)),
            seat=info["seat"],
            info=info,
            reward=float(reward),
            terms=terms,
            earned=earned,
            terminated=terminated,
            truncated=truncated,
            hints=hints,
            tools=() if ended else tuple(self.task.tools(info["seat"])),
            pictures=dict(pictures),
            # an oracle that is followed cannot be saved
            state=self.env.save_episode() if saving and not (ended or self.hinted) else None,
        )
        return self.latest

    def _play_scripted(
        self, info: dict[str, Any], gains: dict[str, float]
    ) -> tuple[Mapping[str, Any], bool, bool, dict[str, Any]]:
        """Let the task's scripted players act until a seat of the engine is on turn; add rewards to `gains` by seat."""
        while True:
            seat = info["seat"]
            observation, reward, terminated, truncated, latest = self.env.step(self.task.scripted(seat))
            for other, amount in latest.get("seat_rewards", {seat: float(reward)}).items():
                gains[other] = gains.get(other, 0.0) + amount
            info |= {name: latest[name] for name in ENDING if name in latest}
            if info["seat"] in self.setting.seats or terminated or truncated:
                return observation, terminated, truncated, info


class EnvHost:
    """Environments by slot, called by method name."""

    def __init__(self) -> None:
        self.handles: dict[int, Any] = {}  # the value of a setting's opened(): for the engine an EnvHandle

    def call(self, slot: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a slot's handle, or open or close it; None if there is no answer, as for a slot that broke before."""
        if method == "open":
            self.handles[slot] = arguments[0].opened()
            return None
        if method == "close":
            self.drop(slot)
            return None
        handle = self.handles.get(slot)
        return None if handle is None else getattr(handle, method)(*arguments)

    def split(self, slot: int) -> EnvHost:
        """Keep only this slot; return a host with all others."""
        rest = EnvHost()
        for other in list(self.handles):  # in place: the slot's own call may be running
            if other != slot:
                rest.handles[other] = self.handles.pop(other)
        return rest

    def drop(self, slot: int) -> None:
        """Close a slot's environment, which may be broken."""
        handle = self.handles.pop(slot, None)
        if handle is not None:
            with contextlib.suppress(BackendError):  # it is gone either way
                handle.close()

    def close(self) -> None:
        """Close all environments."""
        for slot in list(self.handles):
            self.drop(slot)
