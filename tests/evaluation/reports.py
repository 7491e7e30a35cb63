"""Reports made by hand, for tests of what is computed from them."""

from __future__ import annotations

from lmgym.evaluation.runner import Outcome, Report


def outcome(index: int, attempt: int = 0, *, success: bool = False, **more) -> Outcome:
    turns = more.pop("turns", 3)
    facts = {
        "score": float(success),
        "reward": float(success),
        "invalid": 0,
        "truncated": not success,
        "stop": "done" if success else "max_turns",
        "solved_at": turns if success else None,
    }
    return Outcome(index=index, attempt=attempt, success=success, turns=turns, **{**facts, **more})


def report(solved, *, policy: str = "p", task: str = "lmgym/Wordle-v0", first: int = 0, **more) -> Report:
    """`solved[i][j]` says whether try j of instance `first + i` succeeded."""
    outcomes = [
        outcome(first + index, attempt, success=bool(success))
        for index, tries in enumerate(solved)
        for attempt, success in enumerate(tries)
    ]
    return Report(task=task, split="test", policy=policy, outcomes=tuple(outcomes), **more)
