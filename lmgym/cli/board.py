"""`lmgym board`: the site, and what its keepers do: grade, remove, archive, publish the digest of a hidden seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lmgym.cli.again import Again
from lmgym.cli.submit import needs_extra
from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.board.store import BoardStore

app = typer.Typer(help="Build the leaderboard's site, or keep the leaderboard.", no_args_is_help=False)

Where = Annotated[Path, typer.Option(help="Folder with entries, verdicts and history.")]
Why = Annotated[str, typer.Option(help="Stands in the history.")]
LEADERBOARD = Path("leaderboards")


def _store(folder: Path) -> BoardStore:
    try:
        import jinja2  # noqa: F401

        from lmgym.board.store import BoardStore
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error
    return BoardStore(folder)


def _say(words: str) -> None:
    Console(soft_wrap=True, highlight=False).print(words, markup=False)


@app.callback(invoke_without_command=True)
def build(
    context: typer.Context,
    leaderboard: Where = LEADERBOARD,
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("build/board"),
    address: Annotated[str, typer.Option(help="Where the site will be, for the links of its feed.")] = "",
    base: Annotated[Path | None, typer.Option(help="Leaderboard before: replay what has another verdict.")] = None,
) -> None:
    """Build the static site: it opens from disk."""
    if context.invoked_subcommand is not None:
        return
    store = _store(leaderboard)
    from lmgym.board import site

    if base is not None:
        from lmgym.board.recheck import recheck

        again = recheck(_store(base), store)
        _say(f"replayed {len(again)} entries whose verdicts are not as before: all are true")
    board = site.load(store)
    written = site.write(board, out, address=address)
    _say(f"wrote {len(written)} files of {len(board.rows)} entries; open {out}/index.html")
    if not address:
        _say("feed.xml has no links, as nobody knows where this copy will be: say so by --address https://HOST/PATH")


@app.command()
def references(
    tasks: Annotated[list[str] | None, typer.Argument(help="Ids or folders; all tasks if none is named.")] = None,
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Play null, random and oracle by the protocol where the board lacks them, and grade what they made."""
    store = _store(leaderboard)
    from lmgym.board import references as players
    from lmgym.env.registry import find, specs
    from lmgym.evaluation.protocol import ranked
    from lmgym.policy.load import load_policy

    wanted = [spec.id for spec in ranked()]
    if tasks:
        named = [find(name) for name in tasks]
        folders = {spec.package for spec, name in zip(named, tasks, strict=True) if name == spec.name}
        wanted = [
            spec.id for spec in specs().values() if spec in named or (spec.package in folders and not spec.part_of)
        ]
    for rules, name in players.lacking(store, wanted, lambda task, why: _say(f"left out {task}: {why}")):
        path = players.play(store, rules, name, load_policy(name))
        if path is None:
            _say(f"left out {name} on {rules.task}: it has none")
        else:
            _grade(store, path, "", Again(""))


