"""The command line: `lmgym list | play | train | eval | compare | power | view | replay | check | golden | ...`."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from lmgym import __version__
from lmgym.cli import (
    board,
    compare,
    curves,
    doctor,
    evaluate,
    play,
    record,
    replay,
    serve,
    submit,
    systems,
    tasks,
    tokenizer,
    train,
    verify,
    view,
)
from lmgym.errors import LmgymError
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.visible import visible


def print_version(value: bool) -> None:
    """Print the version and exit."""
    if value:
        Console().print(f"lmgym {__version__}", highlight=False)
        raise typer.Exit


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Gymnasium suite for multi-turn reinforcement learning with language models."""


app.command("list")(tasks.list_tasks)
app.command()(tasks.check)
app.command()(tasks.golden)
app.command()(tasks.new)
app.command()(doctor.doctor)
app.command()(play.play)
app.command(cls=train.TrainCommand, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    train.train
)
app.command("eval")(evaluate.evaluate)
app.command()(compare.compare)
app.command()(compare.power)
app.command()(replay.replay)
app.command()(view.view)
app.command()(serve.serve)
app.command()(record.record)
app.command()(curves.curves)
app.command()(systems.systems)
app.command()(submit.submit)
app.command()(verify.verify)
app.add_typer(board.app, name="board")
app.command()(tokenizer.tokenizer)


def main() -> None:
    """Run a command; an LmgymError or OSError becomes one line on standard error and exit code 2."""
    sys.excepthook = _without_keys
    try:
        app()
    except LmgymError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename or ''}")


def _fail(message: str) -> NoReturn:
    """Print an error and exit; escape sequences and keys in it, which servers or models may send, are not printed."""
    text = visible(Secrets.of_environment().struck(message))
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"lmgym: {text}", markup=False)
    sys.exit(2)


def _without_keys(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an unexpected error as Python does, without keys."""
    sys.stderr.write(Secrets.of_environment().struck("".join(traceback.format_exception(kind, error, trace))))
