"""The base class of every task: an author writes `begin` and `act`, this makes a Gymnasium environment of them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from lmgym.env.spaces import Images, UnicodeText, clean
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.types import FIRST_SEAT

Observation = dict[str, Any]  # {"text": str} and, where the task shows pictures, {"images": uint8 (n, H, W, 3)}
ScriptedPlayer = Callable[[str], str]  # the observation's text -> an action


@dataclass
class Reply:
    """A task's answer to one action, or the first words of an episode. Made at every step and kept by nobody."""

    text: str
    _: KW_ONLY
    images: tuple[NDArray[np.uint8], ...] = ()
    reward: float | Mapping[str, float] = 0.0  # of the seat that acted; by name where it is shaped
    done: bool = False
    score: float | Mapping[str, float] | None = None  # in [0, 1], by seat where there are several; when done
    valid: bool = True  # False: the action was none; it was answered and costs a turn
    seat: str = FIRST_SEAT  # whose turn it is next
    others: Mapping[str, float] = field(default_factory=dict)  # what the seats that did not act earned
    points: Sequence[tuple[float, float]] = ()  # x and y where the action pointed, in pixels of the picture it answers


class ResetNeeded(InstanceError, gymnasium.error.ResetNeeded):
    """No episode is open."""


class TextEnv(gymnasium.Env[Observation, str]):
    """A task. Subclasses set SPEC and write `begin` and `act`; all other hooks are optional.

    An instance depends on `(split, index)` and the options alone; chance during an episode comes from
    `self.np_random`. What a policy does wrong is answered with `valid=False`; what breaks in a backend is raised as
    `BackendError`.
    """

    SPEC: ClassVar[TaskSpec]
    PICTURES: ClassVar[Images | None] = None  # set where observations bring pictures
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}
    _np_random_made: np.random.Generator | None = None
    _np_random_due: int | None = None  # seed of the generator that is to be made

    def __init__(
        self,
        *,
        spec: TaskSpec | None = None,
        split: str = "train",
        others: str = "scripted",
        render_mode: str | None = None,
    ) -> None:
        self.task = spec or self.SPEC
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

    def score_if_cut(self) -> float | Mapping[str, float]:
        """Score in [0, 1] if the episode ended now; by seat where there are several."""
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

    def pointing(self, x: float, y: float) -> str | None:
        """Return the action that clicks pixel (x, y) of the last picture; None where none does."""
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

    def title(self, index: int) -> str | None:
        """Return what names an instance of official data, however much of it is present; None for all other data."""
        return None

    def titled(self, title: str) -> int | None:
        """Return the index of the instance that has this title, None where it is not here."""
        return None

    # Gymnasium's side ------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open an episode: `options={"index": i}`, `{"instance": {...}}`, or an index drawn from the seed."""
        self._seed(seed)
        choice = options or {}
        if strange := [name for name in choice if name not in ("index", "instance")]:
            raise InstanceError(f"reset takes the options 'index' and 'instance'; got {', '.join(map(repr, strange))}")
        if (instance := choice.get("instance")) is not None:
            self.instance_name, reply = "authored", self.load(instance)
        else:
            index = self._checked(choice.get("index"))
            self.instance_name, reply = f"{self.split}/{index}", self.begin(index)
        self._over = False
        info: dict[str, Any] = {"instance": self.instance_name, "valid": True, "reward_terms": {}}
        if (answer := self.answer()) is not None:
            info["answer"] = answer
        reply, earned = self._play_others(reply)
        if any(earned.values()):
            info["seat_rewards"] = earned
        info["seat"] = reply.seat
        return self._observation(reply), info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer an action of the seat whose turn it is; `reward` is that seat's."""
        if self._over:
            raise self._reset_needed()
        actor = self._seat
        reply = self.act(clean(action))
        valid = reply.valid
        if isinstance(reply.reward, Mapping):
            terms = dict(reply.reward)
            reward = math.fsum(terms.values())
        else:
            reward = float(reply.reward)
            terms = {"reward": reward}
        earned: dict[str, float] = {}
        if reply.others or reply.seat != FIRST_SEAT:
            reply, earned = self._with_others(reply)
            if actor in earned:
                terms["others"] = earned.pop(actor)
                reward = math.fsum(terms.values())
        self._seat = reply.seat
        info = {"instance": self.instance_name, "valid": valid, "reward_terms": terms, "seat": reply.seat}
        if earned:
            info["seat_rewards"] = {actor: reward, **earned}
        if reply.points:
            info["points"] = [list(point) for point in reply.points]
        if reply.done:
            info |= self._ending(reply.score)
        return self._observation(reply), reward, reply.done, False, info

    def cut(self) -> dict[str, Any]:
        """End the episode from outside and return what `info` owes: score and success by `score_if_cut`."""
        return self._ending(self.score_if_cut())

    def reseed(self, seed: int) -> None:
        """Give the rest of the episode fresh chance."""
        self.np_random = np.random.default_rng(seed)

    def render(self) -> str | None:
        """Return the last observation's text in mode "ansi"."""
        if not self.instance_name:
            raise self._reset_needed()
        return self.shown if self.render_mode == "ansi" else None

    # Inside ----------------------------------------------------------------------------------------------------

    def _checked(self, index: Any) -> int:
        size = self.size()
        if size < 1:
            raise InstanceError(f"{self.task.id} finds no instances for split {self.split!r}")
        if index is None:
            return int(self.np_random.integers(size))
        whole = isinstance(index, int | np.integer) and not isinstance(index, bool)
        if not whole or not 0 <= index < size:
            raise InstanceError(f"{self.task.id} {self.split} has instances 0 to {size - 1}; got index {index!r}")
        return int(index)

    def _seed(self, seed: int | None) -> None:
        """Do what Gymnasium's reset does, but make the generator when it is asked for: most episodes never do."""
        if seed is None:
            return
        if type(seed) is int and seed >= 0:
            self._np_random_seed, self._np_random_due = seed, seed
        else:
            super().reset(seed=seed)  # which takes what else is a seed, and says what is none

    @property
    def _np_random(self) -> np.random.Generator | None:
        """The generator behind Gymnasium's `np_random`."""
        if self._np_random_due is not None:
            self._np_random, _ = seeding.np_random(self._np_random_due)
        return self._np_random_made

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._np_random_made, self._np_random_due = generator, None

    def _reset_needed(self) -> ResetNeeded:
        why = "the episode is over" if self.instance_name else "no episode is open"
        return ResetNeeded(f"{self.task.id}: {why}; call reset() first")

    def _with_others(self, first: Reply) -> tuple[Reply, dict[str, float]]:
        """What the seat on turn is answered in the end, and what `first` and the turns until then brought by seat."""
        reply, earned = self._play_others(first)
        return reply, {seat: first.others.get(seat, 0.0) + earned.get(seat, 0.0) for seat in {*first.others, *earned}}

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
            "for a model in another seat use the rollout engine's seats"
        )
    try:
        player: ScriptedPlayer = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InstanceError(f"others={name!r} cannot be loaded: {error}") from error
    return player
