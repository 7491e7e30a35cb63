"""Episodes in which every text is an attack, and some that are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmgym.env.pictures import encode
from lmgym.rollout import episodes
from lmgym.types import Completion, Message, Trajectory, Turn

ATTACKS = [
    "<script>window.planted = 1</script>",
    "</script><script>window.planted = 1</script>",
    "<img src=x onerror='window.planted = 1'>",
    '"><svg onload="window.planted = 1">',
    '<iframe srcdoc="<script>parent.planted = 1</script>"></iframe>',
    "javascript:window.planted=1",
    "[press](javascript:window.planted=1) <a href='javascript:window.planted=1'>press</a>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><base href='http://127.0.0.1:9/'>",
    "<link rel=stylesheet href=http://127.0.0.1:9/a.css><style>@import url(http://127.0.0.1:9/b.css)</style>",
    "{{constructor.constructor('window.planted=1')()}} ${window.planted=1} `window.planted=1`",
    "<form action=http://127.0.0.1:9/><button autofocus onfocus=window.planted=1>x</button></form>",
    "\x1b[2J\x1b]8;;http://127.0.0.1:9/\x07link\x1b]8;;\x07\x1b]0;title\x07",
    "\u202egnihtyna\u202c \u2066x\u2069 \u0000 \ud800 \u2028 --> <!-- <script>",
    "__proto__",
    "\\u003cscript>window.planted=1\\u003c/script>",
]
PICTURE, PNG = encode(np.full((4, 4, 3), 200, np.uint8))


def episode(number: int, text: str = "look", *, success: bool = True, **more) -> Trajectory:
    """Two turns; `text` stands wherever a record has room for one."""
    said = Completion(
        text=text,
        thinking=text,
        ids=(7, 8, 9),
        logprobs=(-0.01, -3.5, -9.0),
        entropy=(0.0, 0.9, 6.0),
        usage={text: text},
    )
    turn = Turn(
        observation=Message(role="user", text=text, images=(PICTURE, text)),
        completion=said,
        action=text + "!",
        reward=1.0,
        terms={text: 1.0},
        info={"valid": True, text: [text, {text: text}]},
    )
    facts = {
        "id": f"{number} {text}",
        "root": str(number),
        "task": "lmgym/Planted-v0",
        "split": "test",
        "index": number,
        "options": {text: text},
        "seat": "agent",
        "prompt": text,
        "tags": {text: text},
        "info": {"score": float(success), "success": success, text: text},
        "final": Message(role="user", text=text),
        "terminated": True,
        "stop": "done",
    }
    return Trajectory(turns=(turn, turn), **{**facts, **more})


def hostile_run(folder: Path) -> Path:
    """A run whose every text is an attack, pictures and the folder's own name among them."""
    run = folder / "<img src=x onerror=window.planted=1>"
    made = [
        episode(n, text, task=text, split=text, seat=text, stop=text, success=bool(n % 2))
        for n, text in enumerate(ATTACKS)
    ]
    episodes.write(run / "episodes.jsonl", made)
    (run / "pictures").mkdir()
    (run / "pictures" / f"{PICTURE}.png").write_bytes(PNG)
    (run / "pictures" / f"{'0' * 32}.png").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>")
    return run


def plain_run(folder: Path, *, words: str = "look", count: int = 6) -> Path:
    """A run of a few harmless episodes: those of odd number succeed."""
    made = [
        episode(n, f"{words} {n}", success=bool(n % 2), stop="done" if n % 2 else "max_turns") for n in range(count)
    ]
    episodes.write(folder / "episodes.jsonl", made)
    (folder / "pictures").mkdir(exist_ok=True)
    (folder / "pictures" / f"{PICTURE}.png").write_bytes(PNG)
    return folder
