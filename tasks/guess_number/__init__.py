"""Find a hidden number; the reference task."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/GuessNumber-v0",
    entry_point="lmgym.tasks.guess_number.env:GuessNumber",
    summary="Find a hidden number from answers higher and lower.",
    max_turns=10,
    splits={"train": 1_000_000, "test": 1_000},
    score="1 when the number was named within the turns",
    references={"null": 0.0, "oracle": 1.0},
    source="our own",
    public={"highest": range(1, 10_001)},
    overlap="both splits draw from the same range of numbers",
)
