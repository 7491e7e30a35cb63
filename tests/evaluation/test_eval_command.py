"""`lmgym eval`: folders, pilots, resuming, several tasks, training runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lmgym.cli import main
from lmgym.cli.watch import Watcher, clock
from lmgym.evaluation import report as reports
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.config import EvalConfig
from lmgym.evaluation.plan import EvalPlan
from lmgym.evaluation.play import EvalProgress
from lmgym.evaluation.record import FACTS
from lmgym.evaluation.settings import Settings
from lmgym.rollout import episodes
from lmgym.rollout.context import Full, MarkovState, Stub, Summarise, Window
from lmgym.train.load import load_policy

from .server import bisect, peek, serving


@pytest.fixture
def lmgym(tmp_path, monkeypatch, capfd):
    """Run `lmgym eval WORDS` in an empty folder; return the exit code and the output."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["lmgym", "eval", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capfd.readouterr()
        return int(ended.value.code or 0), printed.out + printed.err

    return run


def outcomes(folder: Path | str):
    return [replace(outcome, seconds=0.0) for outcome in reports.read(Path(folder)).outcomes]


def test_runs_get_their_own_folders_and_the_latest_is_resumed(lmgym):
    for _ in range(2):
        assert lmgym("guess_number", "--model", "demonstrator", "--episodes", "3")[0] == 0
    assert lmgym("guess_number", "--model", "demonstrator", "--episodes", "4")[0] == 0
    assert sorted(path.name for path in Path("runs/eval").iterdir()) == [
        f"guess_number-demonstrator{number}" for number in ("", "-2", "-3")
    ]
    code, printed = lmgym("guess_number", "--model", "demonstrator", "--episodes", "3", "--resume")
    assert (code, "wrote runs/eval/guess_number-demonstrator-2;" in printed) == (0, True)
    code, printed = lmgym("guess_number", "--model", "demonstrator", "--episodes", "5", "--resume")
    assert (code, "nothing to resume" in printed) == (2, True)


def test_a_folder_holds_one_run(lmgym):
    assert lmgym("guess_number", "--model", "random", "--episodes", "3", "--out", "x")[0] == 0
    code, printed = lmgym("guess_number", "--model", "random", "--episodes", "3", "--out", "x")
    assert (code, "x has a run already" in printed) == (2, True)
    for words, difference in (
        (["--model", "random", "--temperature", "0.5"], "temperature=1.0, not 0.5"),
        (["--model", "oracle"], "policy='random', not 'oracle'"),
    ):
        code, printed = lmgym("guess_number", "--episodes", "3", "--out", "x", "--resume", *words)
        assert (code, difference in printed) == (2, True), printed
    assert lmgym("guess_number", "--model", "random", "--episodes", "3", "--out", "y", "--resume")[0] == 2


def test_a_dry_run_calls_and_writes_nothing(lmgym, tmp_path):
    with serving() as server:
        code, printed = lmgym("guess_number", "wordle", "--model", server.model, "--dry-run", "--episodes", "50")
        assert server.requests == 0
    assert code == 0
    assert list(tmp_path.iterdir()) == []
    assert "as the demonstrator plays" in printed
    assert "500" in printed  # calls at most: 50 episodes of 10 turns


def test_a_dry_run_counts_the_tools_that_are_offered():
    def tokens(tools: str) -> float:
        config = EvalConfig(tasks=["test/Jars-v0"], model="http://localhost:1/v1#x", tools=tools)
        return EvalPlan.of(config, "test/Jars-v0").dry_run()[0].tokens_in

    assert tokens("none") < tokens("native")
    assert tokens("none") < tokens("text")


def test_an_estimate_says_what_it_leaves_out(lmgym):
    words = ("test/Duel-v0", "--model", "http://localhost:1/v1#x", "--dry-run")
    _, printed = lmgym(*words, "--context", "summarise:500", "--seat", "black=random")
    assert "calls for summaries come on top; other seats come on top" in " ".join(printed.split())
    assert "on top" not in lmgym(*words)[1]