@app.command()
def grade(
    entries: Annotated[list[Path] | None, typer.Argument(help="JSON files; all that need it if none is named.")] = None,
    reason: Why = "",
    model: Annotated[str, typer.Option(help="The entry's policy: score its recorded ids again.")] = "",
    secret: Annotated[Path | None, typer.Option(help="File of a hidden seed: play MODEL on fresh instances.")] = None,
    instances: Annotated[int, typer.Option(min=2, help="Fresh ones.")] = 100,
    seat: Annotated[list[str] | None, typer.Option(help="Where the model of another seat is now: user=MODEL.")] = None,
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Verify entries, and put the verdicts on the board."""
    store = _store(leaderboard)
    paths = entries or store.stale()
    reason = reason or ("" if entries else "the task's recorded episodes changed")
    again = Again.of(model, secret=secret, instances=instances, seat=seat)
    for path in paths:
        _grade(store, path, reason, again)
    if not paths:
        _say("every entry has its verdict")


def _grade(store: BoardStore, path: Path, reason: str, again: Again) -> None:
    from lmgym.board import entry as records
    from lmgym.cli.verify import checked, line

    verdict, found = checked(path), records.read(path)
    verdict = again.judge(path, found, verdict, store.log)
    store.admit(found, verdict, reason=reason)
    _say(line(found, verdict))


@app.command()
def remove(
    task: Annotated[str, typer.Argument(help="Id.")],
    name: Annotated[str, typer.Argument(help="Of the entry.")],
    reason: Annotated[str, typer.Option(help="Stands in the history.")],
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Take an entry off the board. The history keeps that it was there."""
    _store(leaderboard).remove(task, name, reason=reason)
    _say(f"removed {name} on {task}")


@app.command()
def archive(
    old: Annotated[str, typer.Argument(help="Id of the task whose table is closed.")],
    new: Annotated[str, typer.Argument(help="Id of its next version; the same where it only asks for other episodes.")],
    reason: Annotated[str, typer.Option(help="What changed.")],
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Close a table: replay its entries on the task as it is next and keep it as it stood."""
    store = _store(leaderboard)
    from lmgym.board.archive import archive as close

    _say(f"wrote {close(store, old, new, reason=reason)}")


@app.command()
def commit(
    task: Annotated[str, typer.Argument(help="Id.")],
    secret: Annotated[Path, typer.Argument(help="File with the hidden seed; it stays with you.")],
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Publish the digest of a hidden seed, from which fresh instances will be drawn."""
    store = _store(leaderboard)
    from lmgym.board import fresh
    from lmgym.env.registry import find

    spec = find(task)
    digest = fresh.digest(spec.id, secret.read_text(encoding="utf-8").strip())
    store.commit(spec.id, digest, reason="digest of a hidden seed")
    _say(f"committed to {digest}")


@app.command()
def follows(
    base: Annotated[Path, typer.Argument(help="Folder of the leaderboard before.")],
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Check that a leaderboard's history goes on from another's: no line edited, none taken back, no entry gone."""
    old, new = _store(base), _store(leaderboard)
    from lmgym.board import history
    from lmgym.board.recheck import check_links

    check_links(new.root)
    contents = [store.log.read_bytes() if store.log.is_file() else b"" for store in (old, new)]
    history.check_extends(*contents)
    new.check_whole()
    added = len(contents[1].splitlines()) - len(contents[0].splitlines())
    _say(f"the history goes on: {added} lines were added")


@app.command()
def schema(leaderboard: Where = LEADERBOARD) -> None:
    """Write the JSON Schemas of entries and episodes."""
    store = _store(leaderboard)
    from lmgym.board.entry import schemas

    for name, content in schemas().items():
        path = store.root / "schema" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        _say(f"wrote {path}")


@app.command()
def curve(
    run: Annotated[Path, typer.Argument(help="Folder of a training run.")],
    name: Annotated[str, typer.Option(help="Of the baseline.")],
    leaderboard: Where = LEADERBOARD,
) -> None:
    """Put the learning curve of a training run on its task's page."""
    store = _store(leaderboard)
    from lmgym.board import curves
    from lmgym.board.check import check_name
    from lmgym.board.entry import canonical, folder_name
    from lmgym.env.registry import find
    from lmgym.train import folder

    check_name(name)
    arguments = folder.read(run)["arguments"]
    task = find(str(arguments["task"])).id
    command = _train_command(arguments)
    found = curves.from_metrics((run / "metrics.jsonl").read_text().splitlines(), name=name, command=command)
    place = store.root / "curves" / folder_name(task) / f"{name}.json"
    if place.exists():
        raise SubmissionError(f"{place} is there: choose another --name")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(canonical(found) + b"\n")
    curves.read_curve(place)
    _say(f"wrote {place}")


def _train_command(arguments: Mapping[str, Any]) -> str:
    """The command of a training run: what differs from the defaults of its baseline."""
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
    return shlex.join(_placeless(word) for word in words)


def _placeless(word: str) -> str:
    """The word with of a path that begins at the root only the last two names: no place of a machine is published."""
    before, start, path = word.partition("/")
    rooted = bool(start) and (before in ("", "hf:") or before.endswith("="))
    return before + "/".join(path.split("/")[-2:]) if rooted else word
