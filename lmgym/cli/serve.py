"""`lmgym serve`: serves environments to clients on the network."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lmgym import hosts
from lmgym.cli.options import task_options, with_options
from lmgym.errors import InstanceError, MissingExtra
from lmgym.serve.clients import VARIABLE, Limits, tokens_of

Words = list[str] | None
Opt = typer.Option


@with_options(Limits)
def serve(  # one line an option
    limits: Limits,
    *,
    tasks: Annotated[
        Words, typer.Argument(help="Task ids or folders; default: all that run no code of a client.")
    ] = None,
    host: Annotated[str, Opt(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Opt(min=0, max=65535, help="Port; 0 takes a free one.")] = 8700,
    expose: Annotated[bool, Opt("--expose", help="Allow an address that other machines can reach.")] = False,
    name: Annotated[Words, Opt(help="Host name or address that clients connect to; repeatable.")] = None,
    origin: Annotated[Words, Opt(help="Origin whose pages may call the server; repeatable.")] = None,
    option: Annotated[Words, Opt(help="Option of a single task, NAME=VALUE, for every session; repeatable.")] = None,
    reveal: Annotated[
        Words, Opt(help="Reveal to clients: answer, admissible, oracle, demonstrator, seats, instances.")
    ] = None,
    processes: Annotated[int | None, Opt(min=1, help="Worker processes; default: number of cores.")] = None,
) -> None:
    """Serve environments by HTTP and WebSocket; the access token is LMGYM_SERVE_TOKEN, else a random one."""
    if not (hosts.is_loopback(host) or expose):
        raise InstanceError(
            f"--host {host} is reachable from other machines: add --expose, and see docs/how-to/serving.md"
        )
    try:
        from lmgym.serve.catalogue import Catalogue
        from lmgym.serve.server import Serving
    except ModuleNotFoundError as error:
        raise MissingExtra(f"serving needs {error.name}: pip install 'lmgym[serve]'") from error
    catalogue = Catalogue.of(tasks or (), options=task_options(option), reveals=reveal or ())
    tokens, made = tokens_of(os.environ)
    os.environ.pop(VARIABLE, None)  # not passed on to processes of tasks
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
    console, count = Console(highlight=False, soft_wrap=True), len(catalogue.specs)
    console.print(Text(f"serving {count} task{'s' * (count > 1)} at {serving.url}"))
    if made:
        console.print(Text(f"token {tokens[0]}"))
    if not hosts.is_loopback(host):
        console.print("Other machines can reach this address, and its traffic is not encrypted.")
    console.print("Ctrl-C ends it.")
    serving.run()
