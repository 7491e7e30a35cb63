"""`lmgym play`: a person in the policy's place, or watching one."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from lmgym.cli.options import task_options
from lmgym.env.registry import build


def play(
    task: Annotated[str, typer.Argument(help="Id or folder.")],
    split: Annotated[str, typer.Option(help="Split to draw from.")] = "test",
    index: Annotated[int | None, typer.Option(help="Instance of the split; drawn from the seed if not given.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Chance of the environment.")] = 0,
    player: Annotated[str, typer.Option(help="human, oracle or demonstrator.")] = "human",
    option: Annotated[list[str] | None, typer.Option(help="Option of the task, name=value; may be repeated.")] = None,
) -> None:
    """Play an episode by hand, or watch the oracle or the demonstrator."""
    console = Console(soft_wrap=True, highlight=False)
    env = build(task, split=split, **task_options(option or []))
    try:
        _episode(env, console, player, seed, {} if index is None else {"index": index})
    finally:
        env.close()


def _episode(env: Any, console: Console, player: str, seed: int, options: dict[str, Any]) -> None:
    observation, info = env.reset(seed=seed, options=options)
    console.print(f"[dim]{info['instance']}[/]")
    adviser = None if player == "human" else _adviser(env, player)
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


def _adviser(env: Any, player: str) -> Any:
    if player not in ("oracle", "demonstrator"):
        raise typer.BadParameter(f"{player!r} is none of human, oracle, demonstrator")
    return getattr(env.unwrapped, player)()
