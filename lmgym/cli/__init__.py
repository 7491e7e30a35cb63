"""The command line: `lmgym list | play | train | eval | compare | power | view | replay | check | golden | ...`."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import NoReturn

import typer
from rich.console import Console

from lmgym.cli import (
    board,
    compare,
    curves,
    evaluate,
    play,
    record,
    replay,
    serve,
    submit,
    tasks,
    tokenizer,
    train,
    verify,
    view,
)
from lmgym.errors import LmgymError
from lmgym.policy.endpoints.secrets import Secrets

app = typer.Typer(
    help="Gymnasium suite for multi-turn reinforcement learning with language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(tasks.list_tasks)
app.command()(tasks.check)
app.command()(tasks.golden)
app.command()(tasks.new)
app.command()(play.play)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(train.train)
app.command("eval")(evaluate.evaluate)
app.command()(compare.compare)
app.command()(compare.power)
app.command()(replay.replay)
app.command()(view.view)
app.command()(serve.serve)
app.command()(record.record)
app.command()(curves.curves)
app.command()(submit.submit)
app.command()(verify.verify)
app.add_typer(board.app, name="board")
app.command()(tokenizer.tokenizer)


def main() -> None:
    """Run a command; what goes wrong on purpose is one line on standard error and exit code 2."""
    sys.excepthook = _without_keys
    try:
        app()
    except LmgymError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename or ''}")


def _fail(words: str) -> NoReturn:
    """End with a line; what a server, a model or a file put into it is text, and commands no terminal."""
    from lmgym.evaluation.pages import visible

    shown = visible(Secrets.of_environment().struck(words))
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"lmgym: {shown}", markup=False)
    sys.exit(2)


def _without_keys(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show what nobody foresaw as Python does, but for keys."""
    sys.stderr.write(Secrets.of_environment().struck("".join(traceback.format_exception(kind, error, trace))))
