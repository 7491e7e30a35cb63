"""The base class of all tasks, which makes a Gymnasium environment of an author's `begin` and `act`."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from lmgym.env.spaces import Images, UnicodeText, clean
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.types import FIRST_SEAT

Observation = dict[str, Any]  # {"text": str} and, where the task shows pictures, {"images": uint8 (n, H, W, 3)}
# attributes of the open episode
EPISODE = ("instance_name", "latest_text", "_seat", "_over", "_np_random_seed", "_np_random_made", "_np_random_due")
FIGURE_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
Part = TypeVar("Part")
ScriptedPlayer = Callable[[str], str]  # the observation's text -> an action


@dataclass
class Reply:
    """A task's answer to one action, or the first observation of an episode."""

    text: str
    _: KW_ONLY
    images: tuple[NDArray[np.uint8], ...] = ()
    reward: float | Mapping[str, float] = 0.0  # of the seat that acted; by name if it is shaped
    done: bool = False
    score: float | Mapping[str, float] | None = None  # in [0, 1], by seat if there are several; set when done
    valid: bool = True  # False: an invalid action; it costs a turn
    seat: str = FIRST_SEAT  # whose turn it is next
    others: Mapping[str, float] = field(default_factory=dict)  # rewards of the seats that did not act
    points: Sequence[tuple[float, float]] = ()  # x and y of a pointing action, in pixels of the picture it answers
    figures: Mapping[str, float] = field(default_factory=dict)  # of the last reply; by default as `figures_if_cut`


class ResetNeeded(InstanceError, gymnasium.error.ResetNeeded):
    """No episode is open."""


