"""Five hundred actions that are wrong or nearly right, for all tasks of the web and of pictures alike.

Calls of every browser action with arguments that rarely fit, the shop's commands, points, boxes, crops and answers as
calls, tags and JSON, and texts that no parser likes. `torment` plays them.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmgym.backends.browser.actions import Actions
from lmgym.backends.browser.calls import SETS
from lmgym.env.hostile import HOSTILE

DOZEN = (  # pages of MiniWoB++ of all kinds
    *("login-user-popup", "click-checkboxes", "drag-box", "read-table", "email-inbox-reply", "click-button"),
    *("click-menu", "find-greatest", "choose-list", "enter-date", "form-sequence", "stock-market"),
)
NAMES = (*sorted({name for names in SETS.values() for name in names}), "noop", "eval", "_click", "__init__", "")
BIDS = (
    *(f"'{number}'" for number in range(40)),
    "7",
    "'999999'",
    "'a1'",
    "'aZ9'",
    "'bb'",
    "''",
    '"\'] *"',
    "-3",
    "1.5",
)
NUMBERS = (
    *("0", "80", "-1", "0.5", "9.9e99", "1e308", "-1e308", "1e999", "-1e999", "nan", "float('nan')", "NaN", "inf"),
    *("9" * 400, "1e5", "-100000.1", "2**80", "0x10", "1j"),
)
TEXTS = (
    *(
        "'x'",
        "'\\ud800'",
        "'\\udfff\\ud800'",
        "'\\x00'",
        "'é漢🙂'",
        '"\'; --"',
        "'Control+Alt+Delete'",
        "'Enter'",
        "'Tab'",
    ),
    *("'about:blank'", "'http://'", "'http://[::1'", "'javascript:1'", "'file:///etc/passwd'", "'../../etc/passwd'"),
    *("['left']", "['x', 'y']", f"'{'y' * 3000}'", "'right'", "'middle'", "'Shift'"),
)
OTHERS = (
    "None",
    "True",
    "[1, [2]]",
    "{}",
    "{'a': 1}",
    "b'x'",
    "x",
    "*a",
    "**b",
    "...",
    "()",
    "[",
    "lambda: 1",
    "f'{1}'",
)


SHAPES = (  # of actions that are no browser's; a hole takes a text, a number or an object
    *("search[{text}]", "click[{text}]", "search[{text}", "click[[{text}]]", "Search[{number}]", "click[{text}]]"),
    *("crop({number}, {number})", "crop({number})", "crop(x={number}, z=1)", "answer({text})", "answer({number})"),
    *("click({number}, {number})", "click({number},{number},{number},{number})", "[{number}, {number}, 1, 2]"),
    *("({number}, {number})", "<box>{number} {number}</box>", "<answer>{text}</answer>", "<think>{text}</think>"),
    *("<think>x</think><tool_call>{json}</tool_call>", "<think>{number}</think><answer>{text}</answer>"),
    *("<tool_call>{json}", "{json}", "Action: {json}"),
)
OBJECTS = (
    '{"name": "crop", "arguments": {"x": {number}, "y": {number}}}',
    '{"name": "search_coordinate", "arguments": {"coordinate": [{number}, {number}]}}',
    '{"name": {number}, "arguments": [{number}]}',
    '{"name": "answer", "arguments": "{number}"}',
    '{"arguments": {"keywords": {number}}, "name": "search"',
    '{"action_type": "navigate_home", "index": {number}}',
    '{"action_type": "click", "index": {number}}',
    '{"action_type": {number}, "text": "{number}"}',
)
LENGTH = 2_000  # characters of a text that no parser likes; tests of all tasks have the whole ones


def _actions() -> Iterator[str]:
    chance = random.Random(6)
    texts = [text[:LENGTH] for text in HOSTILE]
    yield from texts
    for turn in range(120):
        text, shape = chance.choice((*TEXTS, *BIDS, *OTHERS, *texts)), SHAPES[turn % len(SHAPES)]
        shape = shape.replace("{json}", chance.choice(OBJECTS))
        while "{number}" in shape:
            shape = shape.replace("{number}", chance.choice(NUMBERS), 1)
        yield shape.replace("{text}", text)
    yield from _calls(chance)


def _calls(chance: random.Random) -> Iterator[str]:
    """Yield browser calls; most name an action that there is, about half have arguments of the right kinds."""
    turn = 0
    while True:
        name = NAMES[turn % len(NAMES)]
        call = f"{name}({', '.join(_arguments(chance, name))})"
        if chance.random() < 0.5:
            yield call
        else:
            torn = call[: chance.randrange(len(call) + 1)]
            yield chance.choice(
                (f"I think\n{call}", f"```\n{call}\n```", torn, f"{call}\ud83d", call + call, f"\x00{call}")
            )
        turn += 1


def _arguments(chance: random.Random, name: str) -> Iterator[str]:
    method = getattr(Actions, name, None) if name and not name.startswith("_") else None
    wanted = list(inspect.signature(method).parameters.values())[1:] if method else []
    wild = chance.random() < 0.4
    for parameter in wanted[: chance.randrange(len(wanted) + 1)] if wild else wanted:
        kind = (
            BIDS if parameter.name.endswith("bid") else NUMBERS if parameter.annotation in ("float", "int") else TEXTS
        )
        if parameter.default is parameter.empty or wild:
            yield chance.choice(chance.choice((BIDS, NUMBERS, TEXTS, OTHERS)) if wild else kind)
    if wild and chance.random() < 0.3:
        yield chance.choice((*OTHERS, "bid='1'", "x=1", "no=nan"))


MALFORMED: Sequence[str] = tuple(itertools.islice(_actions(), 500))


def torment(env: Any, actions: Sequence[str], *, each: int = 50) -> Counter[bool]:
    """Play actions: each is answered. The next instance is opened when one is over, or after `each`.

    Returns how many were valid and how many were not.
    """
    seen: Counter[bool] = Counter()
    opened, left = -1, 0
    for action in actions:
        if not left:
            opened, left = opened + 1, each
            env.reset(options={"index": opened % env.unwrapped.size()})
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space, action
        assert np.isfinite(reward), action
        assert 0 <= info.get("score", 0.0) <= 1, action
        seen[info["valid"]] += 1
        left = 0 if terminated or truncated else left - 1
    return seen
