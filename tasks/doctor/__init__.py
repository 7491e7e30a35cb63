"""Doctor: question an invented patient with an invented illness, within a budget, and name illness and remedy."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Doctor-v0",
    entry_point="lmgym.tasks.doctor.env:Doctor",
    summary="Question a patient with an invented illness in 2 to 10 turns, then name the illness and its remedy.",
    max_turns=10,
    prose=True,
    answer_tokens=64,
    splits={"train": 20_000, "test": 240},
    score="half a point each for the right diagnosis and the right recommendation",
    references={"null": 0.0, "oracle": 1.0},
    source="rules and rewards of DoctorAgent-RL (arXiv 2505.19630); illnesses, findings and remedies are invented",
    overlap="there are 16 illnesses; patients of both splits differ in findings told, order of words and budget",
    public={"budget": range(11), "table": (True, False)},
)
