"""`lmgym record`: episodes of any policy as a data set, for imitation and offline learning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lmgym.cli.options import task_options
from lmgym.env.registry import build, find
from lmgym.errors import RecipeError


def record(
    task: Annotated[str, typer.Argument(help="Id or folder.")],
    model: Annotated[str, typer.Option(help="Whatever `lmgym eval` takes.")] = "demonstrator",
    out: Annotated[Path, typer.Option(help="File to write, .jsonl or .parquet.")] = Path("data/episodes.parquet"),
    split: Annotated[str, typer.Option(help="Split to play.")] = "train",
    episodes: Annotated[int, typer.Option(help="Instances; all of the split if it has fewer.")] = 1000,
    tries: Annotated[int, typer.Option(help="Of each instance.")] = 1,
    stumble: Annotated[
        float, typer.Option(help="Share of turns at which something wrong is played, of what the task lists.")
    ] = 0.0,
    wander: Annotated[
        str | None, typer.Option(help="Turns FIRST:LAST at which any admissible action is played, and nothing tells.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="Of sampling.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Chance of the environments and of sampling.")] = 0,
    option: Annotated[list[str] | None, typer.Option(help="Option of the task, name=value; may be repeated.")] = None,
) -> None:
    """Record episodes, with exact ids where the policy has them."""
    if wander is not None and stumble:
        raise RecipeError("--stumble or --wander: one says what is played in the player's stead")
    if episodes < 1 or tries < 1 or not 0 <= stumble <= 1:
        raise RecipeError(
            f"--episodes and --tries are 1 or more, --stumble is in [0, 1]; got {episodes}, {tries}, {stumble}"
        )
    from lmgym.evaluation import runner
    from lmgym.rollout import dataset
    from lmgym.rollout.engine import Engine
    from lmgym.rollout.picture_folder import PICTURES, PictureFolder
    from lmgym.rollout.planner import Planner
    from lmgym.train.load import load_policy
    from lmgym.train.parts.planners import Stumble, Wander

    spec, options = find(task), task_options(option or [])
    dataset.check_name(out)  # before anything is played, as the path that cannot be written
    if (stumble or wander is not None) and not runner.lists_actions(spec.id):
        raise RecipeError(f"{spec.id} lists no admissible actions, which --stumble and --wander play: leave them out")
    out.parent.mkdir(parents=True, exist_ok=True)
    env = build(spec.id, split=split, **options)
    size = env.unwrapped.size()
    env.close()
    jobs = runner.episodes(spec.id, split=split, size=size, count=episodes, tries=tries, seed=seed, options=options)
    policy = load_policy(model, temperature, seed)
    planner: Planner = Stumble(stumble) if stumble else Planner()
    if wander is not None:
        planner = Wander(*_turns(wander))
    with Engine(planner=planner, pictures=PictureFolder(out.parent / PICTURES)) as engine:
        places = {job.id: place for place, job in enumerate(jobs)}
        found = sorted(engine.run(policy, jobs), key=lambda episode: places[episode.id])
    dataset.write(out, (dataset.labelled(episode, policy) for episode in found))
    mean = sum(episode.reward for episode in found) / len(found)
    solved = sum(episode.success for episode in found) / len(found)
    said = f"wrote {out}: {len(found)} episodes, mean return {mean:.3f}, success {solved:.3f}"
    Console(soft_wrap=True).print(said)


def _turns(span: str) -> tuple[int, int]:
    """Return the turns of FIRST:LAST; without LAST it is all that follow."""
    first, colon, last = span.partition(":")
    try:
        turns = int(first or 0), int(last or 1 << 30)
    except ValueError:
        turns = (1, 0)
    if not colon or not 0 <= turns[0] < turns[1]:
        raise RecipeError(f"--wander takes FIRST:LAST, such as 0:3 or 2:; got {span!r}")
    return turns
