"""The tokens that a step trained are recorded exactly and can be displayed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from types import MappingProxyType

import pytest

from lmgym.baselines import grpo
from lmgym.env import registry
from lmgym.rollout import episodes
from lmgym.rollout.segments import segments
from lmgym.train import loop, trained
from tests.command import command
from tests.train.chain import SPEC, chain_policy

ARGS = grpo.Args(
    warmup=1, warmup_episodes=8, interject=0.3, steps=2, instances=12, group=4, minibatches=1, evaluate=4,
    std=False, negative_advantage_weight=0.5, invalid_cost=0.25, drop_flat=True, kl=0.0, lr=3e-4,
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "specs", lambda: known)
        loop.run(
            grpo.recipe(ARGS), chain_policy(), task=SPEC.id, folder=folder,
            quiet=True, keep_episodes=[0, 2], train_instances=20,
        )  # fmt: skip
    return folder


def step(run: Path, number: int):
    path = run / "episodes" / f"{number:06d}.jsonl"
    return list(episodes.read(path)), trained.read(trained.path_beside(path))


def test_part_of_the_split_is_its_first_instances(run):
    assert {episode.index for number in (0, 2) for episode in step(run, number)[0]} <= set(range(20))


def returns(episode) -> float:
    return sum(turn.reward - (0.0 if turn.info["valid"] else 0.25) for turn in episode.turns)


def test_advantages_are_those_of_the_runs_own_rewards_filters_and_arguments(run):
    kept, rows = step(run, 2)
    groups = defaultdict(list)
    for episode in kept:
        groups[episode.group].append(episode)
    flat = [group for group in groups.values() if len({returns(episode) for episode in group}) == 1]
    assert 0 < len(flat) < len(groups)  # both kinds are there to tell apart
    for group in groups.values():
        mean = fmean(returns(episode) for episode in group)
        for episode in group:
            assert ((episode.id, 0) in rows) == (group not in flat)
            for segment in segments(episode) if group not in flat else ():
                row = rows[episode.id, segment.number]
                above = returns(episode) - mean
                wanted = above if above > 0 else 0.5 * above
                assert row.weight == tuple(map(float, segment.sampled))
                assert row.advantage == pytest.approx([wanted * said for said in segment.sampled], abs=1e-6)


def test_of_a_demonstration_the_stumbles_are_left_out_and_observations_are_in(run):
    kept, rows = step(run, 0)
    stumbles = 0
    for episode in kept:
        (segment,) = segments(episode)
        row = rows[episode.id, 0]
        for place, number in enumerate(segment.turn):
            if number < 0:
                assert row.weight[place] in (0.0, pytest.approx(0.9))  # every third stands for three at 0.3
            else:
                stumbled = episode.turns[number].info.get("stumble", False)
                stumbles += stumbled
                assert row.weight[place] == float(not stumbled)
    assert stumbles


def shown(monkeypatch, capsys, *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    assert command("replay", *words) == 0
    return capsys.readouterr().out


def test_replay_shows_what_was_trained(run, monkeypatch, capsys):
    path = run / "episodes" / "000002.jsonl"
    kept, rows = step(run, 2)
    best = {name: max(row.advantage) for (name, _), row in rows.items()}
    number = next(n for n, episode in enumerate(kept) if best.get(episode.id, 0.0) > 0)
    words = (str(path), "--tokens", "--model", f"hf:{run / 'policy'}", "--number")
    out = shown(monkeypatch, capsys, *words, str(number))
    assert "loss weight" in out
    assert out.count(f"{best[kept[number].id]:+.3f}") == sum(len(turn.completion.ids) for turn in kept[number].turns)
    dropped = next(n for n, episode in enumerate(kept) if (episode.id, 0) not in rows)
    assert "nothing of this episode was trained" in shown(monkeypatch, capsys, *words, str(dropped))


def test_replay_says_so_where_it_is_not_known_what_was_trained(run, monkeypatch, capsys, tmp_path):
    path = tmp_path / "episodes.jsonl"
    path.write_bytes((run / "episodes" / "000002.jsonl").read_bytes())
    out = shown(monkeypatch, capsys, str(path), "--tokens", "--model", f"hf:{run / 'policy'}")
    assert "what was trained is unknown" in out
    assert "advantage" not in out
    assert "log-prob" in out
