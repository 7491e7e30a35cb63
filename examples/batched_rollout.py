"""Batched rollout with a Hugging Face model: many episodes at once, with exact token ids and log-probabilities.

python examples/batched_rollout.py hf:Qwen/Qwen3-0.6B
"""

from __future__ import annotations

import sys

from lmgym.policy.load import load_policy
from lmgym.rollout import Engine, play
from lmgym.rollout.context import Window


def main(model: str) -> None:
    """Play four tries on each of four instances and print what came of them."""
    policy = load_policy(model)
    engine = Engine(context=Window(4), concurrency=16, max_tokens=8)
    episodes = play(policy, "guess_number", split="test", episodes=4, attempts=4, engine=engine)
    tokens = [len(turn.completion.ids) for episode in episodes for turn in episode.turns]
    logprobs = [sum(turn.completion.logprobs) for episode in episodes for turn in episode.turns]
    scores = [episode.score for episode in episodes]
    print(f"{len(episodes)} episodes, {len(tokens)} turns, {sum(tokens)} sampled tokens")
    print(f"mean score {sum(scores) / len(scores):.2f}")
    print(f"mean log-probability of an answer {sum(logprobs) / len(logprobs):.2f} nats")


if __name__ == "__main__":
    main(sys.argv[1])
