"""Negotiate: agree with a partner on three issues, each side with private values and a private limit."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Negotiate-v0",
    entry_point="lmgym.tasks.negotiate.env:Negotiate",
    summary="Agree with a partner on price, delivery and warranty; values and limits are private.",
    max_turns=10,
    prose=True,
    splits={"train": 20_000, "test": 200},
    seats=("partner",),
    score="own value of the agreement, from the own limit (0) to the best that the partner's limit allows (1)",
    references={"null": 0.0, "oracle": 1.0},
    source="our own; issues and private goals in the manner of SOTOPIA (arXiv 2310.11667)",
)
