"""`lmgym tokenizer`: trains a tokenizer of `tiny` on the text of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lmgym.env.registry import build, find, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import PolicyError
from lmgym.rollout import dataset


def tokenizer(
    task: Annotated[
        list[str] | None, typer.Option(help="Task whose text is used, all by default; repeatable, needs --words.")
    ] = None,
    words: Annotated[str, typer.Option(help="Name of the tokenizer, which the model tiny?words=NAME uses.")] = "tiny",
    vocab: Annotated[int, typer.Option(help="Maximum tokens, including the 256 bytes and special tokens.")] = 2048,
    episodes: Annotated[int, typer.Option(help="Demonstrated episodes per task folder.")] = 2000,
    recorded: Annotated[
        Path | None, typer.Option(help="Recorded episodes, as `lmgym record` writes them, instead of --task.")
    ] = None,
) -> None:
    """Train a tokenizer on demonstrated or recorded episodes and write its JSON file."""
    from lmgym.policy.models.tokenizer_train import FOLDER, train

    if bool(task or recorded) == (words == "tiny"):
        raise PolicyError(
            "the tokenizer tiny is trained on all tasks: use --words with --task or --recorded, or none of them"
        )
    if recorded is not None:
        lines = recorded_texts(recorded)
    else:
        lines = texts([find(name) for name in task] if task else list(specs().values()), episodes)
    path = FOLDER / f"{words}.json"
    trained = train(lines, vocab=vocab)
    trained.save(str(path))
    Console().print(f"wrote {path}: {trained.get_vocab_size()} tokens")


def recorded_texts(path: Path) -> Iterator[str]:
    """Yield the observations and actions of recorded episodes."""
    for episode in dataset.read(path):
        for turn in episode.turns:
            yield turn.observation.text
            yield turn.action or ""
        if episode.final is not None:
            yield episode.final.text


def texts(chosen: Sequence[TaskSpec], episodes: int) -> Iterator[str]:
    """Yield the texts of demonstrated training episodes; the ids of a folder share its `episodes`.

    Tasks that run in processes, whose games are compiled one by one, give a tenth of that.
    """
    procedural = [spec for spec in chosen if all(spec.splits.values()) and not spec.part_of]
    for spec in procedural:
        siblings = sum(other.name == spec.name for other in procedural)
        share = episodes // siblings // (1 if spec.player == "inline" else 10)
        with closing(build(spec.id)) as env:
            size = env.unwrapped.size()
            for index in range(max(1, share)):
                observation, _ = env.reset(seed=index, options={"index": index % size})
                yield observation["text"]
                for action in env.unwrapped.demonstrator():
                    yield action
                    observation, _, terminated, truncated, _ = env.step(action)
                    yield observation["text"]
                    if terminated or truncated:
                        break
