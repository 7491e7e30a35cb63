"""LMRL-Gym's normalised score of a mean return."""

from __future__ import annotations

SCALES = {  # minimum, average and maximum return of a task, from table 5 of arXiv 2311.18232
    "lmgym/Maze-v0": (-101.0, -83.0, -6.84),
    "lmgym/MazePartial-v0": (-101.0, -83.0, -25.75),
    "lmgym/TextNav-v0": (0.0, 0.26, 1.0),
    "lmgym/TextNavPartial-v0": (0.0, 0.26, 1.0),
    "lmgym/TextNavOfficial-v0": (0.0, 0.26, 1.0),
    "lmgym/Wordle-v0": (-6.0, -4.12, -1.94),
    "lmgym/Chess-v0": (-401.0, 0.21, 1.0),
    "lmgym/ChessEndgames-v0": (-1.0, 0.586, 1.0),
    "lmgym/TwentyQuestions-v0": (-20.0, -17.3, -12.6),
    "lmgym/GuessMyCity-v0": (-20.0, -18.8, -8.56),
}


def normalised(task: str, mean_return: float) -> float | None:
    """Return the score of a mean return: 0 at the task's minimum or below, 50 at its average, 100 at its maximum.

    It is linear between them and above; None for a task without a published scale, such as Car Dealer.
    """
    if task not in SCALES:
        return None
    low, average, high = SCALES[task]
    if mean_return < average:
        return max(0.0, 50 * (mean_return - low) / (average - low))
    return 50 + 50 * (mean_return - average) / (high - average)
