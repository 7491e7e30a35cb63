"""RetailDesk: serve a customer of a shop with tools, within a policy that often says no."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/RetailDesk-v0",
    entry_point="lmgym.tasks.retail_desk.env:RetailDesk",
    summary="Serve a customer of a shop in a dialogue, with seventeen tools and a policy that often says no.",
    max_turns=60,
    answer_tokens=128,
    seats=("user",),
    splits={"train": 2_000, "test": 100},
    score="1 when the database is as it should be and the customer was told the numbers asked for",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    source="our own; in the manner of tau2-bench (arXiv 2506.07982)",
    public={"level": range(5), "small": (True, False)},
)
