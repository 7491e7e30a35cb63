"""`lmgym replay`: replays a recorded episode and shows it turn by turn or token by token."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.errors import InstanceError
from lmgym.visible import visible, visible_lines

if TYPE_CHECKING:
    from lmgym.rollout.segments import Segment
    from lmgym.train.trained import TrainedRow
    from lmgym.types import Trajectory


def replay(
    file: Annotated[Path, typer.Argument(help="File of episodes, JSON lines.")],
    number: Annotated[int, typer.Option(help="Number of the episode in the file, from 0.")] = 0,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Show every token with its log-prob and training weight.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Model whose tokenizer decodes the ids; default: the run's.")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Replay the actions and compare.")] = True,
    trust: Annotated[
        bool, typer.Option("--trust", help="Call servers, import functions and open files that the episode names.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write one HTML file with the pictures and the clicks on them.")
    ] = None,
) -> None:
    """Show a recorded episode; fail if replaying its actions gives another result."""
    from lmgym.rollout import episodes
    from lmgym.rollout.replay import replay as replay_episode

    if not file.is_file():
        raise InstanceError(
            f"no file of episodes at {file}; lmgym eval --out and lmgym train --keep-episodes write them"
        )
    episode = next(islice(episodes.read(file), max(number, 0), None), None)
    if episode is None or number < 0:
        raise InstanceError(f"{file} has no episode {number}")
    console = Console(highlight=False)
    if tokens:
        _print_tokens(episode, model, console, file=file)
    else:
        _print_turns(episode, console)
    ending = f"return {episode.reward:g}, score {episode.score:g}, success {episode.success}, ended by {episode.stop}"
    console.print(Text(visible(ending)))
    pictures: dict[str, bytes] = {}  # pictures missing in the file's folder come from the replay
    try:
        if verify:
            replay_episode(episode, pictures=pictures, trusted=trust)
            console.print("replayed without a difference")
    finally:
        if html is not None:
            from lmgym.cli.view import decoder
            from lmgym.viewer.export import export
            from lmgym.viewer.index import RunFile

            with closing(RunFile(file, pictures=pictures)) as run:
                export(html, [run], [run.rows[number]], decode=None if model is None else decoder(model))
            console.print(Text(visible(f"wrote {html}")))


def _print_turns(trajectory: Trajectory, console: Console) -> None:
    """Print an episode turn by turn, with control characters escaped."""
    name = f"{trajectory.task} {trajectory.split} {trajectory.index} ({trajectory.id})"
    console.print(Text(visible_lines(name), style="bold"))
    for turn in trajectory.turns:
        console.print(Text(visible_lines(turn.observation.text)))
        answer = Text(f"> {visible_lines(turn.completion.text)}", style="bold")
        console.print(answer, Text(f"  {turn.reward:+g}", style="dim"))
    if trajectory.final is not None:
        console.print(Text(visible_lines(trajectory.final.text)))


def _print_tokens(trajectory: Trajectory, model: str | None, console: Console, *, file: Path) -> None:
    """Print every token of an episode, segment by segment, with what was trained of it if that is recorded."""
    from lmgym.policy.load import load_local
    from lmgym.rollout.segments import segments
    from lmgym.train import folder, trained

    beside = trained.path_beside(file)
    rows = trained.read(beside) if beside.is_file() else None
    if rows is None:
        console.print(f"what was trained is unknown: {beside}, which lmgym train --keep-episodes writes, is missing")
    elif not any(name == trajectory.id for name, _ in rows):
        console.print(f"by {beside}, nothing of this episode was trained in its step: a filter or a store dropped it")
    run = file.parent.parent  # of the training that kept the file, if one did
    facts = folder.read(run) if (run / folder.FACTS).is_file() else {}
    policy = load_local(model or str(facts.get("arguments", {}).get("policy", "tiny")))
    for number, segment in enumerate(segments(trajectory)):
        nothing = trained.nothing(trajectory.id, number, len(segment))
        row = None if rows is None else rows.get((trajectory.id, number), nothing)
        console.print(_table(segment, row, policy.tokenizer.decode))


def _table(segment: Segment, row: TrainedRow | None, decode: Callable[[list[int]], object]) -> Table:
    """Return a table of a segment with a token a line; the last columns only if it is known what was trained."""
    trained = () if row is None else ("loss weight", "advantage")
    table = Table("position", "turn", "token", "log-prob", "entropy", *trained, title=f"segment {segment.number}")
    for position, token in enumerate(segment.ids):
        answer, sampled = segment.turn[position] >= 0, segment.sampled[position]
        cells: list[str | Text] = [str(segment.turn[position]) if answer else "", Text(repr(decode([token]))[1:-1])]
        cells += [f"{values[position]:.3f}" if sampled else "" for values in (segment.logprobs, segment.entropy)]
        if row is not None:
            weight, advantage = row.weight[position], row.advantage[position]
            cells += [f"{weight:g}", f"{advantage:+.3f}" if weight else ""]
        table.add_row(str(position), *cells, style=None if answer else "dim")
    return table
