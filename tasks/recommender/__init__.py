"""Recommender: keep a user with changing tastes in a session by choosing what to show, in the manner of RecoWorld."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Recommender-v0",
    entry_point="lmgym.tasks.recommender.env:Recommender",
    summary="Show a user three items a round; tastes drift, fatigue grows, and a bored user says so or leaves.",
    max_turns=12,
    splits={"train": 20_000, "test": 200},
    seats=("user",),
    score="share of the twelve rounds that the user stayed for",
    references={"null": 0.0, "oracle": 1.0},
    source="our own; mindset, leave hazard and reflective instructions in the manner of RecoWorld (arXiv 2509.10397)",
    public={"rewards": ("session", "clicks"), "instructions": (True, False), "shuffled": (True, False)},
)
