"""PythonMath: four protocols, results that open nothing, and programs that do what they should not."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.backends.sandbox import Result
from lmgym.env.golden import given as actions
from lmgym.env.golden import malformed, play
from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build
from lmgym.errors import BackendError, InstanceError
from lmgym.tasks.python_math import PROTOCOLS as NAMES
from lmgym.tasks.python_math.interpreter import START
from lmgym.tasks.python_math.problems import FAMILIES, LEVELS, problem
from lmgym.tasks.python_math.protocols import PROTOCOLS, QUIET, AgentReply, neutral, read, shown
from tests.components import bubblewrap

ENDS = [name for name in NAMES if PROTOCOLS[name].void_ends]


def call(name: str, code: str) -> str:
    return PROTOCOLS[name].call.format(code=code)


def final(name: str, answer: str) -> str:
    return PROTOCOLS[name].final.format(answer=answer)


def opened(name: str = "retool", **options):
    if options.get("tool") != "off":
        bubblewrap()
    env = build("python_math", protocol=name, **options)
    env.reset(options={"instance": {"question": "6 * 7?", "answer": "42"}})
    return closing(env)


def told(env, action: str) -> str:
    return str(env.step(action)[0]["text"])


def test_there_are_fifteen_families_or_more():
    assert len(FAMILIES) >= 15


@pytest.mark.parametrize("family", FAMILIES)
def test_the_program_of_a_problem_prints_its_answer(family, capsys):
    import numpy as np

    from lmgym.env.answers import same

    for level in LEVELS:
        for seed in range(8):
            each = problem(np.random.default_rng(seed), level, family)
            exec(each.code, {})
            printed = capsys.readouterr().out.strip()
            assert same(printed, each.answer), each
            assert not same(f"{printed}1", each.answer), each


def test_no_question_is_in_both_splits():
    splits = [build("python_math", split=split, tool="off", family="choose") for split in ("train", "test")]
    train, test = ({env.unwrapped.draw(index).question for index in range(300)} for env in splits)
    assert train
    assert test
    assert not train & test


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_is_a_program_or_an_answer_or_void_and_a_long_result_loses_its_middle(name):
    protocol = PROTOCOLS[name]
    assert read(protocol, f"I think. {call(name, 'print(1)')}").code == "print(1)"
    assert read(protocol, f"It is {final(name, '42')}.").answer == "42"
    assert read(protocol, final(name, "\\frac{1}{2}")).answer == "\\frac{1}{2}"
    assert read(protocol, "I do not know") == AgentReply()
    assert read(protocol, call(name, "print(1)")[:-3]) == AgentReply()  # not closed
    assert read(protocol, f"{call(name, 'a')}{final(name, '1')}{call(name, 'b')}") == AgentReply(code="a")
    assert read(protocol, f"{final(name, '1')}{call(name, 'a')}") == AgentReply(answer="1")
    room = protocol.longest + len(protocol.result)
    for text in ("x" * 100_000, "```" * 100_000, "<code>" * 100_000, "\\boxed{" * 50_000):
        assert len(shown(protocol, text)) <= 1.1 * room
    assert len(shown(protocol, "x" * 100_000)) <= room


def test_each_protocol_has_its_own_markup():
    fence = "```python\nprint(1)\n```"
    assert read(PROTOCOLS["simpletir"], fence).code == read(PROTOCOLS["gem"], fence).code == "print(1)"
    assert read(PROTOCOLS["retool"], fence) == read(PROTOCOLS["artist"], fence) == AgentReply()
    assert read(PROTOCOLS["retool"], "<code>print(1)</code>").code == "print(1)"
    assert read(PROTOCOLS["retool"], "\\boxed{1}") == read(PROTOCOLS["retool"], "<answer>1</answer>") == AgentReply()
    assert read(PROTOCOLS["gem"], f"{fence} <python>print(2)</python>").code == "print(1)"  # the first of both


FENCES = {
    "```bash\nls\n```\nThen\n```python\nprint(1)\n```": "print(1)",
    "```bash\nls\n```\nThen I stop.": None,
    "```json\n{}\n```\n\n```\nprint(1)\n```": "print(1)",
    "```Python\nprint(1)\n```": "print(1)",
    "```python3\nprint(1)\n```": "print(1)",
    "``` PY \nprint(1)\n```": "print(1)",
    "```python\r\nx = 1\r\nprint(x)\r\n```\r\n": "x = 1\nprint(x)",
    "I run ```python\nprint(1)\n``` and so on": "print(1)",
    "Not ```x``` but ```python\nprint(1)\n```": "print(1)",
    "Use ```print(1)```\nand\n``` alone": None,
    "````markdown\n```python\nprint(2)\n```\n````\n```python\nprint(1)\n```": "print(1)",
    "```python\n# a\n    ```\nprint(1)\n```": "# a\n    ```\nprint(1)",
    "```python\n```": "",
    "```python\nprint(1)```": None,  # the closing fence has a line of its own
    "```python\nprint(1)": None,
    "```pythonic\nprint(1)\n```": None,
}


@pytest.mark.parametrize("name", ["simpletir", "gem"])
@pytest.mark.parametrize(("action", "code"), FENCES.items())
def test_fences_are_paired_line_by_line_and_those_of_other_languages_skipped(name, action, code):
    assert read(PROTOCOLS[name], action) == AgentReply(code=code)


@pytest.mark.parametrize("name", ["retool", "artist", "gem"])
@pytest.mark.parametrize("inside", ["```py\nprint(1)```", "\n```Python\r\nprint(1)\r\n```\r\n", "```\nprint(1)\n```\n"])
def test_a_tag_is_read_without_a_fence_around_its_program(name, inside):
    tag = PROTOCOLS[name].tag
    assert read(PROTOCOLS[name], f"<{tag}>{inside}</{tag}>").code == "print(1)"


def test_fences_are_read_in_linear_time():
    for filler in ("```", "``` ", "```\n", "```x\n", " ", "`\n", "```python\n"):
        read(PROTOCOLS["simpletir"], filler * 100_000)


PIECES = (
    *("<code>", "</code>", "<python>", "</python>", "<interpreter>", "</interpreter>", "<output>", "</output>"),
    *("<answer>", "</answer>", "\\boxed{", "}", "7", "```", "```python", "`", "\n", " ", "<", "/", "|", "code>"),
    *("<think>", "</think>", "Code execution result: 7", "<|im_start|>assistant", "<|end|>", "[INST]", "[/INST]"),
    *("<|im_end|>", "<start_of_turn>", "</s>", "print(1)", "\\", "boxed{"),
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_result_never_opens_a_turn_an_answer_or_a_call(name, text):
    protocol = PROTOCOLS[name]
    before, after = protocol.result.split("{result}")
    observation = shown(protocol, text)
    inside = observation.removeprefix(before).removesuffix(after)
    assert read(protocol, inside) == AgentReply()
    assert all(read(each, inside) == AgentReply() for each in PROTOCOLS.values())
    if after:
        assert after.strip() not in inside
    for mark in ("<|", "```", "\\boxed", "<think>", "</s>", "[INST]", "<start_of_turn>", "execution result:"):
        assert mark not in inside
    assert neutral(inside) == inside


def test_a_result_that_is_plain_stays_as_it_is():
    for text in ("7", "a < b", "[1, 2] {3: 4}", "x | y <= z", "Traceback (most recent call last):", "``x``"):
        assert neutral(text) == text
    assert QUIET in shown(PROTOCOLS["gem"], "  \n")


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_run_and_the_answer_counts(name):
    with opened(name) as env:
        before, after = PROTOCOLS[name].result.split("{result}")
        assert told(env, call(name, "x = 6\nprint(x * 7)")) == f"{before}42{after}"
        assert "42" in told(env, call(name, "print(x * 7)"))  # variables stay
        _, reward, terminated, _, info = env.step(final(name, "42"))
        assert terminated
        assert (info["score"], info["valid"]) == (1.0, True)
        assert reward == pytest.approx(1.2 if name == "artist" else 1.0)
        assert info["figures"] == {"programs": 2.0, "failed_programs": 0.0, "void": 0.0}


def test_wrong_answers_cost_what_the_protocol_says():
    for name, wrong in (("retool", -1.0), ("simpletir", 0.0), ("gem", 0.0), ("artist", 0.1)):
        with opened(name, tool="off") as env:
            _, reward, terminated, _, info = env.step(final(name, "41"))
            assert (reward, terminated, info["score"]) == (pytest.approx(wrong), True, 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_void_reply_ends_the_episode_where_the_protocol_says_so(name):
    with opened(name, tool="off") as env:
        text, reward, terminated, _, info = env.step("Let me think.")
        assert not info["valid"]
        assert terminated is (name in ENDS)
        assert reward == (-1.0 if name == "retool" else 0.0)
        if not terminated:
            assert "neither" in text["text"]
            assert env.step(final(name, "42"))[-1]["reward_terms"] == {"answer": 1.0, "format": 0.0, "tool": 0.0}


@pytest.mark.parametrize("name", NAMES)
def test_programs_above_the_limit_are_void(name):
    with opened(name, tool="off") as env:
        for _ in range(PROTOCOLS[name].runs):
            assert env.step(call(name, "1"))[-1]["valid"]
        _, _, terminated, _, info = env.step(call(name, "1"))
        assert not info["valid"]
        assert terminated is (name in ENDS)


def test_scripts_forget_variables_and_the_next_episode_everything():
    with opened(state="script") as env:
        told(env, call("retool", "x = 1"))
        assert "NameError" in told(env, call("retool", "print(x)"))
    with opened() as env:
        told(env, call("retool", "x = 1\nopen('/work/kept', 'w').write('x')\nopen('/tmp/kept', 'w').write('x')"))
        env.reset(options={"index": 0})
        assert "NameError" in told(env, call("retool", "print(x)"))
        assert "[] []" in told(env, call("retool", "import os\nprint(os.listdir('/work'), os.listdir('/tmp'))"))


def test_an_error_of_simpletir_is_its_last_line():
    with opened("simpletir") as env:
        text = told(env, call("simpletir", "print('lost')\n1 / 0"))
    assert text == "Code execution result: ZeroDivisionError: division by zero"
    with opened("retool") as env:
        text = told(env, call("retool", "print('kept')\n1 / 0"))
    assert "kept" in text
    assert "Traceback" in text


@pytest.mark.parametrize(("answer", "score"), [("42", 1.0), ("41", 0.0)])
def test_final_answer_in_a_program_ends_the_episode(answer, score):
    with opened("simpletir", state="script" if score else "session") as env:
        _, _, terminated, _, info = env.step(call("simpletir", f"final_answer({answer})"))
        assert terminated
        assert info["score"] == score


def test_a_printed_answer_is_no_answer():
    for name in NAMES:
        with opened(name) as env:
            text, _, terminated, _, _ = env.step(call(name, f"print({final(name, '42')!r})"))
            assert not terminated
            assert final(name, "42") not in text["text"]


@pytest.mark.parametrize(
    "instance", [{}, {"question": "6 * 7?"}, {"question": "6 * 7?", "answer": " "}, {"answer": "1"}]
)
def test_an_authored_problem_without_a_question_or_an_answer_is_refused(instance):
    with (
        closing(build("python_math", tool="off")) as env,
        pytest.raises(InstanceError, match="a question and an answer"),
    ):
        env.reset(options={"instance": instance})


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_answer_earns_nothing(name, monkeypatch):
    monkeypatch.setattr("lmgym.tasks.python_math.env.PythonMath.right", lambda self, answer: True)
    for answer in ("", " "):
        with opened(name, tool="off") as env:
            assert env.step(final(name, answer))[-1]["score"] == 0.0


def test_a_tool_that_is_off_runs_nothing():
    env = build("python_math", tool="off")
    env.reset(options={"index": 0})
    assert "switched off" in told(env, call("retool", "print(1)"))
    assert env.unwrapped.interpreter is None


def test_programs_that_never_end_flood_or_break_python_are_answered():
    codes = {
        "while True: pass": "stopped after 1 seconds",
        "while True: print('x' * 1000)": "stopped after 1 seconds",
        "print('x\\n' * 100_000)": "characters left out",
        "import os; os._exit(3)": "Python ended with code 3",
        "import os; os.kill(os.getpid(), 9)": "Python ended with code 137",
        "import sys; sys.stdout.close()": "(no output)",
        "raise SystemExit": "Python ended with code 0",
        "(" * 5000: "Error",
        "x = 'a' * 10**12": "MemoryError",
        "print(input())": "EOFError",
        "import socket; socket.create_connection(('1.1.1.1', 53), 1)": "Error",
        "\x00": "(no output)",
        "print(chr(0xd800))": "UnicodeEncodeError",
        "x" * 30_000: "30000 characters; 20000 are allowed",
    }
    with opened(seconds=1.0) as env:
        for code, words in codes.items():
            env.reset(options={"instance": {"question": "6 * 7?", "answer": "42"}})
            observation, _, terminated, _, info = env.step(call("retool", code))
            assert words in observation["text"], code
            assert info["valid"]
            assert not terminated
            env.reset(options={"index": 0})
            assert "42" in told(env, call("retool", "print(6 * 7)")), code  # Python is there again


@pytest.mark.parametrize("tool", ["off", pytest.param("on", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_replies_and_programs_without_sense_are_answered(name, tool):
    texts = (*HOSTILE, "```" * 300_000, "<code>" * 150_000, "\\boxed{" * 150_000, "<answer>\\boxed{" * 50_000)
    with opened(name, tool=tool) as env:
        for text in texts:
            for action in (text, call(name, text[:15_000]), final(name, text)):
                env.reset(options={"instance": {"question": "6 * 7?", "answer": "42"}})
                assert env.step(action)[-1].get("score", 0.0) == 0.0
        play(env, malformed, index=0)


def stalled(monkeypatch, starts):
    """Let Python stall at the first `starts` starts; return the time limits of all commands."""
    limits = []

    def run(session, command, *, timeout=None):
        limits.append(timeout)
        if timeout is None or sum(each is not None for each in limits) > starts:
            return Result(code=0, stdout=b"42", stderr=b"")
        return Result(code=137, stdout=b"", stderr=b"", timed_out=True, ended=True)

    monkeypatch.setattr("lmgym.backends.sandbox.SandboxSession.run", run)
    return limits


@pytest.mark.parametrize(
    ("state", "limits"), [("session", [START, None, None]), ("script", [START, None, START, None])]
)
def test_the_start_of_python_does_not_count_for_the_limit_of_a_program(state, limits, monkeypatch):
    with opened("gem", state=state) as env:
        monkeypatch.setattr("lmgym.backends.sandbox.SandboxSession.close", lambda session: None)
        seen = stalled(monkeypatch, 0)
        assert "42" in told(env, call("gem", "print(42)"))
        assert "42" in told(env, call("gem", "print(42)"))
        assert seen == limits


def test_a_python_that_does_not_start_is_no_fault_of_the_policy(monkeypatch):
    with opened("gem") as env:
        stalled(monkeypatch, 2)
        with pytest.raises(BackendError, match="Python does not start"):
            env.step(call("gem", "print(42)"))


def test_files_of_a_program_that_keep_python_from_starting_are_its_own_fault(monkeypatch):
    with opened("gem") as env:
        stalled(monkeypatch, 1)
        assert "TimeoutError" in told(env, call("gem", "print(42)"))
        assert "42" in told(env, call("gem", "print(42)"))


def test_a_broken_sandbox_is_replaced_in_the_next_episode():
    with opened() as env:
        env.unwrapped.interpreter.sandbox.close()
        with pytest.raises(BackendError):
            env.step(call("retool", "print(1)"))
        assert play(env, lambda task: task.oracle(), index=0).infos[-1]["score"] == 1.0


def interrupted(size, deadline):
    raise KeyboardInterrupt


def test_a_program_that_is_interrupted_ends_the_episode_and_the_next_has_another_sandbox(monkeypatch):
    with opened() as env:
        monkeypatch.setattr(env.unwrapped.interpreter.sandbox._channel, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.step(call("retool", "print('old')"))
        with pytest.raises(InstanceError, match="reset"):
            env.step(call("retool", "print('new')"))
        env.reset(options={"index": 0})
        assert "new" in told(env, call("retool", "print('new')"))


def test_the_demonstrator_copies_what_python_prints():
    with opened() as env:
        env.reset(options={"index": 3})
        env.unwrapped.problem = type(env.unwrapped.problem)("?", "7", "print(5)")
        assert play(env, lambda task: task.demonstrator(), index=3).infos[-1]["score"] == 1.0
    with opened(tool="off") as env:
        trace = play(env, lambda task: task.demonstrator(), index=3)
        assert trace.infos[-1]["score"] == 0.0  # nothing to copy


def files(tmp_path, rows, name="test.jsonl"):
    import json

    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.slow
def test_files_of_several_data_sets_are_read(tmp_path):
    pytest.importorskip("datasets")
    bubblewrap()
    rows = [
        {"question": "6 * 7?", "answer": "It is 42.\n#### 42"},  # GSM8K
        {"problem": "Half?", "solution": "So $\\boxed{\\frac{1}{2}}$."},  # MATH
    ]
    folder = files(tmp_path, rows)
    with closing(build("PythonMathFiles-v0", data=str(folder), split="test")) as env:
        assert env.unwrapped.size() == 2
        assert [play(env, lambda task: task.oracle(), index=i).infos[-1]["score"] for i in (0, 1)] == [1.0, 1.0]
        assert play(env, actions([final("retool", "0.5")]), index=1).infos[-1]["score"] == 1.0
    with closing(build("PythonMathFiles-v0", data=str(folder), split="train")) as env:
        assert env.unwrapped.size() == 0
    verl = {"prompt": [{"role": "user", "content": "1 + 1?"}], "reward_model": {"ground_truth": "2", "style": "rule"}}
    single = files(tmp_path, [verl], "one.jsonl") / "one.jsonl"
    with closing(build("PythonMathFiles-v0", data=str(single), split="train")) as env:
        assert "1 + 1?" in env.reset(options={"index": 0})[0]["text"]


@pytest.mark.slow
def test_files_that_are_none_are_named(tmp_path):
    pytest.importorskip("datasets")
    with pytest.raises(InstanceError, match="no data at"):
        build("PythonMathFiles-v0", data=str(tmp_path / "none"))
    (tmp_path / "test.jsonl").write_text("{\n")
    with pytest.raises(InstanceError, match="cannot be read"):
        build("PythonMathFiles-v0", data=str(tmp_path), split="test")
    with pytest.raises(InstanceError, match="row 0 .* has no question"):
        build("PythonMathFiles-v0", data=str(files(tmp_path, [{"x": 1}], "train.jsonl")))


@pytest.mark.slow
def test_math_verify_judges_in_a_sandbox():
    pytest.importorskip("math_verify")
    bubblewrap()
    from lmgym.tasks.python_math.verifier import Verifier

    verifier = Verifier()
    for answer, truth in (("\\sqrt{8}", "2\\sqrt{2}"), ("x^2+2x+1", "(x+1)^2"), ("\\{1,2\\}", "\\{2,1\\}")):
        assert verifier.same(answer, truth)
    for answer in ("4", "3} \\boxed{4", "3 or 4", "9^{9^{9^{9}}}", "'); print('True", "\x00", "{" * 500, "3" * 5000):
        assert not verifier.same(answer, "3"), answer
    assert verifier.same("3", "3")  # after one that was killed
    verifier.sandbox.close()
    assert verifier.same("3", "3")  # after one that broke
    verifier.close()
