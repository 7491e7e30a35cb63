"""`lmgym replay`: a recorded episode, played again and shown turn by turn or token by token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.errors import InstanceError

if TYPE_CHECKING:
    from lmgym.rollout.segments import Segment
    from lmgym.train.trained import TrainedRow
    from lmgym.types import Trajectory


def replay(
    file: Annotated[Path, typer.Argument(help="Episodes as JSON lines.")],
    number: Annotated[int, typer.Option(help="Which episode of the file, from 0.")] = 0,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show every token and what was trained of it.")] = False,
    model: Annotated[str | None, typer.Option(help="Whose tokenizer the ids are of; else the run's.")] = None,
    verify: Annotated[bool, typer.Option(help="Play the actions again and compare.")] = True,
    trust: Annotated[
        bool, typer.Option("--trust", help="Call the server, import the functions, open the files it names.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write one HTML file with the pictures, and clicks on them.")
    ] = None,
) -> None:
    """Show a recorded episode; fail where playing its actions again gives something else."""
    from lmgym.evaluation.pages import visible
    from lmgym.rollout import episodes
    from lmgym.rollout.replay import replay as played_again

    if not file.is_file():
        raise InstanceError(f"{file} is no file of episodes; see lmgym eval --out or lmgym train --keep-episodes")
    found = next(islice(episodes.read(file), number, None), None)
    if found is None or number < 0:
        raise InstanceError(f"{file} has no episode {number}")
    console = Console(highlight=False)
    if tokens:
        _tokens(found, model, console, file=file)
    else:
        _turns(found, console)
    ending = f"return {found.reward:g}, score {found.score:g}, success {found.success}, ended by {found.stop}"
    console.print(Text(visible(ending)))
    pictures: dict[str, bytes] = {}  # those that the file's folder lacks are seen when it is played again
    try:
        if verify:
            played_again(found, pictures=pictures, trusted=trust)
            console.print("played again without a difference")
    finally:
        if html is not None:
            _write(html, file, number, pictures, model)
            console.print(Text(visible(f"wrote {html}")))


def _write(html: Path, file: Path, number: int, pictures: Mapping[str, bytes], model: str | None) -> None:
    from lmgym.cli.view import decoder
    from lmgym.viewer.export import export
    from lmgym.viewer.index import RunFile

    run = RunFile(file, pictures=pictures)
    try:
        export(html, [run], [run.rows[number]], decode=None if model is None else decoder(model))
    finally:
        run.close()


def _turns(trajectory: Trajectory, console: Console) -> None:
    """Print an episode; what commands a terminal is written out, as texts come from anywhere."""
    from lmgym.evaluation.pages import visible_lines

    name = f"{trajectory.task} {trajectory.split} {trajectory.index} ({trajectory.id})"
    console.print(Text(visible_lines(name), style="bold"))
    for turn in trajectory.turns:
        console.print(Text(visible_lines(turn.observation.text)))
        said = Text(f"> {visible_lines(turn.completion.text)}", style="bold")
        console.print(said, Text(f"  {turn.reward:+g}", style="dim"))
    if trajectory.final is not None:
        console.print(Text(visible_lines(trajectory.final.text)))


def _tokens(trajectory: Trajectory, model: str | None, console: Console, *, file: Path) -> None:
    """Print every token of an episode with what is known of it, segment by segment."""
    from lmgym.policy.load import load_local
    from lmgym.rollout.segments import segments
    from lmgym.train import trained

    beside = trained.path_beside(file)
    rows = trained.read(beside) if beside.is_file() else None
    if rows is None:
        console.print(f"what was trained is not known: there is no {beside}, as lmgym train --keep-episodes writes it")
    elif not any(name == trajectory.id for name, _ in rows):
        console.print(
            f"nothing of this episode was trained in its step, says {beside}: a filter dropped it, or a store"
        )
    policy = load_local(model or _model_of(file))
    for number, segment in enumerate(segments(trajectory)):
        nothing = trained.nothing(trajectory.id, number, len(segment))
        row = None if rows is None else rows.get((trajectory.id, number), nothing)
        console.print(_table(segment, row, policy.tokenizer.decode))


def _table(segment: Segment, row: TrainedRow | None, decode: Callable[[list[int]], object]) -> Table:
    """A segment, a token a line; the last columns only where it is known what was trained."""
    known = () if row is None else ("loss weight", "advantage")
    table = Table("place", "turn", "token", "log-prob", "entropy", *known, title=f"segment {segment.number}")
    for place, token in enumerate(segment.ids):
        answer = segment.turn[place] >= 0
        word = Text(repr(decode([token]))[1:-1])
        cells: list[str | Text] = [str(segment.turn[place]) if answer else "", word]
        sampled = segment.sampled[place]
        cells += [f"{values[place]:.3f}" if sampled else "" for values in (segment.logprobs, segment.entropy)]
        if row is not None:
            weight, advantage = row.weight[place], row.advantage[place]
            cells += [f"{weight:g}", f"{advantage:+.3f}" if weight else ""]
        table.add_row(str(place), *cells, style=None if answer else "dim")
    return table


def _model_of(file: Path) -> str:
    """The model of the run that kept a file of episodes; `tiny` where it is of no run."""
    from lmgym.train import folder

    run = file.parent.parent
    facts = folder.read(run) if (run / folder.FACTS).is_file() else {}
    return str(facts.get("arguments", {}).get("policy", "tiny"))
