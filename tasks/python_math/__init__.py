"""PythonMath: problems to calculate, with a Python to run code in, by the protocols of tool-integrated reasoning."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

PROTOCOLS = ("retool", "simpletir", "artist", "gem")
SPEC = TaskSpec(
    id="lmgym/PythonMath-v0",
    entry_point="lmgym.tasks.python_math.env:PythonMath",
    summary="Solve a problem of arithmetic, algebra or counting with Python, which runs in a sandbox.",
    max_turns=12,
    prose=True,
    splits={"train": 100_000, "test": 400},
    score="1 when the final answer is right",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    answer_tokens=128,
    player="thread",
    source="protocols of ReTool, SimpleTIR, ARTIST and GEM; the problems are our own",
    goldens="outcome",
    runs_code=True,
    sandboxed=True,
    public={
        "protocol": PROTOCOLS,
        "level": range(1, 4),
        "tool": ("on", "off"),
        "state": ("session", "script"),
    },
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/PythonMathFiles-v0",
        entry_point="lmgym.tasks.python_math.static:PythonMathFiles",
        summary="The same with questions and answers of your own files, judged by math-verify.",
        splits={"train": 0, "test": 0},
        references={"null": 0.0, "oracle": 1.0},
        extras=("math",),
        overlap="the files decide",
        source="protocols of ReTool, SimpleTIR, ARTIST and GEM; the files are yours",
        public={"protocol": PROTOCOLS, "tool": ("on", "off"), "state": ("session", "script")},
    ),
)
