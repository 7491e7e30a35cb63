"""Runs in OpenEnv's venv: GuessNumber behind its server, and its client, each in a process of its own.

openenv_speed.py serve PORT          until it is killed
openenv_speed.py play JOB            prints steps/s; JOB: url, sessions, seconds, actions
"""

import asyncio
import json
import sys
import time

TURNS = 10


def serve(port):
    import uvicorn
    from openenv.core.env_server import Environment, State, create_fastapi_app

    from lmgym.env.registry import build

    class Guessing(Environment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self):
            super().__init__()
            self.env = build("guess_number")
            self.count = 0

        def reset(self, seed=None, episode_id=None, **options):
            self.count = 0
            return Shown(text=self.env.reset(seed=seed)[0]["text"])

        def step(self, action, timeout_s=None, **options):
            observation, reward, terminated, truncated, _ = self.env.step(action.text)
            self.count += 1
            return Shown(text=observation["text"], reward=float(reward), done=terminated or truncated)

        @property
        def state(self):
            return State(step_count=self.count)

    app = create_fastapi_app(Guessing, Words, Shown, max_concurrent_envs=256)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def models():
    from openenv.core.env_server import Action, Observation

    class Words(Action):
        text: str

    class Shown(Observation):
        text: str

    return Words, Shown


def client():
    from openenv.core import EnvClient
    from openenv.core.client_types import StepResult

    class Client(EnvClient):
        def _step_payload(self, action):
            return {"text": action.text}

        def _parse_result(self, payload):
            shown = Shown(text=payload["observation"]["text"], done=payload["done"], reward=payload["reward"])
            return StepResult(observation=shown, reward=payload["reward"], done=payload["done"])

        def _parse_state(self, payload):
            return payload

    return Client


def alone(job):
    """Return steps/s of one session with the blocking client."""
    with client()(base_url=job["url"]).sync() as session:
        steps, number, result = 0, 0, session.reset(seed=0)
        start = time.perf_counter()
        while time.perf_counter() < start + job["seconds"]:
            if result.done:
                number += 1
                result = session.reset(seed=number)
            result = session.step(Words(text=job["actions"][steps % len(job["actions"])]))
            steps += 1
        return steps / (time.perf_counter() - start)


async def together(job):
    """Return steps/s of many sessions, one connection each, unsynchronised."""

    async def play(number, ends):
        async with client()(base_url=job["url"]) as session:
            steps, result = 0, await session.reset(seed=number)
            ready.append(number)
            while len(ready) < job["sessions"]:
                await asyncio.sleep(0.01)
            if not ends:
                ends.append(time.perf_counter() + job["seconds"])
            while time.perf_counter() < ends[0]:
                if result.done:
                    result = await session.reset(seed=number + steps)
                result = await session.step(Words(text=job["actions"][steps % len(job["actions"])]))
                steps += 1
            return steps

    ready, ends = [], []
    counts = await asyncio.gather(*(play(number, ends) for number in range(job["sessions"])))
    return sum(counts) / (time.perf_counter() - ends[0] + job["seconds"])


Words, Shown = models()
if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        job = json.loads(sys.argv[2])
        rate = alone(job) if job["sessions"] == 1 else asyncio.run(together(job))
        sys.stdout.write(f"{rate}\n")
