"""Actions that are nearly right, for tasks in a browser: calls of every action set, with arguments that rarely fit."""

from __future__ import annotations

import inspect
import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from lmgym.backends.browser_actions import Actions
from lmgym.backends.browser_calls import SETS

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


def fuzzed(count: int, *, seed: int = 6) -> Iterator[str]:
    """Yield as many actions; most name an action that there is, about half have arguments of the right kinds."""
    chance = random.Random(seed)
    for turn in range(count):
        name = NAMES[turn % len(NAMES)]
        call = f"{name}({', '.join(_arguments(chance, name))})"
        if chance.random() < 0.5:
            yield call
        else:
            torn = call[: chance.randrange(len(call) + 1)]
            yield chance.choice(
                (f"I think\n{call}", f"```\n{call}\n```", torn, f"{call}\ud83d", call + call, f"\x00{call}")
            )


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


def torment(env: Any, count: int) -> None:
    """Play fuzzed actions: each is answered, and episodes that one of them ends begin anew."""
    env.reset(options={"index": 0})
    seen: Counter[bool] = Counter()
    for action in fuzzed(count):
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space, action
        assert math.isfinite(reward), action
        assert abs(reward) <= 1, action
        seen[info["valid"]] += 1
        if terminated or truncated:
            env.reset(options={"index": 0})
    assert seen[False] > count / 2
    assert seen[True] > count / 50
