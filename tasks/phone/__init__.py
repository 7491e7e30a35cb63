"""Phone: requests on a synthetic phone with six apps, in AndroidWorld's manner, judged by what the phone holds."""

from dataclasses import replace

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
_RECORDED = "lmgym.tasks.phone.recorded_env"
RECORDED = replace(
    SPEC,
    id="lmgym/GUIRecorded-v0",
    entry_point=f"{_RECORDED}:GUIRecorded",
    summary="Follow recorded trajectories on the phone's screens, action by action.",
    max_turns=40,
    splits={"train": 5_000, "test": 72},
    score="mean of the share of steps before the first mismatch and of success: UI-S1's semi-online performance",
    source="recordings of Phone's oracle; layout of AndroidControl (Li et al. 2024, arXiv 2406.03679), "
    "comparison of UI-S1 (Lu et al. 2025, arXiv 2509.11543)",
    public={
        "observe": ("elements", "none"),
        "pixels": ("none", "screenshot"),
        "instructions": ("high", "low"),
        "until": ("mismatch", "end"),
    },
)
RECORDED_OFFICIAL = replace(
    RECORDED,
    id="lmgym/GUIRecordedOfficial-v0",
    entry_point=f"{_RECORDED}:GUIRecordedOfficial",
    summary="Follow recorded trajectories of AndroidControl, action by action.",
    splits={"test": 0},
    references={"null": 0.0, "oracle": 1.0},
    options={"split": "test", "observe": "none", "pixels": "screenshot"},
    source="episodes of AndroidControl (Li et al. 2024, arXiv 2406.03679) in UI-S1's layout, which are not included",
    held_out=("test",),
    public={},
)
VARIANTS = (RECORDED, RECORDED_OFFICIAL)
