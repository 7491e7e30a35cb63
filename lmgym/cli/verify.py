"""`lmgym verify`: an entry's actions played again, and, given its model, its ids scored again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from lmgym.cli.submit import needs_extra
from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.board.entry import Entry
    from lmgym.board.verdict import Verdict


def verify(
    entries: Annotated[list[Path], typer.Argument(help="JSON files of entries; with --base a leaderboard's folder.")],
    model: Annotated[str, typer.Option(help="The entry's policy: score its recorded ids again.")] = "",
    tolerance: Annotated[float | None, typer.Option(help="Of a log-prob in nats; 0.001, 0.03 for 16 bits.")] = None,
    base: Annotated[Path | None, typer.Option(help="Leaderboard before: verify what the other adds to it.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the verdicts as JSON.")] = None,
) -> None:
    """Verify entries. Needs no model: it proves that these actions earn this score, not who chose them."""
    try:
        from lmgym.board import entry as records
        from lmgym.board import history
        from lmgym.board.store import Store, new_entries
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error

    paths = entries
    if base is not None:
        if len(entries) != 1:
            raise SubmissionError("with --base goes one folder: the leaderboard as it is proposed")
        paths = new_entries(base, entries[0])
    console = Console(soft_wrap=True, highlight=False)
    for path in paths:
        verdict = checked(path, workers=workers)
        found = records.read(path)
        log = Store(base).log if base is not None else path.parent.parent.parent / "history.jsonl"
        history.check_new(history.read(log), found.task, found.name, verdict.entry)
        if model:
            verdict = audited(path, found, verdict, model, tolerance)
        console.print(line(found, verdict), markup=False)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{records.folder_name(found.task)}-{found.name}.json").write_bytes(records.canonical(verdict))
    if not paths:
        console.print("nothing to verify: no entry was added")


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
    why = f" ({verdict.reason})" if verdict.reason else f" ({verdict.level})"
    episodes = len(verdict.outcomes.index)
    return f"{verdict.mark}{why}: {found.name} on {found.task}, {episodes} episodes, {score}, {success}{audit}"


def audited(path: Path, found: Entry, verdict: Verdict, model: str, tolerance: float | None) -> Verdict:
    """A verdict after the recorded ids were scored under `model` again."""
    import msgspec

    from lmgym.board import audit
    from lmgym.board.check import checked_episodes
    from lmgym.evaluation.protocol import protocol
    from lmgym.evaluation.settings import context_rule

    policy, scorer = _scorer(found, model)
    rules = protocol(found.task)
    result = audit.audit(
        found,
        [episode for _, episode in checked_episodes(found, rules, path)],
        scorer,
        rules,
        context=context_rule(str(found.settings.get("context", "full"))),
        tolerance=tolerance if tolerance is not None else _tolerance(policy),
    )
    return msgspec.structs.replace(
        verdict, mark="reproduced" if verdict.mark == "verified" else "reported", audit=result
    )


def _scorer(found: Entry, model: str) -> tuple[Any, Any]:
    """The policy of an entry, and how to score under it. Raises SubmissionError for other weights."""
    from lmgym.cli.policies import kind_of, load_here
    from lmgym.policy.audit import auditor, weights_digest

    if kind_of(model) != "local":
        raise SubmissionError(f"{model} has no weights here to score ids under: --model takes tiny, hf:, run:")
    settings = found.settings
    policy: Any = load_here(model, 1.0, int(settings.get("seed", 0)))
    digest = weights_digest(policy)
    if found.policy.weights != digest:
        stated = found.policy.weights or "none"
        raise SubmissionError(f"the entry's weights are {stated[:16]}, those of {model} are {digest[:16]}")
    heat, top_p, top_k = (settings.get(name, off) for name, off in (("temperature", 1.0), ("top_p", 1.0), ("top_k", 0)))
    return policy, auditor(policy, temperature=float(heat), top_p=float(top_p), top_k=int(top_k))


def _tolerance(policy: Any) -> float:
    from lmgym.board.audit import HALF, TOLERANCE

    return TOLERANCE if str(policy.dtype) == "torch.float32" else HALF
