"""`lmgym record`: records episodes of a policy as a data set for imitation and offline learning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lmgym.cli.options import task_options
from lmgym.env.registry import find
from lmgym.errors import RecipeError


def record(
    task: Annotated[str, typer.Argument(help="Task id or folder.")],
    model: Annotated[
        str,
        typer.Option(
            help="Policy, as in `lmgym eval`; a model gets no instructions, and its whole answer is the action."
        ),
    ] = "demonstrator",
    out: Annotated[Path, typer.Option(help="Output file, .jsonl or .parquet.")] = Path("data/episodes.parquet"),
    split: Annotated[str, typer.Option(help="Split to play.")] = "train",
    episodes: Annotated[int, typer.Option(help="Number of instances; the whole split if it has fewer.")] = 1000,
    tries: Annotated[int, typer.Option(help="Episodes per instance.")] = 1,
    stumble: Annotated[float, typer.Option(help="Share of turns at which a wrong admissible action is played.")] = 0.0,
    wander: Annotated[
        str | None, typer.Option(help="Turns FIRST:LAST at which a random admissible action is played, without a mark.")
    ] = None,
    wander_share: Annotated[float, typer.Option(min=0, max=1, help="Share of these turns.")] = 1.0,
    temperature: Annotated[float, typer.Option(help="Sampling temperature.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environments and of sampling.")] = 0,
    option: Annotated[list[str] | None, typer.Option(help="Task option, NAME=VALUE; repeatable.")] = None,
) -> None:
    """Record episodes, with exact ids where the policy has them."""
    if wander is not None and stumble:
        raise RecipeError("--stumble and --wander exclude each other: both replace the player's actions")
    if episodes < 1 or tries < 1 or not 0 <= stumble <= 1:
        raise RecipeError(
            f"--episodes and --tries must be at least 1, --stumble in [0, 1]; got {episodes}, {tries}, {stumble}"
        )
    from lmgym.evaluation import runner
    from lmgym.evaluation.policies import default_max_tokens
    from lmgym.rollout import dataset
    from lmgym.rollout.engine import Engine
    from lmgym.rollout.lmrl_score import normalised
    from lmgym.rollout.picture_folder import PICTURES, PictureFolder
    from lmgym.rollout.planner import Planner
    from lmgym.train.load import load_policy
    from lmgym.train.parts.planners import Stumble, Wander

    spec, options = find(task), task_options(option)
    dataset.check_name(out)  # before anything is played, like the folder
    if (stumble or wander is not None) and not runner.lists_actions(spec.id):
        raise RecipeError(f"{spec.id} lists no admissible actions, which --stumble and --wander need: leave them out")
    out.parent.mkdir(parents=True, exist_ok=True)
    size = runner.size_of(spec.id, split, options)
    jobs = runner.episodes(spec.id, split=split, size=size, count=episodes, tries=tries, seed=seed, options=options)
    policy = load_policy(model, temperature, seed, max_tokens=default_max_tokens(model, least=spec.answer_tokens))
    planner: Planner = Stumble(stumble) if stumble else Planner()
    if wander is not None:
        planner = Wander(*_turns(wander), share=wander_share)
    with Engine(planner=planner, pictures=PictureFolder(out.parent / PICTURES)) as engine:
        order = {job.id: number for number, job in enumerate(jobs)}
        recorded = sorted(engine.run(policy, jobs), key=lambda episode: order[episode.id])
    dataset.write(out, (dataset.labelled(episode, policy) for episode in recorded))
    mean = sum(episode.reward for episode in recorded) / len(recorded)
    success = sum(episode.success for episode in recorded) / len(recorded)
    text = f"wrote {out}: {len(recorded)} episodes, mean return {mean:.3f}, success {success:.3f}"
    scaled = normalised(spec.id, mean)
    Console(soft_wrap=True).print(text + ("" if scaled is None else f", LMRL-Gym's normalised score {scaled:.1f}"))


def _turns(span: str) -> tuple[int, int]:
    """Return the turns of FIRST:LAST; LAST is unlimited if left out."""
    first, colon, last = span.partition(":")
    try:
        turns = int(first or 0), int(last or 1 << 30)
    except ValueError:
        turns = (1, 0)
    if not colon or not 0 <= turns[0] < turns[1]:
        raise RecipeError(f"--wander takes FIRST:LAST, such as 0:3 or 2:; got {span!r}")
    return turns
