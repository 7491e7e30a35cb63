"""Official ALFWorld games: what the loader keeps, goals in people's words, both players on the real thing."""

import json
import os
import shutil
from pathlib import Path

import pytest

from lmgym.env import golden
from lmgym.env.registry import build, find
from lmgym.errors import InstanceError
from lmgym.tasks.alfworld import official, oracle
from lmgym.tasks.alfworld.engine import HouseholdGame

DATA = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "alfworld"


@pytest.fixture
def official_data(monkeypatch: pytest.MonkeyPatch) -> None:
    if not DATA.is_dir():
        pytest.skip("no official ALFWorld games in $LMGYM_TEST_DATA or ../shared/data")
    monkeypatch.setenv("ALFWORLD_DATA", str(DATA))


@pytest.mark.usefixtures("official_data")
def test_every_solvable_game_at_hand_is_found() -> None:
    files = [json.loads(path.read_text()) for path in official.data_root().glob("valid_unseen/*/*/game.tw-pddl")]
    found = official.games("valid_unseen")
    assert len(found) == sum(contents.get("solvable") is True for contents in files)
    assert len(found) >= 48  # of the 134 of the whole split
    assert build("ALFWorldOfficial-v0", split="valid_unseen").unwrapped.size() == len(found)


@pytest.mark.usefixtures("official_data")
def test_the_official_goldens_replay_on_the_games_they_name() -> None:
    spec = find("ALFWorldOfficial-v0")
    assert len(golden.read(spec)) == 4
    assert golden.absent(spec) == 0
    assert golden.replay(spec) == []


@pytest.mark.usefixtures("official_data")
def test_a_title_is_of_the_files_content_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = official.games("valid_unseen")[0]
    title = official.title("valid_unseen", 0)
    assert official.index_of("valid_unseen", title) == 0
    copy = tmp_path / "json_2.1.1" / "valid_unseen" / first.parts[-3] / first.parts[-2]
    shutil.copytree(first.parent, copy)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert official.index_of("valid_unseen", title) == 0
    (copy / "game.tw-pddl").write_text(first.read_text() + " ")  # another release
    assert official.index_of("valid_unseen", title) is None


@pytest.mark.usefixtures("official_data")
def test_the_oracle_ends_where_official_games_have_a_dead_end() -> None:
    for path in official.games("valid_unseen"):
        game = HouseholdGame.read(json.loads(path.read_text()))
        stuck = [thing for thing in game.house.facts["pickupable"] if all(o != thing for o, _ in game.house.fits)]
        if stuck and not game.goal.asks & {"holds"}:
            game.held = stuck[0]
            assert list(oracle.play(game)) == []
            return
    pytest.skip("none of the official games at hand has a dead end")


@pytest.mark.usefixtures("official_data")
@pytest.mark.parametrize(("player", "share"), [("oracle", 1.0), ("demonstrator", 0.95)])
def test_players_win_official_games(player: str, share: float) -> None:
    env = build("ALFWorldOfficial-v0", split="valid_unseen")
    won = []
    for index in range(env.unwrapped.size()):
        env.reset(options={"index": index})
        for action in getattr(env.unwrapped, player)():
            _, _, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                break
        won.append(info["success"])
    assert sum(won) >= share * len(won)


@pytest.mark.usefixtures("official_data")
def test_goals_can_be_in_the_words_of_people() -> None:
    templated = build("ALFWorldOfficial-v0", split="valid_unseen")
    human = build("ALFWorldOfficial-v0", split="valid_unseen", goals="human", annotation=1)
    first, _ = templated.reset(options={"index": 0})
    second, _ = human.reset(options={"index": 0})
    room, _, goal = second["text"].rpartition("Your task is to: ")
    assert first["text"].startswith(room)
    traj = json.loads(official.games("valid_unseen")[0].with_name("traj_data.json").read_text())
    assert goal == traj["turk_annotations"]["anns"][1]["task_desc"] + "."
    assert next(human.unwrapped.demonstrator()) == next(templated.unwrapped.demonstrator())


@pytest.mark.usefixtures("official_data")
def test_the_loader_skips_what_alfworld_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = official.games("valid_unseen")[0].parent
    split = tmp_path / "json_2.1.1" / "train"
    kept = ["b_pick-Mug-None-Desk-308", "a_pick-Mug-None-Desk-308"]
    for name in [
        *kept,
        "pick_and_place_with_movable_recep-Mug-Pan-Desk-1",
        "pick-AppleSliced-None-Desk-1",
        "no",
        "key",
    ]:
        shutil.copytree(source, split / name / "trial_T1")
    game = json.loads((source / "game.tw-pddl").read_text())
    (split / "no" / "trial_T1" / "game.tw-pddl").write_text(json.dumps({**game, "solvable": False}))
    del game["solvable"]
    (split / "key" / "trial_T1" / "game.tw-pddl").write_text(json.dumps(game))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert [path.parts[-3] for path in official.games("train")] == sorted(kept)
    with pytest.raises(InstanceError, match="valid_seen"):
        official.games("valid_seen")


def test_absent_official_data_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(InstanceError, match=r"set \$ALFWORLD_DATA to the folder of json_2.1.1"):
        build("ALFWorldOfficial-v0", split="train").reset(options={"index": 0})
