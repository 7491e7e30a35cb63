"""`lmgym replay`: a recorded episode, played again and shown turn by turn or token by token."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.errors import InstanceError

if TYPE_CHECKING:
    from lmgym.types import Trajectory


def replay(
    file: Annotated[Path, typer.Argument(help="Episodes as JSON lines.")],
    number: Annotated[int, typer.Option(help="Which episode of the file, from 0.")] = 0,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show every token with mask, log-prob, entropy.")] = False,
    model: Annotated[str, typer.Option(help="Whose tokenizer the ids are of.")] = "tiny",
    verify: Annotated[bool, typer.Option(help="Play the actions again and compare.")] = True,
) -> None:
    """Show a recorded episode; fail where playing its actions again gives something else."""
    from lmgym.rollout import episodes
    from lmgym.rollout.replay import replay as played_again

    if not file.is_file():
        raise InstanceError(f"{file} is no file of episodes; see lmgym eval --out or lmgym train --keep-episodes")
    found = next(islice(episodes.read(file), number, None), None)
    if found is None or number < 0:
        raise InstanceError(f"{file} has no episode {number}")
    console = Console(highlight=False)
    if tokens:
        _tokens(found, model, console, siblings=list(episodes.read(file)))
    else:
        _turns(found, console)
    console.print(f"return {found.reward:g}, score {found.score:g}, success {found.success}, ended by {found.stop}")
    if verify:
        played_again(found)
        console.print("played again without a difference")


def _turns(trajectory: Trajectory, console: Console) -> None:
    console.print(f"{trajectory.task} {trajectory.split} {trajectory.index} ({trajectory.id})", style="bold")
    for turn in trajectory.turns:
        console.print(Text(turn.observation.text))
        console.print(Text(f"> {turn.completion.text}", style="bold"), Text(f"  {turn.reward:+g}", style="dim"))
    if trajectory.final is not None:
        console.print(Text(trajectory.final.text))


def _tokens(trajectory: Trajectory, model: str, console: Console, *, siblings: list[Trajectory]) -> None:
    from lmgym.policy.load import load_local
    from lmgym.rollout.segments import segments

    policy = load_local(model)
    advantage = _advantage(trajectory, siblings)
    for number, segment in enumerate(segments(trajectory)):
        table = Table(
            "place", "turn", "token", "trained", "log-prob", "entropy", "advantage", title=f"segment {number}"
        )
        for place, token in enumerate(segment.ids):
            word = Text(repr(policy.tokenizer.decode([token]))[1:-1])
            if not segment.sampled[place]:
                table.add_row(str(place), "", word, "", "", "", "", style="dim")
                continue
            figures = (f"{segment.logprobs[place]:.3f}", f"{segment.entropy[place]:.3f}", advantage)
            table.add_row(str(place), str(segment.turn[place]), word, "yes", *figures)
        console.print(table)


def _advantage(trajectory: Trajectory, siblings: list[Trajectory]) -> str:
    """Return the GRPO advantage (with std) among the tries of the same group in the file; "-" for a single try."""
    group = [other.reward for other in siblings if (other.group, other.seat) == (trajectory.group, trajectory.seat)]
    if len(group) < 2:
        return "-"
    import torch

    from lmgym.train.math import group_normal

    returns = torch.tensor([trajectory.reward, *group], dtype=torch.float64)
    return f"{float(group_normal(returns[1:], torch.zeros(len(group)), std=True)[group.index(trajectory.reward)]):+.3f}"
