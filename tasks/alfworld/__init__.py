"""ALFWorld: household tasks in text; procedural households, and the official games where they are present."""

from dataclasses import replace
from importlib.resources import files

from lmgym.env.spec import TaskSpec

_COMMANDS = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip().replace("$put", "move O to R")

_SOURCE = (
    "rules, grammar and room layouts read at run time from the alfworld package (MIT; Shridhar et al. 2021, "
    "arXiv 2010.03768, on ALFRED); engine and households our own"
)
SPEC = TaskSpec(
    id="lmgym/ALFWorld-v0",
    entry_point="lmgym.tasks.alfworld.env:ALFWorld",
    summary="Do a household task (find, clean, heat, cool, light, put away) by text commands in an unseen room.",
    max_turns=30,
    splits={"train": 1_000_000, "test": 1_000},
    score="1 when the goal holds",
    references={"null": 0.0, "random": 0.014, "demonstrator": 1.0, "oracle": 1.0},
    extras=("alfworld",),
    instructions=_COMMANDS,
    player="inline",
    deterministic=True,
    source=_SOURCE,
    public={"receptacles": range(3, 52), "objects": range(2, 41), "instructions": (True, False)},
)
OFFICIAL = TaskSpec(
    id="lmgym/ALFWorldOfficial-v0",
    entry_point="lmgym.tasks.alfworld.env:ALFWorld",
    summary="The official ALFWorld games, played from $ALFWORLD_DATA with the stock engine's words.",
    max_turns=50,
    splits={"train": 0, "valid_seen": 0, "valid_unseen": 0},
    score="1 when the goal holds",
    references={
        "null": 0.0,
        "random": 0.0,
        "oracle": 1.0,
        "ReAct, PaLM-540B": "0.71 on valid_unseen, best of 6 prompts (arXiv 2210.03629)",
        "BUTLER": "0.37 on valid_unseen, best of 8 (arXiv 2010.03768, as quoted by ReAct)",
    },
    extras=("alfworld",),
    instructions=_COMMANDS,
    player="inline",
    deterministic=True,
    source=f"game files of ALFWorld (MIT) under $ALFWORLD_DATA; {_SOURCE}",
    options={"source": "official"},
    public={"instructions": (True, False)},
)
ADVISED = replace(
    SPEC,
    id="lmgym/ALFWorldAdvised-v0",
    entry_point="lmgym.tasks.alfworld.advised:AdvisedALFWorld",
    summary="ALFWorld with an adviser, a second seat that names a strategy before each command.",
    seats=("adviser",),
    references={"null": 0.0, "oracle": 1.0},
    part_of=SPEC.id,
)
VARIANTS = (OFFICIAL, ADVISED)
