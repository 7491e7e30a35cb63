"""A task for eyes, as a plug-in: which corner of each picture is lit. Three pictures an episode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.env.spec import TaskSpec

CORNERS = ("north west", "north east", "south west", "south east")
SPEC = TaskSpec(
    id="test/Corners-v0",
    entry_point=f"{__name__}:Corners",
    summary="Say which corner of the picture is lit.",
    max_turns=3,
    splits={"train": 400, "test": 100},
    score="share of the three corners that were named",
    references={},
)


class Corners(TextEnv):
    """Pictures of noise with a bright corner; the text says nothing of it."""

    SPEC = SPEC
    PICTURES = Images(48, 64)

    def begin(self, index: int) -> Reply:
        chance = np.random.default_rng([index, len(self.split)])
        self.lit = [int(corner) for corner in chance.integers(0, 4, 3)]
        self.noise = chance.integers(0, 80, (3, 48, 64, 3), dtype=np.uint8)
        self.turn = self.right = 0
        return Reply("Which corner?", images=(self.picture(),))

    def act(self, action: str) -> Reply:
        hit = action.strip() == CORNERS[self.lit[self.turn]]
        self.right += hit
        self.turn += 1
        reward = {"right": float(hit)}
        if self.turn == 3:
            return Reply("Over.", reward=reward, done=True, score=self.right / 3)
        return Reply("And now?", images=(self.picture(),), reward=reward)

    def picture(self) -> np.ndarray:
        pixels = self.noise[self.turn].copy()
        down, across = divmod(self.lit[self.turn], 2)
        pixels[24 * down : 24 * down + 20, 32 * across : 32 * across + 28] += 150
        return pixels

    def oracle(self) -> Iterator[str]:
        while True:
            yield CORNERS[self.lit[self.turn]]
