"""A task on another machine: the client of `lmgym serve`."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Remote-v0",
    entry_point="lmgym.tasks.remote.env:RemoteEnv",
    summary="Any task, played at the server that `url` names.",
    max_turns=1_000,
    splits={"train": 0, "test": 0},
    score="as the task says that is played",
    references={"oracle": "as the task says, where the server lets it speak"},
    extras=("remote",),
    player="thread",
    source="whatever the server plays",
    remote=True,
)
