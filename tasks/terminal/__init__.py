"""Terminal: tasks in a shell, as folders in Harbor's layout, judged by their own tests."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Terminal-v0",
    entry_point="lmgym.tasks.terminal.env:Terminal",
    summary="Do a job in a shell, with data, logs, permissions, git or programs; the task's own tests decide.",
    max_turns=50,
    splits={"train": 5, "test": 5, "official": 0},
    score="1 when the task's tests pass: the reward that its test script writes",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    answer_tokens=1024,
    player="thread",
    source="ten tasks of our own; the layout of task folders is Harbor's (Apache-2.0), which Terminal-Bench 2 uses",
    goldens="outcome",
    runs_code=True,
    sandboxed=True,
    call_timeout=7_200.0,
    replay_timeout=7_200.0,
    public={"protocol": ("bash", "tools", "r2e"), "network": ("none",)},
)
