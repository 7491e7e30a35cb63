"""Own policy loop: a function of yours plays Wordle through Gymnasium's API and ends with a score.

python examples/policy_loop.py
"""

from __future__ import annotations

import gymnasium as gym

import lmgym

WORDS = ("crane", "slipt", "dough", "money", "force", "beach")


def choose(history: list[tuple[str, str]]) -> str:
    """Return the next word: here from a fixed list; put your model here."""
    return WORDS[len(history)]


def play(index: int) -> float:
    """Play one test instance and return its score."""
    env = gym.make("lmgym/Wordle-v0", split="test")
    observation, info = env.reset(seed=0, options={"index": index})
    history: list[tuple[str, str]] = []
    terminated = truncated = False
    while not (terminated or truncated):
        word = choose(history)
        observation, reward, terminated, truncated, info = env.step(word)
        history.append((word, observation["text"]))
    env.close()
    return float(info["score"])


def main() -> None:
    """Print the mean score of ten instances."""
    scores = [play(index) for index in range(10)]
    print(f"lmgym {lmgym.__version__}: mean score {sum(scores) / len(scores):.2f}")


if __name__ == "__main__":
    main()
