"""`lmgym submit`: an entry for the leaderboard, made of a run."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lmgym.errors import MissingExtra, SubmissionError

if TYPE_CHECKING:
    from lmgym.board.entry import PolicyRecord
    from lmgym.board.run import RunFolder

Words = Annotated[str, typer.Option(help="As the author says.")]


def needs_extra(error: ModuleNotFoundError) -> MissingExtra:
    """The error of a leaderboard command without its packages."""
    return MissingExtra(f"the leaderboard needs {error.name}: pip install 'lmgym[board]'")


def submit(
    run: Annotated[Path, typer.Argument(help="Folder of an evaluation: lmgym eval TASK --standard --out FOLDER.")],
    author: Annotated[list[str], typer.Option(help="Who hands it in; may be repeated.")],
    name: Annotated[str, typer.Option(help="Of the system, the same on every task; made of the policy's.")] = "",
    title: Annotated[str, typer.Option(help="What the board shows; the policy's name.")] = "",
    model: Annotated[str, typer.Option(help="Where the weights are now, for their digest; the run's own.")] = "",
    training: Annotated[str, typer.Option(help="Data that the policy was trained on.")] = "not said",
    trained_on: Annotated[list[str] | None, typer.Option(help='"TASK SPLIT" of lmgym; may be repeated.')] = None,
    tools: Annotated[str, typer.Option(help="Tools used beyond the task's actions.")] = "none",
    hidden_tries: Annotated[str, typer.Option(help="Further tries of which these were chosen.")] = "none",
    humans: Annotated[str, typer.Option(help="What people did in the episodes.")] = "none",
    code: Annotated[str | None, typer.Option(help="https address.")] = None,
    paper: Annotated[str | None, typer.Option(help="https address.")] = None,
    weights: Annotated[str | None, typer.Option(help="https address.")] = None,
    leaderboard: Annotated[Path, typer.Option(help="Folder with the entries.")] = Path("leaderboards"),
) -> None:
    """Make an entry of a run: actions, rewards, digests of observations, ids; no host, no path. Licence: CC0-1.0."""
    try:
        from lmgym.board import entry as entries
        from lmgym.board import run as runs
        from lmgym.board.check import check_entry, check_name
        from lmgym.board.entry import Declaration, Links
        from lmgym.board.submit import Signature, build
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error
    from lmgym.evaluation.protocol import protocol

    folder = runs.read(run)
    name = name or runs.slug(folder.policy)
    check_name(name)
    signature = Signature(
        name=name,
        title=title or runs.public_name(folder.policy),
        authors=tuple(author),
        date=date.today().isoformat(),
        policy=_who(folder, model),
        user=folder.user(),
        settings=folder.kept(),
        declared=Declaration(
            training=training,
            trained_on=tuple(trained_on or ()),
            tools=tools,
            hidden_tries=hidden_tries,
            humans=humans,
        ),
        links=Links(code=code, paper=paper, weights=weights),
    )
    entry, episodes = build(folder.trajectories(), signature)
    _check_keys(entries.canonical(entry), entries.packed(episodes))
    place = leaderboard / "entries"
    check_entry(entry, protocol(entry.task), place / entries.folder_name(entry.task) / f"{entry.name}.json")
    path = entries.write(place, entry, episodes)
    Console(soft_wrap=True, highlight=False).print(f"wrote {path} and {entries.episodes_path(path).name}", markup=False)
    Console(soft_wrap=True, highlight=False).print(f"next:  lmgym verify {path}", markup=False)


def _check_keys(*contents: bytes) -> None:
    """Raise SubmissionError, which repeats no key, where one of the environment's stands in what would be written."""
    from lmgym.policy.endpoints.secrets import Secrets

    secrets = Secrets.of_environment()
    if any(secrets.struck(text) != text for text in (content.decode() for content in contents)):
        raise SubmissionError("a key stands in this run, or in what is said of it: nothing was written")


def _who(folder: RunFolder, model: str) -> PolicyRecord:
    """The policy, with the digest of its weights where they are here."""
    from lmgym.board import run as runs
    from lmgym.board.entry import PolicyRecord
    from lmgym.evaluation.policies import kind_of
    from lmgym.train.load import load_policy

    facts: dict[str, Any] = {}
    if kind_of(model or folder.policy) == "local":
        from lmgym.policy.local.audit import parameters, weights_digest

        policy: Any = load_policy(model or folder.policy, 1.0, int(folder.settings.get("seed", 0)))
        local = runs.check_unguided(policy)
        facts = {"parameters": parameters(local), "weights": weights_digest(local)}
    return PolicyRecord(name=runs.public_name(folder.policy), kind=runs.kind_of(folder.policy), **facts)
