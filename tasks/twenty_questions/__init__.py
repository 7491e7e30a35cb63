"""Twenty Questions of LMRL-Gym: find a hidden object by questions that are answered yes or no."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/TwentyQuestions-v0",
    entry_point="lmgym.tasks.twenty_questions.env:TwentyQuestions",
    summary="Find one of 158 everyday objects by at most 20 questions that an oracle answers yes or no.",
    max_turns=20,
    splits={"train": 158, "test": 158},
    seats=("oracle",),
    score="1 when a question names the object and nothing else within 20 questions",
    references={
        "null": 0.0,
        "oracle": 1.0,
        "published": "mean returns: BC -16.0, filtered BC -14.6, MC -13.9, ILQL -14.2, PPO -14.9, GPT-4 -13.0",
    },
    source="rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4); objects and attributes are ours",
    overlap="there are 158 objects, and the paper trains on and evaluates with all of them",
)
