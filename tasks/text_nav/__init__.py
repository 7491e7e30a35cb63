"""LMRL-Gym's Text-Nav: put the stale food into the fridge of a house of eight rooms and close it."""

from dataclasses import replace

from lmgym.env.spec import Standard, TaskSpec

_FULL = "mean returns: BC 0.39, filtered BC 0.54, MC 0.63, ILQL 0.88, PPO 0.81, online filtered BC 0.62, GPT-4 0.52"
_PARTIAL = "mean returns: BC 0.25, filtered BC 0.49, MC 0.58, ILQL 0.76, PPO 0.80, online filtered BC 0.53, GPT-4 0.21"
SPEC = TaskSpec(
    id="lmgym/TextNav-v0",
    entry_point="lmgym.tasks.text_nav.env:TextNav",
    summary="Carry the stale food to the fridge in a house of eight rooms and close the door; eating it loses.",
    max_turns=20,
    splits={"train": 8, "test": 8},
    score="1 when the stale food lies in the closed fridge",
    references={"null": 0.0, "oracle": 1.0, "published": _FULL},
    extras=("textworld",),
    player="process",
    source="rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4); our own house; TextWorld (MIT)",
    overlap="a house has eight rooms to start from, and the paper trains on and evaluates from all of them",
    standard=Standard(tries=4),
    public={"view": ("full", "partial")},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/TextNavPartial-v0",
        summary="The same errand without being told what one carries.",
        references={"null": 0.0, "oracle": 1.0, "published": _PARTIAL},
        options={"view": "partial"},
    ),
    replace(
        SPEC,
        id="lmgym/TextNavOfficial-v0",
        entry_point="lmgym.tasks.text_nav.env:TextNavOfficial",
        summary="The same errand in the house of LMRL-Gym's release, from $LMRL_DATA.",
        splits={"train": 0, "test": 0},
        references={"null": 0.0, "oracle": 1.0, "published": _FULL},
        source="house, rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4); TextWorld (MIT)",
        public={},
    ),
)
