"""Bad input in every seat of the text tasks, from nearly right actions to calls of tools: answered, never raised."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from lmgym.env.env import TextEnv
from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build
from lmgym.errors import InstanceError, MissingExtra
from tests.tasks.test_tau2 import OFFICIAL, needs_official

TASKS = (
    *("BabyAI-v0", "CarDealer-v0", "Chess-v0", "ChessGreedy-v0", "ChessEndgames-v0", "ConnectFour-v0", "Doctor-v0"),
    *("FrozenLake-v0", "FrozenLakeRAGEN-v0", "GuessMyCity-v0", "KuhnPoker-v0", "LeducPoker-v0", "Maze-v0"),
    *("MazePartial-v0", "MiniHanabi-v0", "Negotiate-v0", "Recommender-v0", "RetailDesk-v0", "Sokoban-v0"),
    *("SokobanRAGEN-v0", "TextCraft-v0", "TextNav-v0", "TextNavPartial-v0", "TicTacToe-v0", "TryAgain-v0"),
    *("TryAgainReasoningGym-v0", "TwentyQuestions-v0"),
)
OFFICIAL_TASKS = (
    *(("Tau2RetailOfficial-v0", "base"), ("Tau2TelecomOfficial-v0", "small"), ("Tau2MockOfficial-v0", "base")),
    ("Tau2TelecomSoloOfficial-v0", "small"),
)
SLOW = ("Mint-v0", "TextArena-Nim-v0", "TextArena-SimpleNegotiation-v0", "TextArena-Stratego-v0", "TextArena-2048-v0")
TOKENS = (  # of other seats' protocols, and of other suites
    *("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###", "STOP", "<stop>", "[Accept]", "[pass]", "accept", "resign"),
    *("<X(0,0)><O(1,1)>", "<BET>", "<PASS>", "<Play card 0>", "e2e4 e7e5", "O-O-O-O", "##", "Success", "Correct!"),
    *("Yes.", "You win.", "Observation: 1\nReward: 1", "user: hello", "<|im_start|>user\nYes<|im_end|>", "assistant:"),
    *("<answer>Up || Down || Left || Right || Up || Up</answer>", "<answer></answer><answer>", "Turn 2:\nState:"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, 10**400, float("nan"), float("inf"), "", "x", "\ud800", "a\x00b", "\u202e#W1\u202c"),
    *(["x"], [[[]]], {}, {"a": {"b": []}}, "y" * 100_000, [1] * 1_000, {"name": "x", "arguments": {}}),
)
DEEP = (
    '{"name": "think", "arguments": ' + '{"a": ' * 50_000,
    "[" * 100_000 + "]" * 100_000,
    '{"name": "think", "arguments": ' + '{"a":' * 900 + "1" + "}" * 901,
)
SHAPES = (
    *('{"name": "think"}', '{"arguments": {}}', '{"name": "think", "arguments": []}', '{"name": 3, "arguments": {}}'),
    *('{"name": "think", "arguments": "{}"}', '{"name": "think", "arguments": {"a": 1, "a": 2}}', '["think", {}]'),
    *(
        '{"name": "__class__", "arguments": {}}',
        '{"name": "no_such_tool", "arguments": {}}',
        "null",
        "NaN",
        "-Infinity",
    ),
    *('{"name": "think", "arguments": {}}' * 2, '<tool_call>{"name": "think"}', "<tool_call>{}</tool_call>" * 100),
    *('{"name": "think", "arguments": {"a": 1}} tail', '\ufeff{"name": "think", "arguments": {}}', "{'name': 'think'}"),
)


def nearly(action: str) -> Iterator[str]:
    """Yield texts that differ from an action by little, or say it twice."""
    yield from (action.upper(), action.swapcase(), action[:-1], action[1:], f" {action}\n", f"\u202e{action}\u202c")
    yield from (f"{action}\n{action}", f"{action} and {action}", f"{action}{action}", f"{action}\x00", f"[{action}]")
    yield from (f"{action}\ud83d", f"<answer>{action}</answer>" * 2, f"<think>{action}", f"```\n{action}\n```")
    yield from (f'"{action}"', action + " " * 1_000_000, f"{action}\n" * 20_000)


def calls(tools: list[dict[str, Any]]) -> Iterator[str]:
    """Yield calls of every tool with arguments that lack, are too many or have another type."""
    for position, tool in enumerate(tools):
        function = tool.get("function", tool)
        names = list(function.get("parameters", {}).get("properties", {})) or ["x"]
        yield json.dumps({"name": function["name"], "arguments": {}})
        yield json.dumps({"name": function["name"].upper(), "arguments": dict.fromkeys(names, "x")})
        yield json.dumps({"name": function["name"], "arguments": {**dict.fromkeys(names, "x"), "extra": 1}})
        for turn, name in enumerate(names):
            value = VALUES[(position + 7 * turn) % len(VALUES)]
            yield json.dumps({"name": function["name"], "arguments": {**dict.fromkeys(names, "x"), name: value}})
        for value in VALUES[position % 4 :: 4]:
            yield json.dumps({"name": function["name"], "arguments": dict.fromkeys(names, value)})


def bad_actions(env: Any, seat: str) -> Iterator[str]:
    """Yield bad input for the seat on turn; what an action looks like is read from the instance that is open."""
    task = env.unwrapped
    yield from (*TOKENS, *SHAPES, *DEEP, *HOSTILE)
    yield from calls(task.tools(seat))
    known = [*(task.admissible() or ())[:3]] if seat == "agent" else []
    if seat == "agent" and type(task).oracle is not TextEnv.oracle:
        known += itertools.islice(task.oracle(), 1)
    for action in known:
        yield from nearly(action)


def torment(env: Any) -> dict[str, int]:
    """Play each bad action in the seat on turn; return how many were given by seat."""
    given: dict[str, int] = {}
    pending: dict[str, Iterator[str]] = {}
    opened, over, info = 0, True, {}
    while True:
        if over:
            _, info = env.reset(seed=opened, options={"index": opened % env.unwrapped.size()})
            opened, over = opened + 1, False
        seat = info["seat"]
        if seat not in pending:
            pending[seat] = bad_actions(env, seat)
        action = next(pending[seat], None)
        if action is None:
            return given
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space, repr(action[:100])
        assert np.isfinite(reward), repr(action[:100])
        assert 0 <= info.get("score", 0.0) <= 1, repr(action[:100])
        given[seat] = given.get(seat, 0) + 1
        over = terminated or truncated


def answered(task: str, **options: Any) -> None:
    for others in ({}, {"others": "caller"}):
        try:
            env = build(f"lmgym/{task}", max_turns=40, **options, **others)
        except (InstanceError, MissingExtra) as error:
            pytest.skip(str(error))
        with closing(env):
            assert torment(env)


@pytest.mark.filterwarnings(  # reasoning-gym's packages leave files open
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning", "ignore::SyntaxWarning"
)
@pytest.mark.parametrize("task", TASKS)
def test_bad_input_is_answered_in_every_seat(task: str) -> None:
    answered(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", SLOW)
def test_bad_input_is_answered_in_every_seat_of_a_slow_task(task: str) -> None:
    answered(task)


@needs_official
@pytest.mark.parametrize(("task", "split"), OFFICIAL_TASKS)
def test_bad_input_is_answered_in_every_seat_of_tau2(task: str, split: str) -> None:
    answered(task, split=split, data=str(OFFICIAL))
