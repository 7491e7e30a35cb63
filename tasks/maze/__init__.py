"""LMRL-Gym's maze: walk to a goal by four moves, with or without seeing where one stands."""

from dataclasses import replace

from lmgym.env.spec import Standard, TaskSpec

SPEC = TaskSpec(
    id="lmgym/Maze-v0",
    entry_point="lmgym.tasks.maze.env:Maze",
    vector_entry_point="lmgym.tasks.maze.vector:MazeVector",
    summary="Walk to the goal of LMRL-Gym's double-T maze, told position, goal and walls at every step.",
    max_turns=100,
    splits={"train": 25, "test": 25},
    score="1 when the goal is reached within 100 moves",
    references={
        "null": 0.0,
        "random": 0.2468,
        "oracle": 1.0,
        "published": "mean returns: BC -72.1, filtered BC -56.4, MC -48.1, ILQL -6.97, PPO -37.7, "
        "online filtered BC -71.7, GPT-4 -39.7; optimum -6.84",
    },
    source="layout, rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4)",
    overlap="the maze has 25 starts, and the paper trains on and evaluates from all of them",
    standard=Standard(tries=32),
    public={"view": ("full", "goal", "walls"), "rewards": ("cost", "goal", "penalty"), "explained": (True, False)},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/MazePartial-v0",
        summary="Walk to the goal of the same maze, told nothing but the walls next to one.",
        references={
            "null": 0.0,
            "random": 0.2468,
            "oracle": 1.0,
            "published": "mean returns: BC -79.5, filtered BC -82.9, MC -80.3, ILQL -52.9, PPO -91.7, "
            "online filtered BC -79.5, GPT-4 -88.0",
        },
        options={"view": "walls"},
    ),
)
