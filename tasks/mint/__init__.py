"""MINT's protocol around other tasks: few turns, fewer proposals, Python, and feedback in words."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Mint-v0",
    entry_point="lmgym.tasks.mint.env:Mint",
    summary="Solve a problem in five turns with two proposals; Python and an expert's feedback help.",
    max_turns=5,
    prose=True,
    answer_tokens=128,
    splits={"train": 100_000, "test": 300},
    seats=("feedback",),
    score="the score of the task inside: 1 when a proposal is right",
    references={"null": 0.0, "oracle": 1.0},
    player="thread",
    runs_code=True,
    sandboxed=True,
    source="protocol of MINT (Apache-2.0, arXiv 2309.10691); the problems are those of TryAgain",
    public={"k": range(1, 6), "feedback": (True, False)},
)
