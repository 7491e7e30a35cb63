"""`lmgym play`: plays an episode by hand or shows a task's own player; tasks with pictures open on a local page."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lmgym.cli.options import task_options
from lmgym.cli.view import serve
from lmgym.env.registry import build, find, load, options_of
from lmgym.errors import InstanceError
from lmgym.visible import visible_lines


def play(
    task: Annotated[str, typer.Argument(help="Task id or folder.")],
    split: Annotated[str, typer.Option(help="Split to draw from.")] = "test",
    index: Annotated[int | None, typer.Option(help="Instance of the split; random by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environment.")] = 0,
    player: Annotated[str, typer.Option(help="Player: human, oracle or demonstrator.")] = "human",
    option: Annotated[list[str] | None, typer.Option(help="Task option, NAME=VALUE; repeatable.")] = None,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--terminal", help="Play on a page or in the terminal; default: a page if there are pictures."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Play an episode by hand, or watch the oracle or the demonstrator.

    Tasks with pictures are played on a local page, where a click on the picture is an action. Tasks whose pictures
    depend on the option `pixels` show them unless the option is given.
    """
    if player not in ("human", "oracle", "demonstrator"):
        raise InstanceError(f"unknown --player {player!r}; choose human, oracle or demonstrator")
    options = task_options(option)
    if page is not False and "pixels" in options_of(load(find(task))):
        options.setdefault("pixels", "screenshot")
    console = Console(soft_wrap=True, highlight=False)
    env = build(task, split=split, **options)
    if page or (page is None and "images" in env.observation_space.spaces):
        from lmgym.viewer.play import PlayServer, PlaySession

        with closing(PlaySession(env, seed=seed, index=index, adviser=None if player == "human" else player)) as game:
            try:
                table = PlayServer(game, port=port)
            except OSError as error:
                raise InstanceError(f"cannot listen on port {port}: {error.strerror}; try another --port") from error
            console.print(Text(f"play at {table.url}"))
            serve(table, console, open_browser=browser)
        return
    with closing(env):
        _episode(env, console, player, seed, {} if index is None else {"index": index})


def _episode(env: Any, console: Console, player: str, seed: int, options: dict[str, Any]) -> None:
    observation, info = env.reset(seed=seed, options=options)
    console.print(Text(visible_lines(str(info["instance"])), style="dim"))
    adviser = None if player == "human" else getattr(env.unwrapped, player)()
    total, ended = 0.0, False
    while not ended:
        console.print(Text(visible_lines(observation["text"])))
        action = console.input("[bold]> [/]") if adviser is None else next(adviser)
        if adviser is not None:
            console.print(Text(f"> {visible_lines(action)}", style="bold"))
        observation, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        ended = terminated or truncated
    console.print(Text(visible_lines(observation["text"])))
    ending = "ended" if terminated else "cut"
    console.print(f"[dim]{ending}: return {total:g}, score {info['score']:g}, success {info['success']}[/]")
