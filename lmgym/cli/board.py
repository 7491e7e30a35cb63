"""`lmgym board`: build the site, and keep the leaderboard: grade, remove and archive entries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmgym.cli.submit import needs_extra, show
from lmgym.cli.verify import summary, verifier
from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.board.store import BoardStore

app = typer.Typer(help="Build the leaderboard's site, or keep the leaderboard.", no_args_is_help=False)

Folder = Annotated[Path, typer.Option(help="Folder with entries, verdicts and history.")]
LEADERBOARD = Path("leaderboards")


def _store(folder: Path) -> BoardStore:
    try:
        import jinja2  # noqa: F401

        from lmgym.board.store import BoardStore
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error
    return BoardStore(folder)


@app.callback(invoke_without_command=True)
def build(
    context: typer.Context,
    leaderboard: Folder = LEADERBOARD,
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("build/board"),
    address: Annotated[str, typer.Option(help="Future URL of the site, for the links of its feed.")] = "",
    base: Annotated[Path | None, typer.Option(help="Leaderboard before: replay entries with another verdict.")] = None,
) -> None:
    """Build the static site, which opens from disk."""
    if context.invoked_subcommand is not None:
        return
    store = _store(leaderboard)
    from lmgym.board import site

    if base is not None:
        from lmgym.board.proposals import recheck

        count = len(recheck(_store(base), store))
        show(f"replayed {count} entries with changed verdicts: all verdicts are confirmed")
    board = site.load(store)
    written = site.write(board, out, address=address)
    show(f"wrote {len(written)} files of {len(board.rows)} entries; open {out}/index.html")
    if not address:
        show("feed.xml has no links; state the URL of the site by --address https://HOST/PATH")


@app.command()
def references(
    tasks: Annotated[list[str] | None, typer.Argument(help="Task ids or folders.  [all tasks]")] = None,
    leaderboard: Folder = LEADERBOARD,
) -> None:
    """Play null, random and oracle by the protocol where the board lacks them, and grade their entries."""
    store = _store(leaderboard)
    from lmgym.board.references import play_missing, select_tasks
    from lmgym.policy.load import load_policy

    def skip(name: str, reason: str) -> None:
        show(f"skipped {name}: {reason}")

    paths = play_missing(store, select_tasks(tasks or ()), load_policy, skip)
    for path in paths:
        _grade(store, [path])


@app.command()
def grade(
    entries: Annotated[list[Path] | None, typer.Argument(help="JSON files.  [all entries without a verdict]")] = None,
    reason: Annotated[str, typer.Option(help="Reason for grading again, for the history.")] = "",
    model: Annotated[str, typer.Option(help="Policy of the entry: score its recorded ids again.")] = "",
    leaderboard: Folder = LEADERBOARD,
) -> None:
    """Verify entries and put their verdicts on the board."""
    store = _store(leaderboard)
    paths = entries or store.stale()
    _grade(store, paths, reason=reason or ("" if entries else "the task's recorded episodes changed"), model=model)
    if not paths:
        show("every entry has its verdict")


def _grade(store: BoardStore, paths: list[Path], *, reason: str = "", model: str = "") -> None:
    from lmgym.board.entry import read

    judge = verifier(model)
    for path in paths:
        verdict = judge(path)
        store.admit(read(path), verdict, reason=reason)
        show(summary(verdict))


@app.command()
def remove(
    task: Annotated[str, typer.Argument(help="Task id.")],
    name: Annotated[str, typer.Argument(help="Name of the entry.")],
    reason: Annotated[str, typer.Option(help="Reason for the removal, for the history.")],
    leaderboard: Folder = LEADERBOARD,
) -> None:
    """Remove an entry from the board; the history keeps that it was there."""
    _store(leaderboard).remove(task, name, reason=reason)
    show(f"removed {name} on {task}")


@app.command()
def archive(
    old: Annotated[str, typer.Argument(help="Task id whose table is closed.")],
    new: Annotated[str, typer.Argument(help="Task id of its next version; the same id if it only asks for others.")],
    reason: Annotated[str, typer.Option(help="Change of the task, for the history.")],
    leaderboard: Folder = LEADERBOARD,
) -> None:
    """Close a table: replay its entries on the task's next version and keep the table as it was."""
    store = _store(leaderboard)
    from lmgym.board import archive as board

    show(f"wrote {board.archive(store, old, new, reason=reason)}")


@app.command()
def follows(
    base: Annotated[Path, typer.Argument(help="Folder of the leaderboard before.")],
    leaderboard: Folder = LEADERBOARD,
) -> None:
    """Check that a history continues another one: no line edited or cut, no entry missing without a line."""
    old, new = _store(base), _store(leaderboard)
    from lmgym.board.proposals import check_continuation

    show(f"the history continues: {check_continuation(old, new)} lines were added")


@app.command()
def schema(leaderboard: Folder = LEADERBOARD) -> None:
    """Write the JSON Schemas of entries and episodes."""
    store = _store(leaderboard)
    from lmgym.board.entry import schemas

    for name, content in schemas().items():
        path = store.root / "schema" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        show(f"wrote {path}")


@app.command()
def curve(
    run: Annotated[Path, typer.Argument(help="Folder of a training run.")],
    name: Annotated[str, typer.Option(help="Name of the baseline.")],
    leaderboard: Folder = LEADERBOARD,
) -> None:
    """Add the learning curve of a training run to its task's page."""
    store = _store(leaderboard)
    from lmgym.board import curves
    from lmgym.board.entry import canonical, folder_name
    from lmgym.board.validate import check_name
    from lmgym.env.registry import find
    from lmgym.train import folder

    check_name(name)
    arguments = folder.read(run)["arguments"]
    task = find(str(arguments["task"])).id
    command = _train_command(arguments)
    learning = curves.from_metrics((run / "metrics.jsonl").read_text().splitlines(), name=name, command=command)
    place = store.root / "curves" / folder_name(task) / f"{name}.json"
    if place.exists():
        raise SubmissionError(f"{place} exists; choose another --name")
    curves.check_curve(learning, place.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(canonical(learning) + b"\n")
    show(f"wrote {place}")


def _train_command(arguments: Mapping[str, Any]) -> str:
    """Return the command of a training run, with the options that differ from its baseline's defaults."""
    import dataclasses
    import importlib
    import shlex

    algorithm = str(arguments["algorithm"])
    kind = importlib.import_module(f"lmgym.baselines.{algorithm}").Args
    words = ["lmgym", "train", algorithm, str(arguments["task"]), "--model", str(arguments.get("policy", "tiny"))]
    words += [
        word for name, value in dict(arguments.get("options", {})).items() for word in ("--option", f"{name}={value}")
    ]
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    defaults |= {"seed": 0, "lora": None, "tokens": None, "train_instances": None, "evaluate_split": None}
    for name, default in defaults.items():
        value, option = arguments.get(name, default), name.replace("_", "-")
        if value == default or default is dataclasses.MISSING:
            continue
        words.append(f"--{'' if value else 'no-'}{option}" if isinstance(value, bool) else f"--{option}={value}")
    return shlex.join(_without_root(word) for word in words)


def _without_root(word: str) -> str:
    """Return the word with absolute paths cut to their last two names, so that no machine's path is published."""
    before, start, path = word.partition("/")
    rooted = bool(start) and (before in ("", "hf:") or before.endswith("="))
    return before + "/".join(path.split("/")[-2:]) if rooted else word
