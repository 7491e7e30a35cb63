"""The 40 levels in AgentGym's order, and the numbers of their instances."""

from __future__ import annotations

import contextlib
import io
from typing import Any

LEVELS = (
    *("GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists", "GoToObjS6", "GoToLocalS8N7", "GoToObjMazeS7"),
    *("GoToImpUnlock", "GoToSeqS5R2", "GoToRedBlueBall", "GoToDoor", "GoToObjDoor", "Open", "OpenRedDoor"),
    *("OpenDoorLoc", "OpenRedBlueDoorsDebug", "OpenDoorsOrderN4Debug", "Pickup", "UnblockPickup", "PickupLoc"),
    *("PickupDistDebug", "PickupAbove", "PutNextLocalS6N4", "PutNextS7N4Carrying", "Unlock", "UnlockLocalDist"),
    *("KeyInBox", "UnlockPickupDist", "BlockedUnlockPickup", "UnlockToUnlock", "ActionObjDoor", "FindObjS7"),
    *("KeyCorridorS6R3", "OneRoomS20", "MoveTwoAcrossS8N9", "SynthS5R2", "SynthLoc", "SynthSeq", "MiniBossLevel"),
    *("BossLevel", "BossLevelNoUnlock"),
)
FIRST = {"test": 0, "train": 200}  # official id of a split's first instance


def official_id(split: str, index: int, level: int) -> int:
    """Return AgentGym's id of an instance; with a `level` above 0, of the index-th instance of that level."""
    return FIRST[split] + (len(LEVELS) * index + level - 1 if level else index)


def make_world(item: int) -> Any:
    """Return minigrid's environment of an official id, after its reset: level `item % 40 + 1` by seed `item // 40`."""
    seed, number = divmod(item, len(LEVELS))
    name = f"BabyAI-{LEVELS[number]}-v"
    with contextlib.redirect_stdout(io.StringIO()):  # minigrid prints rejected samples, pygame its version
        import gymnasium
        import minigrid  # noqa: F401  # registers the levels

        spec = next(
            gymnasium.registry[f"{name}{version}"] for version in (0, 1) if f"{name}{version}" in gymnasium.registry
        )
        world = gymnasium.make(spec, disable_env_checker=True).unwrapped
        world.reset(seed=seed)
    return world
