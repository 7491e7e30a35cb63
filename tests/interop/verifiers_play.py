"""Runs in verifiers' venv: Wordle as a taskset of its, against an endpoint on loopback that guesses words."""

import asyncio
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from verifiers.v1.cli.eval.runner import run_eval
from wordle import break_backend  # of this folder

from lmgym.interop import verifiers as interop


class Guessing(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint."""

    words, noise, heard = (), random.Random(0), []
    wait = 0  # seconds that every second answer of a conversation takes

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.heard.append([self.path, body["model"], body["messages"]])
        time.sleep(self.wait * (sum(message["role"] == "assistant" for message in body["messages"]) == 1))
        message = {"role": "assistant", "content": self.noise.choice(self.words)}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"]}
        content = json.dumps({**answer, "choices": [choice], "usage": usage}).encode()
        with contextlib.suppress(ConnectionError):  # it was not waited for
            self.answer(content)

    def answer(self, content):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        """Say nothing."""


def main():
    """Read a job, print what was played."""
    job = json.load(sys.stdin)
    if "breaks" in job:
        break_backend(job["breaks"])
    Guessing.words, Guessing.wait = job["words"], job.get("wait", 0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guessing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    with tempfile.TemporaryDirectory() as folder:
        config = interop.config("wordle", model="guesser", base_url=url, folder=Path(folder), **job["task"])
        episodes = asyncio.run(run_eval(config))
    server.shutdown()
    traces = [episode.traces[0] for episode in episodes]
    found = {
        "pushed": config.push,
        "report": asdict(interop.report(config, episodes)),
        "heard": Guessing.heard,
        "traces": [
            {
                "index": trace.task.data.index,
                "ok": trace.ok,
                "reward": trace.reward,
                "stop": trace.stop_condition,
                "error": trace.last_error.message if trace.last_error else "",
                "metrics": trace.metrics,
                "turns": trace.num_turns,
                "said": [(m.role, m.content) for m in trace.branches[-1].messages] if trace.branches else [],
            }
            for trace in traces
        ],
    }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


main()
