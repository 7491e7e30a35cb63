"""An environment and what stands beside it: the hints it gives and the seats that nobody here plays.

A EnvHandle lives where its environment lives: in the engine's thread, in one of its own, or in another process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmgym.env import registry
from lmgym.env.pictures import encode
from lmgym.errors import BackendError, InstanceError
from lmgym.types import FIRST_SEAT, Message

ALONE = frozenset({FIRST_SEAT})
ENDING = ("seat", "score", "success", "seat_scores")  # of info, from the last of several steps

Answer = tuple[Mapping[str, Any], float, bool, bool, dict[str, Any]]  # of an environment's step
Wants = Mapping[str, frozenset[str]]  # seat -> of {"oracle", "demonstrator", "admissible"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Which environment; episodes of equal settings take turns in one."""

    task: str
    split: str
    options: Mapping[str, Any]
    seats: frozenset[str] = ALONE  # that the engine's policies play; the task's scripted players have the others

    def key(self) -> str:
        """The same for settings that can share an environment."""
        return json.dumps([self.task, self.split, self.options, sorted(self.seats)], sort_keys=True, default=repr)

    def opened(self) -> EnvHandle:
        """Return the environment, made here."""
        return EnvHandle(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """What an environment answered."""

    observation: Message
    seat: str  # whose turn it is
    info: Mapping[str, Any]
    reward: float = 0.0  # of the seat that acted
    terms: Mapping[str, float] = field(default_factory=dict)
    earned: Mapping[str, float] = field(default_factory=dict)  # by the seats that did not act
    terminated: bool = False
    truncated: bool = False
    hints: Mapping[str, Any] = field(default_factory=dict)  # for the seat on turn
    tools: tuple[Mapping[str, Any], ...] = ()  # after a reset only
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # PNG by digest


class Advice:
    """An iterator of actions, kept while what it said was done."""

    def __init__(self, actions: Iterator[str]) -> None:
        self.actions = actions
        self.latest: str | None = None

    def following(self) -> str | None:
        """The next action, None where there is none left."""
        self.latest = next(self.actions, None)
        return self.latest


class EnvHandle:
    """One environment."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        options = {"others": "scripted" if setting.seats == ALONE else "caller", **setting.options}
        self.env = registry.build(setting.task, split=setting.split, **options)
        self.task = self.env.unwrapped
        self.wants: Wants = {}
        self.advice: dict[str, Advice] = {}
        self.shown: StepResult | None = None

    def reset(self, seed: int, choice: Mapping[str, Any], wants: Wants) -> StepResult:
        """Open an episode; `choice` are the options of the environment's reset."""
        self.wants = wants
        self.advice.clear()
        observation, info = self.env.reset(seed=seed, options=dict(choice))
        return self._settled((observation, 0.0, False, False, info), None, tuple(self.task.tools()))

    def step(self, action: str, reseed: int | None = None) -> StepResult:
        """Play an action of the seat on turn, after fresh chance where `reseed` is given."""
        if reseed is not None:
            self.task.reseed(reseed)
        for name, advice in list(self.advice.items()):
            if advice.latest != action:
                del self.advice[name]
        return self._settled(self.env.step(action), self.latest.seat)

    def cut(self) -> StepResult:
        """End the episode where it stands."""
        latest = self.latest
        return StepResult(observation=latest.observation, seat=latest.seat, info=self.task.cut(), truncated=True)

    def ask(self, name: str) -> Any:
        """What the environment advises in its present state: "oracle", "demonstrator" or "admissible"."""
        if name == "admissible":
            return self.task.admissible()
        advice = self.advice.get(name)
        if advice is not None and (action := advice.following()) is not None:
            return action
        advice = self.advice[name] = Advice(self.task.oracle() if name == "oracle" else self.task.demonstrator())
        return advice.following()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    @property
    def latest(self) -> StepResult:
        """The last answer of the running episode."""
        if self.shown is None:
            raise InstanceError(f"{self.setting.task}: no episode is open; call reset() first")
        return self.shown

    def _settled(self, answer: Answer, actor: str | None, tools: tuple[Mapping[str, Any], ...] = ()) -> StepResult:
        """What the engine is told, once a seat it plays is on turn or the episode is over."""
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
        wants = () if terminated or truncated else self.wants.get(info["seat"], ())
        self.shown = StepResult(
            observation=Message(role="user", text=observation["text"], images=tuple(name for name, _ in pictures)),
            seat=info["seat"],
            info=info,
            reward=float(reward),
            terms=terms,
            earned=earned,
            terminated=terminated,
            truncated=truncated,
            hints={name: self.ask(name) for name in wants},
            tools=tools,
            pictures=dict(pictures),
        )
        return self.shown

    def _play_scripted(
        self, info: dict[str, Any], gains: dict[str, float]
    ) -> tuple[Mapping[str, Any], bool, bool, dict[str, Any]]:
        """Let the task's own players move until a seat of the engine is on turn; adds up what each seat gains."""
        while True:
            seat = info["seat"]
            observation, reward, terminated, truncated, latest = self.env.step(self.task.scripted(seat))
            for other, amount in latest.get("seat_rewards", {seat: float(reward)}).items():
                gains[other] = gains.get(other, 0.0) + amount
            info |= {name: latest[name] for name in ENDING if name in latest}
            if info["seat"] in self.setting.seats or terminated or truncated:
                return observation, terminated, truncated, info


class EnvHost:
    """EnvHandles by slot, called by the name of what they shall do."""

    def __init__(self) -> None:
        self.stages: dict[int, Any] = {}  # what a setting opens: for the engine a EnvHandle

    def call(self, slot: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Do it; None where there is nothing to tell, a slot that broke before included."""
        if method == "open":
            self.stages[slot] = arguments[0].opened()
            return None
        if method == "close":
            self.drop(slot)
            return None
        stage = self.stages.get(slot)
        if stage is None:
            return None
        return getattr(stage, method)(*arguments)

    def drop(self, slot: int) -> None:
        """Close a slot's environment, which may be broken."""
        stage = self.stages.pop(slot, None)
        if stage is not None:
            try:
                stage.close()
            except BackendError:
                return  # it is gone either way

    def close(self) -> None:
        """Close all environments."""
        for slot in list(self.stages):
            self.drop(slot)
