"""Guess My City of LMRL-Gym: find a hidden city by questions, open ones included."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/GuessMyCity-v0",
    entry_point="lmgym.tasks.guess_my_city.env:GuessMyCity",
    summary="Find one of 131 cities by at most 20 questions about it, answered by an oracle.",
    max_turns=20,
    splits={"train": 131, "test": 131},
    seats=("oracle",),
    score="1 when a question names the city and nothing else within 20 questions",
    references={
        "null": 0.0,
        "oracle": 1.0,
        "published": "mean returns: BC -17.0, filtered BC -15.2, MC -11.2, ILQL -12.5, PPO -15.1, GPT-4 -10.13",
    },
    source="rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4); cities and attributes are ours",
    overlap="there are 131 cities, and the paper trains on and evaluates with all of its own",
)
