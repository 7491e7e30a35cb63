"""`lmgym submit`: make a leaderboard entry of an evaluation."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lmgym.errors import MissingExtra, SubmissionError

if TYPE_CHECKING:
    from lmgym.policy.local.policy import LocalPolicy


def needs_extra(error: ModuleNotFoundError) -> MissingExtra:
    """Return the error of a leaderboard command whose packages are not installed."""
    return MissingExtra(f"the leaderboard needs {error.name}: pip install 'lmgym[board]'")


def show(text: str) -> None:
    """Print a line as it is, without markup and wrapping."""
    Console(soft_wrap=True, highlight=False).print(text, markup=False)


def load_local(model: str) -> LocalPolicy:
    """Load the local policy of an entry. Raises SubmissionError for a policy of another kind."""
    from lmgym.evaluation.config import check_keys
    from lmgym.evaluation.policies import kind_of
    from lmgym.policy.select import model_of
    from lmgym.train.load import load_policy

    check_keys([model], [])
    if kind_of(model) != "local" or model_of(model) != model:
        raise SubmissionError(f"{model} has no weights here to score ids under; --model takes tiny, hf: or run:")
    policy: LocalPolicy = load_policy(model, 1.0, 0)  # type: ignore[assignment]  # of a local kind
    return policy


def submit(
    run: Annotated[Path, typer.Argument(help="Folder of an evaluation: lmgym eval TASK --standard --out FOLDER.")],
    author: Annotated[list[str], typer.Option(help="Name of an author; may be repeated.")],
    name: Annotated[str, typer.Option(help="System name, the same on every task.  [from the policy]")] = "",
    title: Annotated[str, typer.Option(help="Title on the board.  [from the policy]")] = "",
    model: Annotated[str, typer.Option(help="Present place of the weights, to hash them.  [the run's policy]")] = "",
    training: Annotated[str, typer.Option(help="Data the policy was trained on.")] = "not said",
    trained_on: Annotated[list[str] | None, typer.Option(help='Training split, "TASK SPLIT"; may be repeated.')] = None,
    tools: Annotated[str, typer.Option(help="Tools used beyond the task's actions.")] = "none",
    hidden_tries: Annotated[str, typer.Option(help="Further tries, from which these were chosen.")] = "none",
    humans: Annotated[str, typer.Option(help="Human involvement in the episodes.")] = "none",
    code: Annotated[str | None, typer.Option(help="https URL of the code.")] = None,
    paper: Annotated[str | None, typer.Option(help="https URL of the paper.")] = None,
    weights: Annotated[str | None, typer.Option(help="https URL of the weights.")] = None,
    leaderboard: Annotated[Path, typer.Option(help="Folder of the leaderboard.")] = Path("leaderboards"),
) -> None:
    """Make an entry of an evaluation: actions, rewards, observation digests and ids; no hosts or paths. CC0-1.0."""
    try:
        from lmgym.board import run_folder
        from lmgym.board import submit as board
        from lmgym.board.entry import Declaration, Links, episodes_path
    except ModuleNotFoundError as error:
        raise needs_extra(error) from error
    from lmgym.evaluation.policies import kind_of
    from lmgym.policy.select import model_of

    folder = run_folder.read(run)
    played = model or folder.policy
    weighed = kind_of(played) == "local" and model_of(played) == played
    path = board.submit(
        folder,
        leaderboard,
        policy=load_local(played) if weighed else None,
        name=name,
        title=title,
        authors=tuple(author),
        date=date.today().isoformat(),
        declared=Declaration(
            training=training,
            trained_on=tuple(trained_on or ()),
            tools=tools,
            hidden_tries=hidden_tries,
            humans=humans,
        ),
        links=Links(code=code, paper=paper, weights=weights),
    )
    show(f"wrote {path} and {episodes_path(path).name}\nnext:  lmgym verify {path}")
