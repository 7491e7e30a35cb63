"""Click target: pictures of screens and one thing on them to click, judged as ScreenSpot judges."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

_TOLD = {"coordinates": ("pixels", "thousand"), "blank": (True, False)}
SPEC = TaskSpec(
    id="lmgym/ClickTarget-v0",
    entry_point="lmgym.tasks.click_target.env:ClickTarget",
    summary="Click what an instruction names on the picture of a small screen: a button, icon, field or box.",
    max_turns=1,
    splits={"train": 1_000_000, "test": 1_000},
    score="1 when the point, or the middle of the box, that was named lies within the target's box",
    references={"null": 0.0, "random": 0.17, "one click for all": 0.26, "oracle": 1.0},
    source="generated; the metric is ScreenSpot's (SeeClick, arXiv 2401.10935)",
    public={
        **{"width": range(96, 1281), "height": range(96, 721)},  # no larger than the desktop's
        **{"windows": range(1, 11), "least": range(1, 91), "elements": range(1, 91), "colours": range(1, 9)},
        **{"cell": range(32, 129), "scale": range(1, 5), "touch": (True, False), "by": ("colour", "name")},
        **_TOLD,
    },
)
_DESKTOP = replace(
    SPEC,
    id="lmgym/ClickTargetDesktop-v0",
    summary="Click what an instruction names in one of six windows of a desktop of 1,280 by 720 pixels.",
    references={"null": 0.0, "random": 0.0, "oracle": 1.0},
    options={
        **{"width": 1280, "height": 720, "windows": 6, "scale": 2, "touch": False},
        **{"least": 30, "elements": 90, "colours": 8, "cell": 32, "by": "name"},
    },
)
SCREENSPOT = replace(
    SPEC,
    id="lmgym/ScreenSpot-v0",
    entry_point="lmgym.tasks.click_target.screenspot:ScreenSpot",
    summary="ScreenSpot's, or ScreenSpot-Pro's, own instructions and screenshots.",
    splits={"test": 0},
    references={"oracle": 1.0, "null": 0.0, "SeeClick on v1": "0.534 (arXiv 2401.10935)"},
    extras=("web",),
    options={"split": "test"},
    public=_TOLD,
    source="annotations and screenshots of ScreenSpot (SeeClick) or ScreenSpot-Pro, which are not included",
    held_out=("test",),
)
VARIANTS = (_DESKTOP, SCREENSPOT)