def test_a_pilot_is_part_of_the_run_that_follows(lmgym):
    prices = {"models": {}}
    with serving() as server:
        prices["models"][server.model] = {"prompt": 1.0, "answer": 10.0}
        Path("prices.json").write_text(json.dumps(prices))
        words = ("guess_number", "--model", server.model, "--episodes", "30", "--prices", "prices.json", "--quiet")
        assert lmgym(*words, "--out", "whole")[0] == 0
        needed = server.requests
        code, printed = lmgym(*words, "--out", "x", "--pilot")
        assert code == 0
        pilot = outcomes("x")
        dollars = sum(outcome.turns for outcome in pilot) * 10 * (10 * 1.0 + 2 * 10.0) / 1e6  # three of thirty episodes
        assert len(pilot) == 3
        assert f"${dollars:.4f}" in printed
        assert lmgym(*words, "--out", "x", "--resume")[0] == 0
        assert server.requests == 2 * needed  # nothing of the pilot was bought again
    assert outcomes("x") == outcomes("whole")
    assert outcomes("x")[0].cost == pytest.approx(outcomes("x")[0].turns * 30e-6)


def test_a_pilot_without_a_finished_episode_has_no_estimate(lmgym):
    with serving() as server:
        words = ("--pilot", "--budget-tokens", "1", "--concurrency", "1", "--out", "x")
        code, printed = lmgym("guess_number", "--model", server.model, *words)
        assert (code, server.requests, outcomes("x")) == (0, 1, [])
    assert "stopped early: the budget of 1 tokens is used up" in printed
    assert "from its first episodes" not in printed


def test_a_cost_budget_needs_a_price(lmgym):
    with serving() as server:
        code, printed = lmgym("guess_number", "--model", server.model, "--budget-cost", "1")
        assert (code, server.requests) == (2, 0)
        assert "needs the price of" in printed
        assert lmgym("guess_number", "--model", "hf:/no/such/folder", "--out", "x")[0] == 2
        assert list(Path.cwd().rglob("*.*")) == []  # what cannot begin leaves no folder behind
        code, printed = lmgym("guess_number", "--model", server.model, "--episodes", "2")
    assert (code, "unknown" in printed) == (0, True)
    assert outcomes("runs/eval/guess_number-fake")[0].cost is None


def test_a_cost_budget_is_not_exceeded(lmgym):
    with serving() as server:
        Path("p.json").write_text(json.dumps({"models": {server.model: {"prompt": 0.0, "answer": 5000.0}}}))
        words = ["guess_number", "--model", server.model, "--prices", "p.json", "--out", "x", "--concurrency", "2"]
        code, printed = lmgym(*words, "--budget-cost", "0.4")  # a call is one cent
        assert (code, "the budget of $0.4 is used up" in printed) == (0, True)
        assert 35 <= server.requests <= 40
        account = json.loads(Path("x/calls.json").read_text())
    assert account["cost"] == pytest.approx(server.requests * 0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--budget-tokens", "9"), "--budget-tokens is for endpoints; random makes no calls"),
        (("--budget-cost", "9"), "--budget-cost is for endpoints; random makes no calls"),
        (("--dry-run", "--pilot"), "--dry-run calls no model and --pilot plays 3 episodes with it: choose one"),
    ],
)
def test_options_without_effect_are_refused(lmgym, words, message):
    code, printed = lmgym("guess_number", "--model", "random", *words)
    assert (code, message in printed) == (2, True), printed
    assert not Path("runs").exists()


