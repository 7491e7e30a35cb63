"""BabyAI: fulfil an instruction in rooms that one sees in part, in minigrid's engine and in words."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/BabyAI-v0",
    entry_point="lmgym.tasks.babyai.env:BabyAI",
    summary="Follow an instruction such as 'put the red ball next to a key' through rooms seen in part; 40 levels.",
    max_turns=128,
    splits={"train": 1_000_000, "test": 200},
    score="1 when the instruction is fulfilled",
    references={
        "null": 0.0,
        "random": "0.57 (200 test levels)",
        "oracle": 0.835,
        "published": "AgentGym's 90 games: Qwen2.5-7B-Instruct 0.667, GRPO on it 0.922, ScalingInter-7B 0.967",
    },
    extras=("babyai",),
    source="levels, engine and bot of minigrid (Apache-2.0); order of levels and commands as in AgentGym (MIT)",
    overlap="a room has few layouts: two seeds may make the same one, and the official ids count them all",
    public={"level": range(41)},
)
