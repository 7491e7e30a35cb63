"""The base class of every task: an author writes `begin` and `act`, this makes a Gymnasium environment of them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lmgym.env.spaces import Images, UnicodeText, clean
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.types import FIRST_SEAT

Observation = dict[str, Any]  # {"text": str} and, where the task shows pictures, {"images": uint8 (n, H, W, 3)}
ScriptedPlayer = Callable[[str], str]  # the observation's text -> an action


@dataclass(frozen=True)
class Reply:
    """A task's answer to one action, or the first words of an episode."""

    text: str
    _: KW_ONLY
    images: tuple[NDArray[np.uint8], ...] = ()
    reward: float | Mapping[str, float] = 0.0  # of the seat that acted; by name where it is shaped
    done: bool = False
    score: float | Mapping[str, float] | None = None  # in [0, 1], by seat where there are several; when done
    valid: bool = True  # False: the action was none; it was answered and costs a turn
    seat: str = FIRST_SEAT  # whose turn it is next
    others: Mapping[str, float] = field(default_factory=dict)  # what the seats that did not act earned


class TextEnv(gymnasium.Env[Observation, str]):
    """A task. Subclasses set SPEC and write `begin` and `act`; all other hooks are optional.

    An instance depends on `(split, index)` and the options alone; chance during an episode comes from
    `self.np_random`. What a policy does wrong is answered with `valid=False`; what breaks in a backend is raised as
    `BackendError`.
    """

    SPEC: ClassVar[TaskSpec]
    PICTURES: ClassVar[Images | None] = None  # set where observations bring pictures
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        *,
        task: TaskSpec | None = None,
        split: str = "train",
        others: str = "scripted",
        render_mode: str | None = None,
    ) -> None:
        self.task = task or self.SPEC
        if split not in self.task.splits:
            raise InstanceError(f"{self.task.id} has no split {split!r}; it has {', '.join(self.task.splits)}")
        self.split = split
        self.others = others
        self.render_mode = render_mode
        spaces: dict[str, gymnasium.Space[Any]] = {"text": UnicodeText()}
        if self.PICTURES is not None:
            spaces["images"] = self.PICTURES
        self.observation_space = gymnasium.spaces.Dict(spaces)
        self.action_space = UnicodeText()
        self._player = None if others in ("scripted", "caller") else _scripted_player(others)
        self.instance_name = ""
        self.shown = ""  # the last observation's text
        self._seat = FIRST_SEAT
        self._over = True

    # What a task's author writes -------------------------------------------------------------------------------

    def begin(self, index: int) -> Reply:
        """Open instance `index` of `self.split`."""
        raise NotImplementedError

    def act(self, action: str) -> Reply:
        """Answer one action of the seat whose turn it is. Any string may come."""
        raise NotImplementedError

    def size(self) -> int:
        """Instances of `self.split`."""
        return self.task.splits[self.split]

    def standing(self) -> float:
        """Score in [0, 1] if the episode ended now."""
        return 0.0

    def solved(self, score: float) -> bool:
        """Whether an episode that ended with `score` is a success."""
        return score >= 1.0

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open an authored instance."""
        raise InstanceError(f"{self.task.id} takes no authored instances; use options={{'index': i}}")

    def oracle(self) -> Iterator[str]:
        """Yield actions that solve the episode from its present state, knowing everything."""
        raise InstanceError(f"{self.task.id} has no oracle")

    def demonstrator(self) -> Iterator[str]:
        """Yield actions of a good player who knows only what was shown. Where there is none, the oracle's."""
        return self.oracle()

    def admissible(self) -> list[str] | None:
        """Actions that make sense in the present state; None where they cannot be listed."""
        return None

    def scripted(self, seat: str) -> str:
        """Return the action of `seat`, which the caller does not play."""
        raise InstanceError(f"{self.task.id} has no scripted player for seat {seat!r}")

    def tools(self) -> list[dict[str, Any]]:
        """JSON schemas of the calls that actions are, if they are tool calls."""
        return []

    def answer(self) -> str | None:
        """Return the hidden truth of the instance, for credit that needs it."""
        return None

    def fingerprint(self) -> str | None:
        """Return what tells the instance just opened from others, where the first words and actions do not."""
        return None

    # Gymnasium's side ------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open an episode: `options={"index": i}`, `{"instance": {...}}`, or an index drawn from the seed."""
        super().reset(seed=seed)
        choice = dict(options or {})
        instance, index = choice.pop("instance", None), choice.pop("index", None)
        if choice:
            raise InstanceError(f"reset takes the options 'index' and 'instance'; got {', '.join(map(repr, choice))}")
        if instance is not None:
            self.instance_name, reply = "authored", self.load(instance)
        else:
            index = self._checked(index)
            self.instance_name, reply = f"{self.split}/{index}", self.begin(index)
        self._over = False
        info: dict[str, Any] = {"instance": self.instance_name, "valid": True, "reward_terms": {}}
        if (answer := self.answer()) is not None:
            info["answer"] = answer
        reply, earned = self._play_others(reply)
        if any(earned.values()):
            info["seat_rewards"] = earned
        return self._observation(reply), {**info, "seat": reply.seat}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer an action of the seat whose turn it is; `reward` is that seat's."""
        if self._over:
            raise InstanceError(f"{self.task.id}: the episode is over; call reset() first")
        actor = self._seat
        first = self.act(clean(action))
        terms = dict(first.reward) if isinstance(first.reward, Mapping) else {"reward": float(first.reward)}
        reply, earned = self._play_others(first)
        earned = {seat: first.others.get(seat, 0.0) + earned.get(seat, 0.0) for seat in {*first.others, *earned}}
        if actor in earned:
            terms["others"] = earned.pop(actor)
        reward = math.fsum(terms.values())
        info: dict[str, Any] = {"instance": self.instance_name, "valid": first.valid, "reward_terms": terms}
        info["seat"] = reply.seat
        if earned:
            info["seat_rewards"] = {actor: reward, **earned}
        if reply.done:
            info |= self._ending(reply.score)
        return self._observation(reply), reward, reply.done, False, info

    def cut(self) -> dict[str, Any]:
        """End the episode from outside and return what `info` owes: score and success by `standing`."""
        return self._ending(self.standing())

    def reseed(self, seed: int) -> None:
        """Give the rest of the episode fresh chance."""
        self.np_random = np.random.default_rng(seed)

    def render(self) -> str | None:
        """Return the last observation's text in mode "ansi"."""
        return self.shown if self.render_mode == "ansi" else None

    # Inside ----------------------------------------------------------------------------------------------------

    def _checked(self, index: Any) -> int:
        size = self.size()
        if size < 1:
            raise InstanceError(f"{self.task.id} finds no instances for split {self.split!r}")
        if index is None:
            index = self.np_random.integers(size)
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < size:
            raise InstanceError(f"{self.task.id} {self.split} has instances 0 to {size - 1}; got index {index!r}")
        return int(index)

    def _play_others(self, reply: Reply) -> tuple[Reply, dict[str, float]]:
        """Play the seats the caller does not, until it is the agent's turn; what was earned meanwhile, by seat."""
        earned: dict[str, float] = {}
        while self.others != "caller" and reply.seat != FIRST_SEAT and not reply.done:
            seat, self._seat = reply.seat, reply.seat
            action = self._player(reply.text) if self._player else self.scripted(seat)
            reply = self.act(clean(action))
            own = math.fsum(reply.reward.values()) if isinstance(reply.reward, Mapping) else float(reply.reward)
            for other, amount in {**reply.others, seat: own}.items():
                earned[other] = earned.get(other, 0.0) + amount
        self._seat = reply.seat
        return reply, earned

    def _ending(self, score: float | Mapping[str, float] | None) -> dict[str, Any]:
        self._over = True
        scores = dict(score) if isinstance(score, Mapping) else {FIRST_SEAT: score}
        own = scores[FIRST_SEAT]
        if own is None or not 0.0 <= own <= 1.0:
            raise ValueError(f"{self.task.id} must end with a score in [0, 1]; got {own}")
        info: dict[str, Any] = {"score": float(own), "success": bool(self.solved(own))}
        return {**info, "seat_scores": scores} if len(scores) > 1 else info

    def _observation(self, reply: Reply) -> Observation:
        self.shown = clean(reply.text)
        observation: Observation = {"text": self.shown}
        if self.PICTURES is not None:
            empty = np.zeros((0, self.PICTURES.height, self.PICTURES.width, 3), np.uint8)
            observation["images"] = np.stack(reply.images) if reply.images else empty
        return observation


def _scripted_player(name: str) -> ScriptedPlayer:
    """Load `python:module:function`, which maps an observation's text to an action."""
    kind, _, target = name.partition(":")
    module, _, function = target.partition(":")
    if kind != "python" or not module or not function:
        raise InstanceError(
            f"others={name!r}: an environment takes 'scripted', 'caller' or 'python:module:function'; "
            "for a model in another seat use the rollout engine's cast"
        )
    try:
        player: ScriptedPlayer = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InstanceError(f"others={name!r} cannot be loaded: {error}") from error
    return player
