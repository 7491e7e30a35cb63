"""Evaluation from Python: two policies on the same instances, with intervals and their paired difference.

python examples/evaluation.py
"""

from __future__ import annotations

import lmgym

EPISODES = 30


def main() -> None:
    """Print both reports and the difference."""
    random = lmgym.evaluate("guess_number", "random", episodes=EPISODES)
    bisecting = lmgym.evaluate("guess_number", "demonstrator", episodes=EPISODES)
    for report in (random, bisecting):
        print(f"{report.policy}: success {report.success}, turns {report.turns}")
    print(f"difference in success: {bisecting.since(random)}")


if __name__ == "__main__":
    main()
