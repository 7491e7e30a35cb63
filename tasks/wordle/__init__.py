"""Wordle by the rules and in the encoding of LMRL-Gym, and a variant that counts letters."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

KNOWN: dict[str, float | str] = {"null": 0.0, "random": 6 / 465, "oracle": 1.0}
SPEC = TaskSpec(
    id="lmgym/Wordle-v0",
    entry_point="lmgym.tasks.wordle.env:Wordle",
    summary="Find a hidden five-letter word in six tries from coloured letters, as LMRL-Gym plays it.",
    max_turns=6,
    splits={"train": 372, "test": 93},
    score="1 when the word was found within six tries",
    references=KNOWN | {"published": "returns on 431 official words: BC -2.81, MC -2.16, ILQL -2.04, PPO -2.63"},
    source="rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4); the words are our own list",
    public={"colouring": ("lmrl", "counting")},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/WordleCounting-v0",
        summary="Wordle as newspapers print it: a letter is coloured as often as the hidden word has it.",
        references=KNOWN,
        options={"colouring": "counting"},
    ),
)
