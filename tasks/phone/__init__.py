"""Phone: requests on a synthetic phone with six apps, in AndroidWorld's manner, judged by what the phone holds."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Phone-v0",
    entry_point="lmgym.tasks.phone.env:PhoneTask",
    summary="Use the contacts, messages, calendar, shop, maps and settings of a phone as a user asks.",
    max_turns=30,
    splits={"train": 5_000, "test": 80},
    score="1 when the policy says that it is done, and the answer and all that the phone holds are right",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    extras=("web",),
    player="thread",
    source="generated; apps and templates of our own, actions and rules of AndroidWorld (Rawles et al. 2024, "
    "arXiv 2405.14573)",
    goldens="outcome",
    answer_tokens=64,
    public={
        "observe": ("elements", "none"),
        "pixels": ("none", "screenshot"),
        "places": (True, False),
    },
)
