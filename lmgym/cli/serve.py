"""`lmgym serve`: serves environments to clients on the network."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lmgym import hosts
from lmgym.cli.options import task_options
from lmgym.errors import InstanceError, MissingExtra

Words = list[str] | None
Opt = typer.Option
LIMITS = "Limits"


def serve(  # one line an option
    tasks: Annotated[Words, typer.Argument(help="Ids or folders; none: all that run nothing of a client's.")] = None,
    host: Annotated[str, Opt(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Opt(min=0, max=65535, help="Port; 0 takes a free one.")] = 8700,
    expose: Annotated[bool, Opt("--expose", help="Allow an address that other machines reach.")] = False,
    name: Annotated[Words, Opt(help="Host that a proxy in front of it sends; may be repeated.")] = None,
    origin: Annotated[Words, Opt(help="Origin whose pages may ask; may be repeated.")] = None,
    option: Annotated[Words, Opt(help="Option of the one task, name=value, for every session.")] = None,
    reveal: Annotated[
        Words, Opt(help="Tell clients: answer, admissible, oracle, demonstrator, seats, instances.")
    ] = None,
    processes: Annotated[int | None, Opt(min=1, help="Processes for tasks that need one; default: cores.")] = None,
    sessions: Annotated[int, Opt(min=1, help="Sessions at once.", rich_help_panel=LIMITS)] = 256,
    sessions_per_client: Annotated[int, Opt(min=1, help="Of one token.", rich_help_panel=LIMITS)] = 128,
    rate: Annotated[float, Opt(min=1, help="Calls a second of a token.", rich_help_panel=LIMITS)] = 50_000,
    idle: Annotated[float, Opt(min=1, help="Seconds until an idle session ends.", rich_help_panel=LIMITS)] = 900,
    call: Annotated[float, Opt(min=0.1, help="Seconds of one call.", rich_help_panel=LIMITS)] = 120,
    slow: Annotated[float, Opt(min=0.1, help="Seconds to send or take a message.", rich_help_panel=LIMITS)] = 30,
    message: Annotated[int, Opt(min=1024, help="Bytes of a message.", rich_help_panel=LIMITS)] = 8 << 20,
) -> None:
    """Serve environments by HTTP and WebSocket; the token comes from LMGYM_SERVE_TOKEN, or is made."""
    if not (hosts.is_loopback(host) or expose):
        raise InstanceError(f"--host {host} is reached by other machines: say --expose, and see docs/how-to/serving.md")
    try:
        from lmgym.serve.catalogue import Catalogue
        from lmgym.serve.clients import VARIABLE, Limits, tokens_of
        from lmgym.serve.server import Serving
    except ModuleNotFoundError as error:
        raise MissingExtra(f"serving needs {error.name}: pip install 'lmgym[serve]'") from error
    catalogue = Catalogue.of(tasks or (), options=task_options(option or []), reveals=reveal or ())
    limits = Limits(
        sessions=sessions,
        sessions_per_client=sessions_per_client,
        rate=rate,
        idle=idle,
        call=call,
        slow=slow,
        message=message,
    )
    tokens, made = tokens_of(os.environ)
    os.environ.pop(VARIABLE, None)  # what a task starts need not know it
    serving = Serving(
        catalogue,
        tokens,
        limits=limits,
        host=host,
        port=port,
        names=name or (),
        origins=origin or (),
        processes=processes,
    )
    _announce(serving.url, len(catalogue.specs), token=tokens[0] if made else None, local=hosts.is_loopback(host))
    serving.run()


def _announce(url: str, count: int, *, token: str | None, local: bool) -> None:
    """Say where it is, and what to know."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"serving {count} task{'s' * (count > 1)} at {url}"))
    if token is not None:
        console.print(Text(f"token {token}"))
    if not local:
        console.print("Others on the network reach this address, and what is said there can be overheard.")
    console.print("Ctrl-C ends it.")
