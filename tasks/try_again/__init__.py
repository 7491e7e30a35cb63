"""TryAgain: five tries at a problem, and nothing but "incorrect" in between, as UFO plays static problems."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/TryAgain-v0",
    entry_point="lmgym.tasks.try_again.env:TryAgain",
    summary="Solve a problem in five tries; a wrong answer is told to be wrong and nothing else.",
    max_turns=5,
    prose=True,
    splits={"train": 100_000, "test": 300},
    score="1 when one of the tries is right",
    references={"null": 0.0, "oracle": 1.0},
    source="rules and rewards of UFO (arXiv 2507.14295); the problems are our own",
    public={"level": range(1, 4), "family": ("", "remainder"), "decay": ("exponential", "none"), "penalty": (0.0, 0.5)},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/TryAgainReasoningGym-v0",
        entry_point="lmgym.tasks.try_again.reasoning:TryAgainReasoningGym",
        summary="The same with the problems of Reasoning Gym's generators, each in turn.",
        answer_tokens=512,  # those of a few generators are longer
        splits={"train": 100_000, "test": 500},
        references={"null": 0.0, "oracle": 1.0},
        extras=("reasoning",),
        overlap="a generator with few problems may draw one for both splits",
        source="rules and rewards of UFO (arXiv 2507.14295); problems of Reasoning Gym (Apache-2.0)",
        public={"decay": ("exponential", "none"), "penalty": (0.0, 0.5)},
    ),
)
