"""lmgym tasks on OpenEnv's server, and a client for them.

    from lmgym.interop import openenv as interop

    interop.serve("wordle", port=8000)  # or: uvicorn.run(interop.app("wordle"))

    with interop.TextClient(base_url="http://127.0.0.1:8000").sync() as client:
        text = client.reset(index=3).observation.text
        result = client.step(interop.TextAction(text="crane"))

Hidden answers, admissible actions and oracles are not available. OpenEnv's server has no tokens: by default it listens
on loopback, refuses web pages and answers only to its own host names. `lmgym serve` has tokens and batched steps.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lmgym import hosts
from lmgym.env.registry import find
from lmgym.errors import InstanceError, MissingExtra
from lmgym.evaluation import runner
from lmgym.interop.episode import TextEpisode

try:
    from openenv.core import EnvClient
    from openenv.core.client_types import StepResult
    from openenv.core.env_server import Action, Environment, Observation, State, create_app
    from openenv.core.env_server.types import EnvironmentMetadata
    from starlette.middleware.trustedhost import TrustedHostMiddleware
except ModuleNotFoundError as error:
    needed = "lmgym.interop.openenv needs: pip install 'lmgym[openenv]' in a venv of its own"
    raise MissingExtra(f"{needed} ({error})") from error

from lmgym.serve.guard import OriginMiddleware

if TYPE_CHECKING:
    from fastapi import FastAPI

LOOPBACK = ("127.0.0.1", "[::1]", "localhost")


class TextAction(Action):  # type: ignore[misc]
    """An action as text."""

    text: str


class TextObservation(Observation):  # type: ignore[misc]
    """An observation as text; `score` and `success` are set once the episode is over."""

    text: str
    valid: bool = True
    instance: str = ""
    truncated: bool = False
    score: float | None = None
    success: bool | None = None


class TextEnvironment(Environment[TextAction, TextObservation, State]):  # type: ignore[misc]
    """An OpenEnv environment of an lmgym task; every session has its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, task: str, *, split: str = "test", max_turns: int | None = None, **options: Any) -> None:
        super().__init__()
        self.spec = find(task)
        self.split, self.max_turns, self.options = split, max_turns, options
        self.episode = self._opened(split)
        self.name: str | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        index: int | None = None,
        split: str | None = None,
    ) -> TextObservation:
        """Start instance `index` of a split, or one drawn by the seed; without either, by a random seed."""
        if split is not None and split != self.episode.split:
            episode = self._opened(split)  # before closing the other, which stays open if this fails
            self.episode.close()
            self.episode = episode
        if index is None and seed is None:
            seed = secrets.randbits(31)
        self.name = episode_id
        return self._observe(self.episode.begin(index=index, seed=seed), None)

    def step(self, action: TextAction, timeout_s: float | None = None) -> TextObservation:
        """Play an action."""
        before = self.episode.reward
        text = self.episode.act(action.text)
        return self._observe(text, self.episode.reward - before)

    @property
    def state(self) -> State:
        """The open instance and its number of turns so far."""
        details = {"task": self.spec.id, "split": self.episode.split, "index": self.episode.index}
        return State(episode_id=self.name, step_count=self.episode.turns, **details)

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the task's id and summary."""
        return EnvironmentMetadata(name=self.spec.id, description=self.spec.summary)

    def list_splits(self) -> list[dict[str, str]]:
        """List the splits of the task."""
        return [{"name": split, "type": split} for split in self.spec.splits]

    def num_tasks(self, split: str) -> int:
        """Count the instances of a split."""
        return runner.size_of(self.spec.id, split, self.options)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return the name of an instance."""
        if not 0 <= index < (size := self.num_tasks(split)):
            raise IndexError(f"{self.spec.id} {split} has instances 0 to {size - 1}; got {index}")
        return {"id": f"{split}/{index}", "index": index}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Return the names of a range of instances."""
        return [{"id": f"{split}/{index}", "index": index} for index in range(self.num_tasks(split))[start:stop]]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return the names of the first thousand instances."""
        return self.get_task_range(split, 0, 1000)

    def close(self) -> None:
        """Close the environment."""
        self.episode.close()

    def _opened(self, split: str) -> TextEpisode:
        return TextEpisode(self.spec.id, split=split, max_turns=self.max_turns, **self.options)

    def _observe(self, text: str, reward: float | None) -> TextObservation:
        episode = self.episode
        end = episode.end() if episode.over else None
        return TextObservation(
            text=text,
            valid=bool(episode.info["valid"]),
            instance=str(episode.info["instance"]),
            reward=reward,
            done=episode.over,
            truncated=episode.truncated,
            score=end.score if end else None,
            success=end.success if end else None,
        )


class TextClient(EnvClient[TextAction, TextObservation, State]):  # type: ignore[misc]
    """OpenEnv's client of a server made by `app`; each connection is a session."""

    def _step_payload(self, action: TextAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TextObservation]:
        observation = TextObservation(**payload["observation"], done=payload["done"], reward=payload["reward"])
        return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


def app(
    task: str,
    *,
    split: str = "test",
    max_turns: int | None = None,
    sessions: int = 64,
    names: Sequence[str] = (),
    origins: Sequence[str] = (),
    **options: Any,
) -> FastAPI:
    """Make OpenEnv's application for a task, with at most `sessions` clients at once.

    `names` are host names, other than those of loopback, by which clients connect; `origins` are web pages that may
    connect.
    """
    if sessions < 1:
        raise InstanceError(f"sessions must be at least 1; got {sessions}")
    make = partial(TextEnvironment, task, split=split, max_turns=max_turns, **options)
    make().close()  # reports a wrong option before any client connects
    served: FastAPI = create_app(
        make, TextAction, TextObservation, env_name=find(task).name, max_concurrent_envs=sessions
    )
    served.add_middleware(OriginMiddleware, allowed=origins)
    served.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, *names], www_redirect=False)
    return served


def serve(task: str, *, host: str = "127.0.0.1", port: int = 8000, **settings: Any) -> None:
    """Serve a task until interrupted; for `settings` see `app`."""
    import uvicorn

    names = [*settings.pop("names", ()), hosts.in_address(host)]
    uvicorn.run(app(task, names=names, **settings), host=host, port=port, proxy_headers=False)