PLAYER = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "text": "<guess>1</guess>"}), flush=True)
"""


def test_a_program_without_costs_ends_a_run_with_a_cost_budget(lmgym):
    Path("player.py").write_text(PLAYER)
    words = ["guess_number", "--model", f"cmd:{sys.executable} player.py", "--episodes", "3", "--concurrency", "1"]
    code, printed = lmgym(*words, "--out", "x", "--budget-cost", "1")
    assert (code, "stopped early: a reply does not report its cost" in printed) == (0, True)
    assert json.loads(Path("x/calls.json").read_text())["replies"] == 1
    code, printed = lmgym(*words, "--out", "x", "--resume")
    assert (code, "stopped early" in printed) == (0, False)
    assert len(outcomes("x")) == 3
    assert reports.read(Path("x")).settings["temperature"] == 1.0


def test_several_tasks_share_a_budget(lmgym):
    words = ["--model", "demonstrator", "--episodes", "5", "--out", "x y"]
    code, printed = lmgym("guess_number", "wordle", *words, "--budget-episodes", "8")
    assert code == 0
    assert [len(outcomes(f"x y/{task}")) for task in ("guess_number", "wordle")] == [5, 3]
    assert "the budget of 8 episodes is used up; raise --budget-episodes. Continue with" in printed
    assert "with the same command and --resume --out 'x y'\n" in printed  # not x y/wordle
    assert lmgym("guess_number", "wordle", *words, "--resume")[0] == 0
    assert [len(outcomes(f"x y/{task}")) for task in ("guess_number", "wordle")] == [5, 5]
    code, printed = lmgym("wordle", "lmgym/Wordle-v0", "--model", "oracle")
    assert (code, "named twice" in printed) == (2, True)


def test_a_pilot_of_several_tasks_names_the_folder_of_the_command(lmgym):
    words = ["guess_number", "wordle", "--model", "demonstrator", "--episodes", "5", "--pilot"]
    _, printed = lmgym(*words, "--out", "x")
    assert printed.count("without --pilot, with --resume --out x\n") == 2
    _, printed = lmgym(*words)
    assert printed.count("without --pilot, with --resume\n") == 2


def test_several_tasks_are_not_resumed_where_none_began(lmgym):
    words = ["guess_number", "wordle", "--model", "demonstrator", "--episodes", "2"]
    code, printed = lmgym(*words, "--out", "x", "--resume")
    assert (code, "nothing to resume: x has no run of these tasks" in printed) == (2, True)
    assert not Path("x").exists()


def test_two_ids_of_a_task_folder_have_folders_of_their_own(lmgym):
    words = ["sokoban", "lmgym/SokobanLarge-v0", "guess_number", "--model", "null", "--episodes", "1"]
    assert lmgym(*words, "--option", "max_turns=2", "--out", "x")[0] == 0
    found = sorted(path.name for path in Path("x").iterdir())
    assert found == ["guess_number", "lmgym-Sokoban-v0", "lmgym-SokobanLarge-v0"]


def test_a_local_model_has_the_answer_limit_of_each_task(lmgym):
    config = EvalConfig(tasks=["lmgym/SWERepair-v0", "guess_number"], model="tiny", out=Path("x"))
    plans = [EvalPlan.of(config, task) for task in config.tasks]
    loaded, limits = {}, []
    for plan in plans:
        with plan.open(Budget(), load_policy, loaded) as evaluation:
            limits.append(evaluation.engine.seats["agent"].max_tokens)
    assert limits == [plan.settings.max_tokens for plan in plans] == [1024, 32]
    assert list(loaded) == ["tiny"]  # its weights are loaded once


def test_tools_are_offered_in_the_chosen_mode(lmgym):
    with serving(peek) as server:
        assert lmgym("test/Jars-v0", "--model", server.model, "--episodes", "10", "--out", "native")[0] == 0
        assert all("tools" in body for body in server.bodies)
        server.speaker = lambda body: {"content": '{"name": "answer", "arguments": {"jar": 1}}'}
        server.bodies.clear()
        words = ("test/Jars-v0", "--model", server.model, "--episodes", "10", "--tools", "text", "--out", "text")
        assert lmgym(*words)[0] == 0
    assert all("tools" not in body and body["messages"][0]["role"] == "system" for body in server.bodies)
    facts = [json.loads(Path(folder, FACTS).read_text()) for folder in ("native", "text")]
    assert [each["settings"]["tools"] for each in facts] == ["native", "text"]
    assert facts[0]["identity"] != facts[1]["identity"]
    assert {outcome.invalid for outcome in outcomes("text")} == {0}


def test_a_system_prompt_and_a_window_reach_the_model(lmgym):
    Path("rules.txt").write_text("Be brief.")
    with serving(lambda body: {"content": "50"}) as server:
        words = ("--system", "@rules.txt", "--context", "window:1", "--request", "top_p=0.5", "--answers", "plain")
        assert lmgym("guess_number", "--model", server.model, "--episodes", "2", *words)[0] == 0
    assert {len(body["messages"]) for body in server.bodies} == {2, 4}
    assert all(body["messages"][0] == {"role": "system", "content": "Be brief."} for body in server.bodies)
    assert {body["top_p"] for body in server.bodies} == {0.5}


def test_the_standard_episodes_are_the_leaderboards(lmgym):
    code, _ = lmgym("wordle", "--model", "oracle", "--standard", "--budget-episodes", "5", "--out", "x")
    assert code == 0
    assert [outcome.index for outcome in outcomes("x")] == [0, 1, 2, 3, 4]
    assert reports.read(Path("x")).planned > 5
    assert lmgym("wordle", "--model", "oracle", "--standard", "--seed", "3")[0] == 2


def test_a_model_in_another_seat_is_recorded_and_not_paid_twice(lmgym):
    with serving(lambda body: {"content": "2"}) as server:
        words = ["test/Duel-v0", "--model", "random", "--seat", f"black={server.model}", "--out", "x"]
        assert lmgym(*words, "--budget-episodes", "4")[0] == 0
        first = server.requests
        assert lmgym(*words, "--resume")[0] == 0
        assert server.requests > first
        account = json.loads(Path("x/calls.json").read_text())
        assert account["exchanges"] == account["replies"] == server.requests
    found = list(episodes.read(Path("x/episodes.jsonl")))
    assert [trajectory.seat for trajectory in found] == ["black", "agent"] * 10
    assert len(outcomes("x")) == 10
    facts = json.loads(Path("x", FACTS).read_text())
    assert facts["settings"]["seats"] == {"black": server.model}


def test_a_model_in_another_seat_has_the_answer_limit_of_its_own_kind(lmgym):
    with serving(lambda body: {"content": "2"}) as server:
        words = ["test/Duel-v0", "--model", "random", "--seat", f"black={server.model}", "--episodes", "1"]
        assert lmgym(*words, "--out", "own")[0] == 0
        assert lmgym(*words, "--max-tokens", "32", "--out", "set")[0] == 0
        assert lmgym(*words[:3], "--seat", "black=random", "--episodes", "1", "--out", "scripted")[0] == 0
    assert [body["max_tokens"] for body in server.bodies] == [2048] * 2 + [32] * 2
    settings = [json.loads(Path(folder, FACTS).read_text())["settings"] for folder in ("own", "set", "scripted")]
    assert [each["max_tokens"] for each in settings] == [32, 32, 32]
    assert [each.get("seat_max_tokens") for each in settings] == [{"black": 2048}, None, None]


def test_a_seat_that_the_task_lacks_is_refused(lmgym):
    code, printed = lmgym("test/Duel-v0", "--model", "null", "--seat", "white=null")
    assert (code, "test/Duel-v0 has no seat 'white': choose from black" in printed) == (2, True)
    code, printed = lmgym("test/Jars-v0", "--model", "null", "--seat", "user=null")
    assert (code, "test/Jars-v0 has no seat 'user': it has the agent's only" in printed) == (2, True)
    assert not Path("runs").exists()


def test_the_scripted_player_may_be_named(lmgym):
    assert lmgym("test/Duel-v0", "--model", "null", "--seat", "black=scripted", "--out", "named")[0] == 0
    assert lmgym("test/Duel-v0", "--model", "null", "--out", "unnamed")[0] == 0
    settings = [json.loads(Path(folder, FACTS).read_text())["settings"] for folder in ("named", "unnamed")]
    assert settings[0] == settings[1]


def test_a_local_model_gets_tools_by_template_or_as_text(lmgym):
    from lmgym.policy.load import load_local

    policy = load_local("tiny")
    template = policy.tokenizer.chat_template
    policy.tokenizer.chat_template = "{% if tools %}{{ tools | tojson }}{% endif %}" + template
    policy.save("knows")
    words = ("test/Jars-v0", "--episodes", "1", "--max-tokens", "2", "--option", "max_turns=1")
    prompts = {}
    for mode in ("template", "text", "none"):
        assert lmgym(*words, "--model", "hf:knows", "--tools", mode, "--out", mode)[0] == 0
        (trajectory,) = episodes.read(Path(mode, "episodes.jsonl"))
        prompts[mode] = policy.tokenizer.decode(trajectory.turns[0].completion.prompt_ids)
    assert "Look into a jar." in prompts["text"]
    assert "You act by calling tools." in prompts["text"]
    assert '{"type": "function", "function": {"name": "peek", "description": "Look into a jar."' in prompts["template"]
    assert "peek" not in prompts["none"]
    assert lmgym(*words, "--model", "tiny", "--out", "own")[0] == 0  # no place for tools in its template: in words
    (trajectory,) = episodes.read(Path("own", "episodes.jsonl"))
    tiny = load_local("tiny")
    assert "You act by calling tools." in tiny.tokenizer.decode(trajectory.turns[0].completion.prompt_ids)
    code, printed = lmgym(*words, "--model", "tiny", "--tools", "template")
    assert (code, "shows no tools: offer them in words, --tools text" in printed) == (2, True)
    assert lmgym(*words, "--model", "tiny", "--tools", "native")[0] == 2


def test_an_interrupted_run_leaves_a_report_and_is_resumed(lmgym, monkeypatch):
    from lmgym.evaluation import play

    kept = play.Evaluation._keep

    def interrupted(session, views, progress):
        kept(session, views, progress)
        if len(progress.outcomes) == 3:
            raise KeyboardInterrupt

    words = ("guess_number", "wordle", "--model", "demonstrator", "--episodes", "10", "--out", "x")
    monkeypatch.setattr(play.Evaluation, "_keep", interrupted)
    code, printed = lmgym(*words)
    assert (code, "stopped early: interrupted" in printed) == (130, True)
    assert not Path("x/wordle").exists()
    monkeypatch.setattr(play.Evaluation, "_keep", kept)
    assert lmgym(*words, "--resume")[0] == 0
    found = reports.read_all(Path("x"))
    assert [(len(report.outcomes), report.stopped) for report in found] == [(10, ""), (10, "")]
    assert lmgym(*words[:-2], "--resume")[0] == 0  # no folder is said, and none of them began: both begin
    assert len(list(Path("runs/eval").iterdir())) == 2


@pytest.mark.parametrize("ended", [True, False])
def test_a_training_run_is_evaluated_by_its_folder(lmgym, ended):
    import torch

    from lmgym.policy.load import load_local
    from lmgym.train import checkpoint

    policy = load_local("tiny", seed=3)
    with torch.no_grad():
        next(policy.model.parameters()).add_(0.1)  # not what a seed makes
    run = Path("runs/grpo")
    run.mkdir(parents=True)
    (run / FACTS).write_text(json.dumps({"arguments": {"policy": "tiny", "seed": 3}}))
    if ended:
        policy.save(run / "policy")
    else:
        checkpoint.save(run / "checkpoints", {"model": policy.model.state_dict()}, number=1)
    words = ("guess_number", "--episodes", "2", "--max-tokens", "3", "--option", "max_turns=2")
    assert lmgym(*words, "--model", "run:runs/grpo", "--out", "a")[0] == 0
    assert lmgym(*words, "--model", "runs/grpo", "--out", "b")[0] == 0
    assert Path("a/episodes.jsonl").read_text() == Path("b/episodes.jsonl").read_text()
    assert lmgym(*words, "--model", "tiny?seed=3", "--out", "c")[0] == 0
    assert Path("a/episodes.jsonl").read_text() != Path("c/episodes.jsonl").read_text()
    assert lmgym(*words, "--model", "run:nowhere")[0] == 2


def test_a_run_is_not_resumed_with_other_weights(lmgym):
    from lmgym.policy.load import load_local

    load_local("tiny:1m", seed=1).save("model")
    words = ("guess_number", "--model", "hf:model", "--episodes", "2", "--option", "max_turns=1", "--out", "x")
    assert lmgym(*words, "--budget-episodes", "1")[0] == 0
    assert lmgym(*words, "--resume", "--budget-episodes", "1")[0] == 0
    shutil.copytree("model", "copy")
    shutil.rmtree("model")
    Path("copy").rename("model")
    Path("model/notes.md").write_text("A copy.")
    assert lmgym(*words, "--resume", "--budget-episodes", "1")[0] == 0
    load_local("tiny:1m", seed=2).save("model")
    code, printed = lmgym(*words, "--resume")
    assert (code, "x was started with other weights of hf:model" in printed) == (2, True), printed
    facts = json.loads(Path("x", FACTS).read_text())
    del facts["weights"]
    Path("x", FACTS).write_text(json.dumps(facts))  # of an earlier version
    assert lmgym(*words, "--resume")[0] == 0


def test_an_identity_covers_every_setting():
    base = Settings(task="lmgym/Wordle-v0", split="test", instances=(0, 1, 2, 5))
    assert base.state_dict()["instances"] == "0-2 5"
    changes = [
        {"task": "lmgym/Wordle-v1"},
        {"split": "train"},
        {"options": {"a": 1}},
        {"instances": (0, 1, 2)},
        {"tries": 2},
        {"seed": 1},
        {"temperature": 0.0},
        {"max_tokens": 5},
        {"context": "markov"},
        {"tools": "text"},
        {"prompt": "Be brief."},
        {"seats": {"user": "http://host/v1#m"}},
        {"seat_max_tokens": {"user": 2048}},
        {"request": {"top_p": 0.5}},
    ]
    identities = [replace(base, **change).identity() for change in changes]
    assert len({base.identity(), *identities}) == len(changes) + 1


def test_an_identity_does_not_depend_on_the_hash_seed():
    code = (
        "from lmgym.evaluation.settings import Settings; "
        "words = {'wait', 'look', 'go', 'open', 'take'}; "
        "print(Settings(task='t', split='s', instances=(0,), options={'words': words}).identity())"
    )
    found = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in ("1", "2", "3")
    ]
    assert len({each.stdout for each in found}) == 1


def test_context_rules_are_parsed(lmgym):
    from lmgym.evaluation.settings import context_rule, rule_of

    rules = ["full", "window:8:1", "window:8:4", "stub:2", "markov", "latest", "summarise:500", "summarise:500:3"]
    contexts = [
        *(Full(), Window(8), Window(8, 4), Stub(2), MarkovState(), MarkovState(task=False)),
        *(Summarise(500), Summarise(500, 3)),
    ]
    assert [context_rule(rule) for rule in rules] == contexts
    assert context_rule("window:8") == Window(8)
    assert [rule_of(context) for context in contexts] == rules
    assert (rule_of(None), rule_of(Stub(text="-"))) == ("full", None)
    for rule in ("windows", "window", "window:0", "window:a", "markov:1", "latest:1", "full:3", "window:1:2:3:4"):
        code, printed = lmgym("guess_number", "--model", "oracle", "--context", rule)
        assert (code, "choose from full, window:TURNS" in printed) == (2, True), rule


def test_the_progress_table_of_an_evaluation():
    from lmgym.evaluation import runner
    from lmgym.policy.load import load_remote

    jobs = runner.episodes("guess_number", split="test", size=1000, count=4, options={})
    found = {job.id: replace(runner.void(job), voided=False, success=True) for job in jobs[:2]}
    with serving() as server:
        policy = load_remote(server.model)
        budget = Budget()
        watcher = Watcher("title", budget, policy, priced=True)
        assert dict(watcher.rows())["episodes"] == "starting"
        budget.add(300, 0.25)
        watcher(EvalProgress(jobs=jobs, outcomes=found, resumed=1, voided=3))
        rows = dict(watcher.rows())
        policy.close()
    assert rows["episodes"] == "2 of 4, 3 voided"
    assert rows["success"].startswith("1.000, 95 % interval 0.")
    assert (rows["tokens"], rows["cost"]) == ("300", "$0.2500")
    assert rows["calls"] == "0 in flight, 64 allowed, slowed 0 times"
    assert "a minute" in rows["rate"]
    assert clock(3723) == "1:02:03"


def test_evaluating_an_endpoint_loads_no_tensors(tmp_path, plugin):
    import os
    import subprocess

    with serving(bisect) as server:
        code = (
            "import sys\n"
            f"sys.argv = ['lmgym', 'eval', 'guess_number', '--model', {server.model!r}, '--episodes', '2']\n"
            "from lmgym.cli import main\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code, end.code\n"
            "assert not {'torch', 'transformers'} & set(sys.modules), 'heavy'"
        )
        subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True, env=dict(os.environ))
        assert server.requests


WITHOUT = "import sys; sys.modules.update(tenacity=None, httpx=None); from lmgym.cli import main; main()"


@pytest.mark.parametrize(
    ("model", "code", "line"),
    [
        ("demonstrator", 0, "wrote run"),
        ("http://127.0.0.1:9/v1#x", 2, "http: needs httpx: pip install 'lmgym[eval]'"),
    ],
)
def test_only_endpoints_need_the_packages_that_reach_them(tmp_path, model, code, line):
    words = ["eval", "wordle", "--model", model, "--episodes", "2", "--quiet", "--out", "run"]
    done = subprocess.run([sys.executable, "-c", WITHOUT, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert line in done.stdout + done.stderr
