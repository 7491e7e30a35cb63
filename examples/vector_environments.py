"""Vector environments: four copies of GuessNumber in step, with Gymnasium's own autoreset.

python examples/vector_environments.py
"""

from __future__ import annotations

import gymnasium as gym

import lmgym  # noqa: F401  (registers the tasks)

COPIES, STEPS = 4, 20


def main() -> None:
    """Bisect in every copy and print the mean score of the episodes that ended."""
    envs = gym.make_vec("lmgym/GuessNumber-v0", num_envs=COPIES, vectorization_mode="sync", split="test")
    envs.reset(seed=0)
    ranges = [(1, 100)] * COPIES
    scores: list[float] = []
    for _ in range(STEPS):
        guesses = [(low + high) // 2 for low, high in ranges]
        observations, rewards, terminated, truncated, info = envs.step([str(guess) for guess in guesses])
        for copy, (text, (low, high), guess) in enumerate(zip(observations["text"], ranges, guesses, strict=True)):
            if text == "higher":
                ranges[copy] = (guess + 1, high)
            elif text == "lower":
                ranges[copy] = (low, guess - 1)
            else:  # correct, or the first observation of the next episode
                ranges[copy] = (1, 100)
            if terminated[copy] or truncated[copy]:
                scores.append(float(info["score"][copy]))
    envs.close()
    print(f"{len(scores)} episodes, mean score {sum(scores) / len(scores):.2f}")


if __name__ == "__main__":
    main()