class TextEnv(gymnasium.Env[Observation, str]):
    """A task. Subclasses set SPEC and write `begin` and `act`; all other hooks are optional.

    An instance depends on `(split, index)` and the options alone; chance during an episode comes from
    `self.np_random`. Invalid actions return `valid=False` and never raise; a broken backend raises `BackendError`.
    """

    SPEC: ClassVar[TaskSpec]
    PICTURES: ClassVar[Images | None] = None  # set if observations contain pictures
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}
    _np_random_made: np.random.Generator | None = None
    _np_random_due: int | None = None  # seed of a generator not made yet
    max_turns: int | None = None  # of the agent; None: as the spec says

    def __init__(
        self,
        *,
        spec: TaskSpec | None = None,
        split: str = "train",
        others: str = "scripted",
        render_mode: str | None = None,
    ) -> None:
        self.task = spec or self.SPEC
        self.check_choices(split=(split, self.task.splits))
        if render_mode not in (None, *self.metadata["render_modes"]):
            modes = ", ".join(map(repr, self.metadata["render_modes"]))
            raise InstanceError(f"unknown render_mode {render_mode!r} for {self.task.id}; choose {modes} or None")
        self.split = split
        self.others = others
        self.render_mode = render_mode
        spaces: dict[str, gymnasium.Space[Any]] = {"text": UnicodeText()}
        if self.PICTURES is not None:
            spaces["images"] = self.PICTURES
        self.observation_space = gymnasium.spaces.Dict(spaces)
        self.action_space = UnicodeText()
        self._player: ScriptedPlayer | None = None
        if others not in ("scripted", "caller"):
            usage = "others takes 'scripted' or 'caller' as well; the rollout engine's seats take models"
            self._player = python_function(others, usage)
        self.instance_name = ""
        self.latest_text = ""  # of the last observation
        self._seat = FIRST_SEAT
        self._over = True

    def check_choices(self, **choices: tuple[Any, Collection[Any]]) -> None:
        """Raise InstanceError unless the values of these options are allowed: `check_choices(view=(view, VIEWS))`."""
        for name, (value, allowed) in choices.items():
            if value not in allowed:
                names = ", ".join(str(each) or "''" for each in allowed)
                raise InstanceError(f"unknown {name} {value!r} for {self.task.id}; choose {names}")

    # Hooks of a task's author ----------------------------------------------------------------------------------

    def begin(self, index: int) -> Reply:
        """Open instance `index` of `self.split`."""
        raise NotImplementedError

    def act(self, action: str) -> Reply:
        """Answer one action, which may be any string, of the seat on turn."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the number of instances of `self.split`."""
        return self.task.splits[self.split]

    def score_if_cut(self) -> float | Mapping[str, float]:
        """Return the score in [0, 1] if the episode ended now; by seat if there are several."""
        return 0.0

    def figures_if_cut(self) -> Mapping[str, float]:
        """Return the task's own figures by name if the episode ended now, as `Reply.figures` gives them."""
        return {}

    def solved(self, score: float) -> bool:
        """Return True if an episode with this final score is a success."""
        return score >= 1.0

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open an authored instance."""
        raise InstanceError(f"{self.task.id} takes no authored instances; use options={{'index': i}}")

    def oracle(self) -> Iterator[str]:
        """Yield actions that solve the episode from its present state, with full knowledge of the instance."""
        raise InstanceError(f"{self.task.id} has no oracle")

    def demonstrator(self) -> Iterator[str]:
        """Yield actions of a good player who knows only the observations; by default the oracle's."""
        return self.oracle()

    def admissible(self) -> list[str] | None:
        """Return the actions that make sense in the present state; None if they cannot be listed."""
        return None

    def pointing(self, x: float, y: float) -> str | None:
        """Return the action that clicks pixel (x, y) of the last picture; None if there is none."""
        return None

    def pressing(self, keys: Sequence[str]) -> str | None:
        """Return the action that types characters or presses one combination; None if there is none.

        Keys are named as browsers name them: ["o", "k"], ["Enter"], ["Control+s"].
        """
        return None

    def scripted(self, seat: str) -> str:
        """Return the action of `seat`, which the caller does not play."""
        raise InstanceError(f"{self.task.id} has no scripted player for seat {seat!r}")

    def tools(self, seat: str = FIRST_SEAT) -> list[dict[str, Any]]:
        """Return the JSON schemas of the tools that `seat` has in the present state, if its actions are tool calls."""
        return []

    def prompts(self) -> Mapping[str, str]:
        """Return the system prompts of the open episode by seat; seats without one are left out."""
        return {}

    def answer(self) -> str | None:
        """Return the hidden answer of the instance, for credit assignment that needs it."""
        return None

    def fingerprint(self) -> str | None:
        """Return a string that identifies the open instance, if its first observation and action do not."""
        return None

    def title(self, index: int) -> str | None:
        """Return the name of an instance of official data, stable if parts are missing here; None for other data."""
        return None

    def index_of(self, title: str) -> int | None:
        """Return the index of the instance with this title; None if it is not here."""
        return None

    def save(self) -> Any:
        """Return all that the open episode depends on beside `np_random`, or None if it cannot be saved in this state.

        Where an episode is slow to replay, its forks are restored from this instead. It is pickled at once.
        """
        return None

    def restore(self, state: Any) -> None:
        """Continue the episode that `save` returned, in place of `begin`; another one may be open."""
        raise InstanceError(f"{self.task.id} does not restore saved episodes")

    # Gymnasium's side ------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open an episode: `options={"index": i}`, `{"instance": {...}}`, or an index drawn from the seed."""
        self._seed(seed)
        choice = self._checked_options(options)
        if (instance := choice.get("instance")) is not None:
            self.instance_name, reply = "authored", self.load(instance)
        else:
            index = self._checked_index(choice.get("index"))
            self.instance_name, reply = f"{self.split}/{index}", self.begin(index)
        self._over = False
        info: dict[str, Any] = {"instance": self.instance_name, "valid": True, "reward_terms": {}}
        if (answer := self.answer()) is not None:
            info["answer"] = answer
        if prompts := self.prompts():
            info["prompts"] = dict(prompts)
        reply, earned = self._play_others(reply)
        if any(earned.values()):
            info["seat_rewards"] = earned
        info["seat"] = reply.seat
        return self._observation(reply), info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer an action of the seat on turn and return that seat's reward."""
        if self._over:
            raise self._reset_needed()
        actor = self._seat
        reply = self.act(self._checked_action(action))
        valid = reply.valid
        if isinstance(reply.reward, Mapping):
            terms = dict(reply.reward)
            reward = math.fsum(terms.values())
        else:
            reward = float(reply.reward)
            terms = {"reward": reward}
        earned: dict[str, float] = {}
        if reply.others or reply.seat != FIRST_SEAT:
            others = reply.others
            reply, earned = self._play_others(reply)
            earned = {seat: others.get(seat, 0.0) + earned.get(seat, 0.0) for seat in {*others, *earned}}
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
            info |= self._ending(reply.score, reply.figures or self.figures_if_cut())
        return self._observation(reply), reward, reply.done, False, info

    def cut(self) -> dict[str, Any]:
        """Truncate the episode and return its score, success and figures as entries of `info`."""
        return self._ending(self.score_if_cut(), self.figures_if_cut())

    def save_episode(self) -> dict[str, Any] | None:
        """Return the open episode as `save` gives it, with what this class keeps of it; None if it cannot be saved."""
        if self._over or self._player is not None or (state := self.save()) is None:
            return None  # a caller's own function may keep a state
        return {"state": state, **{name: getattr(self, name) for name in EPISODE}}

    def restore_episode(self, saved: Mapping[str, Any]) -> None:
        """Continue an episode that `save_episode` returned."""
        self.restore(saved["state"])
        for name in EPISODE:
            setattr(self, name, saved[name])

    def reseed(self, seed: int) -> None:
        """Seed the chance of the rest of the episode."""
        self.np_random = np.random.default_rng(seed)

    def render(self) -> str | None:
        """Return the last observation's text in mode "ansi", else None."""
        if not self.instance_name:
            raise self._reset_needed()
        return self.latest_text if self.render_mode == "ansi" else None

    # Internals -------------------------------------------------------------------------------------------------

    def begun(self, part: Part | None) -> Part:
        """Return a part of the open episode. Raises InstanceError before the first reset."""
        if part is None:
            raise InstanceError(f"{self.task.id}: call reset() first")
        return part

    def _checked_options(self, options: Any) -> Mapping[str, Any]:
        """Return the options of `reset`, of which an instance is a mapping."""
        choice = {} if options is None else options
        if not isinstance(choice, Mapping):
            raise InstanceError(f"{self.task.id}: options are a mapping such as {{'index': 0}}; got {options!r}")
        if unknown := [name for name in choice if name not in ("index", "instance")]:
            raise InstanceError(f"reset takes the options 'index' and 'instance'; got {', '.join(map(repr, unknown))}")
        if not isinstance(instance := choice.get("instance"), Mapping | None):
            raise InstanceError(f"an instance of {self.task.id} is a mapping of names to values; got {instance!r}")
        return choice

    def _checked_action(self, action: Any) -> str:
        if not isinstance(action, str):
            raise InstanceError(f"{self.task.id}: an action is a str; got {action!r}")
        return clean(action)

    def _checked_index(self, index: Any) -> int:
        size = self.size()
        if size < 1:
            raise InstanceError(f"{self.task.id} has no instances for split {self.split!r}: its data is not installed")
        if index is None:
            return int(self.np_random.integers(size))
        integer = isinstance(index, int | np.integer) and not isinstance(index, bool)
        if not integer or not 0 <= index < size:
            raise InstanceError(f"{self.task.id} {self.split} has instances 0 to {size - 1}; got index {index!r}")
        return int(index)

    def _seed(self, seed: Any) -> None:
        """Seed as Gymnasium's reset does, but make the generator at its first use: most episodes need none."""
        if isinstance(seed, np.integer):
            seed = int(seed)
        if type(seed) is int and seed >= 0:
            self._np_random_seed, self._np_random_due = seed, seed
        else:
            super().reset(seed=seed)  # raises Gymnasium's error for an invalid seed

    @property
    def _np_random(self) -> np.random.Generator | None:
        """Generator behind Gymnasium's `np_random`."""
        if self._np_random_due is not None:
            self._np_random, _ = seeding.np_random(self._np_random_due)
        return self._np_random_made

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._np_random_made, self._np_random_due = generator, None

    def _reset_needed(self) -> ResetNeeded:
        why = "the episode is over" if self.instance_name else "no episode is open"
        return ResetNeeded(f"{self.task.id}: {why}; call reset() first")

    def _play_others(self, reply: Reply) -> tuple[Reply, dict[str, float]]:
        """Play the scripted seats until the agent is on turn; return the last reply and all rewards by seat."""
        if reply.seat not in (FIRST_SEAT, *self.task.seats):
            raise ValueError(f"{self.task.id}: seat {reply.seat!r} is on turn; list it in the spec's seats")
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

    def _ending(
        self, score: float | Mapping[str, float] | None, figures: Mapping[str, float] | None = None
    ) -> dict[str, Any]:
        self._over = True
        scores = dict(score) if isinstance(score, Mapping) else {FIRST_SEAT: score}
        own = scores[FIRST_SEAT]
        if own is None or not 0.0 <= own <= 1.0:
            raise ValueError(f"{self.task.id} must end with a score in [0, 1]; got {own}")
        info: dict[str, Any] = {"score": float(own), "success": bool(self.solved(own))}
        if len(scores) > 1:
            info["seat_scores"] = scores
        if figures:
            info["figures"] = self._checked_figures(figures)
        return info

    def _checked_figures(self, figures: Mapping[str, float]) -> dict[str, float]:
        for name, value in figures.items():
            if not FIGURE_NAME.fullmatch(name) or not math.isfinite(value):
                raise ValueError(
                    f"{self.task.id}: a figure has a name of lower-case letters, digits and underscores, at most 48, "
                    f"and a finite value; got {name!r}: {value}"
                )
        return {name: float(value) for name, value in figures.items()}

    def _observation(self, reply: Reply) -> Observation:
        self.latest_text = clean(reply.text)
        observation: Observation = {"text": self.latest_text}
        if self.PICTURES is not None:
            empty = np.zeros((0, self.PICTURES.height, self.PICTURES.width, 3), np.uint8)
            observation["images"] = np.stack(reply.images) if reply.images else empty
        return observation


def python_function(name: str, usage: str) -> Any:
    """Load `python:module:function`, an option's value. Raises InstanceError; `usage` ends the message."""
    kind, _, target = name.partition(":")
    module, _, function = target.partition(":")
    if kind != "python" or not module or not function:
        raise InstanceError(f"{name!r} is not 'python:module:function'; {usage}")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InstanceError(f"{name!r} cannot be loaded: {error}") from error
