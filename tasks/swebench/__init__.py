"""SWE-bench on its official instances and images: SWE-bench, Lite, Verified, SWE-Gym and SWE-smith."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/SWEBenchOfficial-v0",
    entry_point="lmgym.tasks.swebench.env:SWEBench",
    summary="SWE-bench: resolve an issue of a real repository in its official image, judged by its own tests.",
    max_turns=250,
    splits={"train": 0, "dev": 0, "test": 0},
    score="1 when the patch resolves the issue: all of FAIL_TO_PASS and PASS_TO_PASS succeed",
    references={"null": 0.0, "oracle": 1.0},
    extras=("swe",),
    answer_tokens=1024,
    player="thread",
    source="instances and grading rules of SWE-bench (MIT, arXiv 2310.06770), SWE-Gym and SWE-smith (MIT)",
    goldens="outcome",
    runs_code=True,
    sandboxed=True,
    call_timeout=3_600.0,
    replay_timeout=7_200.0,
    public={"protocol": ("bash", "tools", "r2e")},
)
