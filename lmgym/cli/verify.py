"""`lmgym verify`: an entry's actions played again, and, given its model, its ids scored again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from lmgym.cli.again import Again
from lmgym.cli.submit import needs_extra
from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.board.entry import Entry
    from lmgym.board.verdict import Verdict


def verify(
    entries: Annotated[list[Path], typer.Argument(help="JSON files of entries; with --base a leaderboard's folder.")],
    model: Annotated[str, typer.Option(help="The entry's policy: score its recorded ids again.")] = "",
    tolerance: Annotated[
        float | None, typer.Option(help="Nats of log-probs; 0.001, in 16 bits 0.03 as a mean.")
    ] = None,
    secret: Annotated[Path | None, typer.Option(help="File of a hidden seed: play MODEL on fresh instances.")] = None,
    instances: Annotated[int, typer.Option(min=2, help="Fresh ones.")] = 100,
    seat: Annotated[list[str] | None, typer.Option(help="Where the model of another seat is now: user=MODEL.")] = None,
    base: Annotated[Path | None, typer.Option(help="Leaderboard before: verify what the other adds to it.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the verdicts as JSON.")] = None,
) -> None:
    """Verify entries. Needs no model: it proves that these actions earn this score, not who chose them."""
    try:
        from lmgym.board import entry as records
        from lmgym.board import history
        from lmgym.board.copies import check_copy
        from lmgym.board.store import BoardStore, check_others, new_entries
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error

    again = Again.of(model, tolerance=tolerance, secret=secret, instances=instances, seat=seat)
    paths = entries
    if base is not None:
        if len(entries) != 1:
            raise SubmissionError("with --base goes one folder: the leaderboard as it is proposed")
        paths = new_entries(base, entries[0])
        beside = [records.read(path) for path in (*records.all_paths(BoardStore(base).entries), *paths)]
        for path in paths:
            check_others(records.read(path), beside)
    console = Console(soft_wrap=True, highlight=False)
    for path in paths:
        verdict = checked(path, workers=workers)
        found = records.read(path)
        log = BoardStore(base).log if base is not None else path.parent.parent.parent / "history.jsonl"
        history.check_new(history.read(log), found.task, found.name, verdict.entry)
        verdict = again.judge(path, found, verdict, log)
        if base is not None:
            others = [
                each for each in (*records.all_paths(BoardStore(base).entries), *paths) if _same_table(each, path)
            ]
            check_copy(path, others, scored=verdict.audit is not None)
        console.print(line(found, verdict), markup=False)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{records.folder_name(found.task)}-{found.name}.json").write_bytes(records.canonical(verdict))
    if not paths:
        console.print("nothing to verify: no entry was added")


def _same_table(path: Path, other: Path) -> bool:
    """Whether two files are different entries on one task."""
    return path.parent.name == other.parent.name and path.name != other.name


def checked(path: Path, *, workers: int | None = None) -> Verdict:
    """Verify an entry under a progress bar."""
    from lmgym.board import verify as board

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"replaying {path.stem}", total=None)
        return board.verify(
            path, workers=workers, told=lambda done, total: progress.update(bar, completed=done, total=total)
        )


def line(found: Entry, verdict: Verdict) -> str:
    """What verification says, in a line."""
    score = f"score {verdict.score.mean:.4f} [{verdict.score.low:.4f}, {verdict.score.high:.4f}]"
    success = f"success {verdict.success.mean:.4f} [{verdict.success.low:.4f}, {verdict.success.high:.4f}]"
    audit = "" if verdict.audit is None else f", ids scored again: {verdict.audit}"
    audit += "" if verdict.fresh is None else f", fresh instances: {verdict.fresh}"
    why = f" ({verdict.reason})" if verdict.reason else f" ({verdict.level})"
    episodes = len(verdict.outcomes.index)
    return f"{verdict.mark}{why}: {found.name} on {found.task}, {episodes} episodes, {score}, {success}{audit}"
