"""tau2-bench: serve a simulated user with tools within a policy, on the official files."""

from dataclasses import replace

from lmgym.env.spec import Standard, TaskSpec

_FLOOR = "doing nothing politely"  # python:lmgym.tasks.tau2.nothing:decline
_PAPER = "published, user gpt-4.1"
SPEC = TaskSpec(
    id="lmgym/Tau2RetailOfficial-v0",
    entry_point="lmgym.tasks.tau2.env:Tau2",
    summary="tau2-bench's retail domain: cancel, change, return and exchange orders of a simulated user.",
    max_turns=200,
    answer_tokens=256,
    seats=("user", "judge"),
    parallel_calls=True,
    splits={"train": 0, "test": 0, "base": 0},
    score="1 when every check that the task's reward_basis names holds after a proper end, within 200 steps "
    "(messages of all sides)",
    references={
        "null": 0.0,
        "oracle": 1.0,
        _PAPER: "GPT-4.1 0.740, o4-mini 0.683 (pass^1 of all base tasks)",
        _FLOOR: "0.08 (3 of 37 base tasks)",
    },
    source="tasks, databases, policies and rules of tau2-bench v1.0.1 (MIT, arXiv 2506.07982)",
    overlap="base is train and test together",
    standard=Standard(tries=4),
    options={"domain": "retail"},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/Tau2RetailJudgedOfficial-v0",
        summary="The retail tasks with assertions in natural language, which a model in the seat judge checks.",
        references={"null": 0.0, "oracle": 1.0},
        options={"domain": "retail", "judged": True},
    ),
    replace(
        SPEC,
        id="lmgym/Tau2AirlineOfficial-v0",
        summary="tau2-bench's airline domain: book, change and cancel reservations of a simulated user.",
        references={
            "null": 0.0,
            "oracle": 1.0,
            _PAPER: "GPT-4.1 0.560, o4-mini 0.521 (pass^1 of all base tasks)",
            _FLOOR: "0.44 (22 of 50 base tasks, by their gold actions)",
        },
        options={"domain": "airline"},
    ),
    replace(
        SPEC,
        id="lmgym/Tau2TelecomOfficial-v0",
        summary="tau2-bench's telecom domain: repair the service of a simulated user who has a phone with 30 tools.",
        splits={"small": 0, "train": 0, "test": 0, "base": 0, "full": 0},
        references={
            "null": 0.0,
            "oracle": 1.0,
            _PAPER: "GPT-4.1 0.340, o4-mini 0.502 (pass^1 of all base tasks)",
            _FLOOR: "0 (of 20 small tasks)",
        },
        overlap="small, train and test are parts of full, base is train and test together",
        options={"domain": "telecom"},
    ),
    replace(
        SPEC,
        id="lmgym/Tau2TelecomSoloOfficial-v0",
        summary="The telecom tasks without a user: the agent reads a ticket and has the phone's tools as well.",
        splits={"small": 0, "train": 0, "test": 0, "base": 0, "full": 0},
        references={"null": 0.0, "oracle": 1.0},
        overlap="small, train and test are parts of full, base is train and test together",
        options={"domain": "telecom", "mode": "solo"},
    ),
    replace(
        SPEC,
        id="lmgym/Tau2MockOfficial-v0",
        summary="tau2-bench's mock domain, ten small tasks on which it tests itself.",
        splits={"base": 0},
        references={"null": 0.0, "oracle": 0.8},
        overlap="",
        options={"domain": "mock"},
    ),
)
