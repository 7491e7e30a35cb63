"""Tasks of five instances as a plug-in, so that whole entries cost seconds: tools, a second seat, pictures."""

from __future__ import annotations

from dataclasses import replace

from tests.env.games import RACE
from tests.evaluation.jars import SPEC as JARS
from tests.vision.games import SPEC as CORNERS

FIVE = {"train": 100, "test": 5}
SPEC = replace(JARS, id="test/FewJars-v0", entry_point=f"{__name__}.env:FewJars", splits=FIVE)
DUEL = replace(RACE, id="test/FewDuels-v0", entry_point=f"{__name__}.env:FewDuels", splits=FIVE, seats=("black", "red"))
PICTURES = replace(CORNERS, id="test/FewCorners-v0", entry_point=f"{__name__}.env:FewCorners", splits=FIVE)
VARIANTS = (DUEL, PICTURES)
