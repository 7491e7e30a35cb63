"""`lmgym view`: shows recorded episodes in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from lmgym.errors import InstanceError

if TYPE_CHECKING:
    from lmgym.viewer.episode import Decode
    from lmgym.viewer.local_server import LocalServer

OUTCOMES = ("success", "failure", "truncated")


def view(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or files of episodes.")],
    export: Annotated[Path | None, typer.Option(help="Write one HTML file instead of serving.")] = None,
    task: Annotated[str | None, typer.Option(help="Show only tasks with this text in their id.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Show only this outcome: success, failure or truncated.")] = None,
    instance: Annotated[int | None, typer.Option(help="Show only this instance.")] = None,
    model: Annotated[str | None, typer.Option(help="Model whose tokenizer decodes tokens: tiny or hf:PATH.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Browse episodes turn by turn, with pictures, rewards and tokens, and two runs side by side."""
    from lmgym.viewer.export import export as write
    from lmgym.viewer.index import EpisodeFilter, open_runs
    from lmgym.viewer.server import Viewer

    if outcome not in (None, *OUTCOMES):
        raise InstanceError(f"unknown --outcome {outcome!r}; choose from {', '.join(OUTCOMES)}")
    choice = EpisodeFilter(task=task, outcome=outcome, instance=instance)
    opened = open_runs(runs)
    rows = [row for run in opened for row in run.rows if choice.has(row)]
    decode = None if model is None else decoder(model)
    console = Console(highlight=False, soft_wrap=True)
    if export is not None:
        write(export, opened, rows, decode=decode)
        console.print(Text(f"wrote {len(rows)} episodes to {export}"))
        return
    try:
        viewer = Viewer(opened, rows, host=host, port=port, decode=decode)
    except OSError as error:
        raise InstanceError(f"cannot listen on {host}, port {port}: {error.strerror}; try another --port") from error
    console.print(Text(f"{len(rows)} episodes at {viewer.url}"))
    serve(viewer, console, open_browser=browser)


def serve(site: LocalServer, console: Console, *, open_browser: bool) -> None:
    """Serve until Ctrl-C."""
    import webbrowser
    from ipaddress import ip_address

    if not ip_address(str(site.server_address[0])).is_loopback:
        console.print("Other machines can reach this address; only the access token in it protects the page.")
    console.print("Ctrl-C ends it.")
    if open_browser:
        webbrowser.open(site.url)
    try:
        site.serve_forever()
    except KeyboardInterrupt:
        console.print()
    finally:
        site.server_close()


def decoder(model: str) -> Decode:
    """Return a function that decodes a model's ids."""
    from lmgym.policy.load import load_local

    tokenizer = load_local(model).tokenizer

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids)))

    return decode
