"""`lmgym play`: a person in the policy's place, or watching one; tasks with pictures on a local page."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lmgym.cli.options import task_options
from lmgym.cli.view import serve
from lmgym.env.registry import build, find, load, options_of
from lmgym.errors import InstanceError


def play(
    task: Annotated[str, typer.Argument(help="Id or folder.")],
    split: Annotated[str, typer.Option(help="Split to draw from.")] = "test",
    index: Annotated[int | None, typer.Option(help="Instance of the split; drawn from the seed if not given.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Chance of the environment.")] = 0,
    player: Annotated[str, typer.Option(help="human, oracle or demonstrator.")] = "human",
    option: Annotated[list[str] | None, typer.Option(help="Option of the task, name=value; may be repeated.")] = None,
    page: Annotated[
        bool | None, typer.Option("--page/--terminal", help="Where to play; a page if there are pictures.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Play an episode by hand, or watch the oracle or the demonstrator.

    Tasks with pictures are played on a page of this machine, where a click on the picture is an action. Tasks that
    show pictures only where the option `pixels` asks for them do so here unless it is given.
    """
    if player not in ("human", "oracle", "demonstrator"):
        raise InstanceError(f"--player is human, oracle or demonstrator; got {player!r}")
    options = task_options(option or [])
    if page is not False and "pixels" in options_of(load(find(task))):
        options.setdefault("pixels", "screenshot")
    console = Console(soft_wrap=True, highlight=False)
    env = build(task, split=split, **options)
    if page or (page is None and "images" in env.observation_space.spaces):
        _on_page(env, console, player, seed, index, port=port, open_browser=browser)
        return
    try:
        _episode(env, console, player, seed, {} if index is None else {"index": index})
    finally:
        env.close()


def _on_page(
    env: Any, console: Console, player: str, seed: int, index: int | None, *, port: int, open_browser: bool
) -> None:
    from lmgym.viewer.play import PlayServer, PlaySession

    game = PlaySession(env, seed=seed, index=index, adviser=None if player == "human" else player)
    try:
        try:
            table = PlayServer(game, port=port)
        except OSError as error:
            raise InstanceError(f"cannot listen on port {port}: {error.strerror}; try another --port") from error
        console.print(Text(f"play at {table.url}"))
        serve(table, console, open_browser=open_browser)
    finally:
        game.close()


def _episode(env: Any, console: Console, player: str, seed: int, options: dict[str, Any]) -> None:
    observation, info = env.reset(seed=seed, options=options)
    console.print(f"[dim]{info['instance']}[/]")
    adviser = None if player == "human" else getattr(env.unwrapped, player)()
    total, ended = 0.0, False
    while not ended:
        console.print(observation["text"], markup=False)
        action = console.input("[bold]> [/]") if adviser is None else next(adviser)
        if adviser is not None:
            console.print(f"> {action}", style="bold", markup=False)
        observation, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        ended = terminated or truncated
    console.print(observation["text"], markup=False)
    ending = "ended" if terminated else "cut"
    console.print(f"[dim]{ending}: return {total:g}, score {info['score']:g}, success {info['success']}[/]")
