"""Tasks with several seats as PettingZoo environments: agents take turns, one agent a seat.

    from lmgym.interop.pettingzoo import SeatsEnv

    env = SeatsEnv("lmgym/KuhnPoker-v0", split="test")
    env.reset(seed=0)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        env.step(None if termination or truncation else info["action_mask"][0])

Observations and actions are texts. Where the task lists its legal actions, `info["action_mask"]` holds them for the
agent on turn, and `env.action_space(agent).sample(info["action_mask"])` draws one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium.spaces import Dict

from lmgym.env.env import ResetNeeded
from lmgym.env.registry import build
from lmgym.env.spaces import UnicodeText
from lmgym.errors import InstanceError, MissingExtra
from lmgym.types import FIRST_SEAT

try:
    from pettingzoo import AECEnv
except ModuleNotFoundError as error:
    raise MissingExtra(f"lmgym.interop.pettingzoo needs: pip install 'lmgym[pettingzoo]' ({error})") from error


class LegalText(UnicodeText):
    """A space of texts that draws among given ones."""

    def sample(self, mask: Sequence[str] | None = None, probability: None = None) -> str:
        """Return one of the texts in `mask`, or any text if there are none."""
        if not mask:
            return super().sample()
        return mask[int(self.np_random.integers(len(mask)))]


class SeatsEnv(AECEnv):  # type: ignore[misc]  # untyped where PettingZoo is not installed
    """A task whose seats are the agents "agent" and those that its spec lists, such as "opponent".

    Options are those of `gym.make`; `reset` takes `{"index": 3}` or `{"instance": {...}}` and, as PettingZoo asks,
    ignores other options. An agent's reward is what its seat earned since its last turn. `infos` hold the task's info
    for the agent that acted, and every agent's score at the end. Raises InstanceError for a task of one seat.
    """

    def __init__(self, task: str, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__()
        self.env = build(task, others="caller", render_mode=render_mode, **options)
        spec = self.env.unwrapped.task
        if not spec.seats:
            raise InstanceError(f"{spec.id} has one seat; play it as a Gymnasium environment")
        self.metadata = {"name": spec.id, "render_modes": ["ansi"], "is_parallelizable": False}
        self.render_mode = render_mode
        self.possible_agents = [FIRST_SEAT, *spec.seats]
        self.agents: list[str] = []
        self.observation_spaces = {seat: Dict(text=UnicodeText()) for seat in self.possible_agents}
        self.action_spaces = {seat: LegalText() for seat in self.possible_agents}

    def observation_space(self, agent: str) -> Dict:
        """Return the space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> LegalText:
        """Return the space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Open an episode."""
        chosen = {name: value for name, value in (options or {}).items() if name in ("index", "instance")}
        observation, info = self.env.reset(seed=seed, options=chosen)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {seat: {} for seat in self.agents}
        self.texts = dict.fromkeys(self.agents, "")  # last observation of each agent
        self._give_turn(info["seat"], observation["text"])

    def observe(self, agent: str) -> dict[str, str]:
        """Return the last observation of an agent; empty before its first turn."""
        return {"text": self.texts[agent]}

    def last(self, observe: bool = True) -> tuple[dict[str, str] | None, float, bool, bool, dict[str, Any]]:
        """Return observation, reward, termination, truncation and info of the agent on turn."""
        self._check_open()
        turn: tuple[dict[str, str] | None, float, bool, bool, dict[str, Any]] = super().last(observe)
        return turn

    def step(self, action: str | None) -> None:
        """Play an action of the agent on turn."""
        self._check_open()
        actor = self.agent_selection
        if self.terminations[actor] or self.truncations[actor]:
            self._was_dead_step(action)
            return
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._cumulative_rewards[actor] = 0.0
        self.rewards = {**dict.fromkeys(self.agents, 0.0), actor: float(reward), **info.get("seat_rewards", {})}
        self._accumulate_rewards()
        self.infos = {seat: {} for seat in self.agents} | {actor: info}
        if terminated or truncated:
            self._end(terminated, truncated, observation["text"], info)
        else:
            self._give_turn(info["seat"], observation["text"])

    def render(self) -> str | None:
        """Return the last observation of the task in mode "ansi"."""
        text: str | None = self.env.render()
        return text

    def close(self) -> None:
        """Close the task."""
        self.env.close()

    def _check_open(self) -> None:
        if not self.agents:
            raise ResetNeeded(f"{self.metadata['name']}: no episode is open; call reset() first")

    def _give_turn(self, seat: str, text: str) -> None:
        self.agent_selection = seat
        self.texts[seat] = text
        if legal := self.env.unwrapped.admissible():
            self.infos[seat] = {**self.infos[seat], "action_mask": tuple(legal)}

    def _end(self, terminated: bool, truncated: bool, text: str, info: dict[str, Any]) -> None:
        """Tell all agents how the episode ended."""
        self.texts = dict.fromkeys(self.agents, text)
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        scores = info.get("seat_scores", {FIRST_SEAT: info["score"]})
        for seat, score in scores.items():
            self.infos[seat] = {**self.infos[seat], "score": score}
        self.agent_selection = self.agents[0]
