"""`lmgym verify`: replay the actions of entries and, given the model, score their token ids again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from lmgym.cli.submit import load_local, needs_extra, show
from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.board.verdict import Verdict


def verify(
    entries: Annotated[list[Path], typer.Argument(help="JSON files of entries; with --base, a leaderboard's folder.")],
    model: Annotated[str, typer.Option(help="Policy of the entry: score its recorded ids again.")] = "",
    tolerance: Annotated[
        float | None, typer.Option(help="Largest difference of log-probs, in nats (16 bits: mean).  [0.001, 0.03]")
    ] = None,
    base: Annotated[Path | None, typer.Option(help="Leaderboard before: verify the entries added to it.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes.  [one per core]")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the verdicts as JSON.")] = None,
) -> None:
    """Verify entries. Needs no model: it proves that these actions earn this score, not who chose them."""
    try:
        from lmgym.board import entry as records
        from lmgym.board import history
        from lmgym.board.proposals import verify_proposal
        from lmgym.board.store import BoardStore
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error

    judge = verifier(model, tolerance=tolerance, workers=workers)

    def verify_each() -> Iterator[tuple[Path, Verdict]]:
        for path in entries:
            verdict = judge(path)
            events = history.read(path.parent.parent.parent / "history.jsonl")
            history.check_unused(events, verdict.task, verdict.name, verdict.entry)
            yield path, verdict

    if base is not None and len(entries) != 1:
        raise SubmissionError(f"--base takes one folder, the proposed leaderboard; got {len(entries)} paths")
    verdicts = verify_each() if base is None else verify_proposal(BoardStore(base), entries[0], judge)
    count = 0
    for count, (_, verdict) in enumerate(verdicts, 1):  # noqa: B007  # counts the verdicts
        show(summary(verdict))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            name = f"{records.folder_name(verdict.task)}-{verdict.name}.json"
            (out / name).write_bytes(records.canonical(verdict))
    if not count:
        show("nothing to verify: no entry was added")


def verifier(model: str, *, tolerance: float | None = None, workers: int | None = None) -> Callable[[Path], Verdict]:
    """Return a function that verifies an entry under a progress bar and, given its model, reproduces it."""
    from lmgym.board import verify as board
    from lmgym.board.reproduce import reproduce

    policy = load_local(model) if model else None

    def judge(path: Path) -> Verdict:
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task(f"replaying {path.stem}", total=None)

            def advance(done: int, total: int) -> None:
                progress.update(bar, completed=done, total=total)

            verdict = board.verify(path, workers=workers, on_progress=advance)
        return verdict if policy is None else reproduce(path, verdict, policy, tolerance=tolerance)

    return judge


def summary(verdict: Verdict) -> str:
    """Return a verdict in one line."""
    score, success = (
        f"{name} {figure.mean:.4f} [{figure.low:.4f}, {figure.high:.4f}]"
        for name, figure in (("score", verdict.score), ("success", verdict.success))
    )
    audit = "" if verdict.audit is None else f", ids scored again: {verdict.audit}"
    episodes = len(verdict.outcomes.index)
    return (
        f"{verdict.mark} ({verdict.reason or verdict.level}): {verdict.name} on {verdict.task}, {episodes} episodes, "
        f"{score}, {success}{audit}"
    )
