"""`lmgym tokenizer`: trains the tokenizer of `tiny` on the tasks' own text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from lmgym.env.registry import build, specs
from lmgym.env.spec import TaskSpec


def tokenizer(
    vocab: Annotated[int, typer.Option(help="Tokens at most, the 256 bytes and the specials included.")] = 2048,
    episodes: Annotated[int, typer.Option(help="Of the demonstrator, by task folder.")] = 2000,
) -> None:
    """Train the tokenizer of `tiny` on demonstrated episodes of every task and commit it to its JSON file."""
    from lmgym.policy.tokenizer_train import PATH, train

    trained = train(texts(episodes), vocab=vocab)
    trained.save(str(PATH))
    Console().print(f"wrote {PATH}: {trained.get_vocab_size()} tokens")


def texts(episodes: int) -> Iterator[str]:
    """Yield the texts of demonstrated episodes, the ids of a folder sharing its `episodes`.

    Games that must be compiled one by one, which come from processes, give a tenth of that.
    """
    procedural = [spec for spec in specs().values() if all(spec.splits.values()) and not spec.part_of]
    for spec in procedural:
        siblings = sum(other.name == spec.name for other in procedural)
        share = episodes // siblings // (1 if spec.player == "inline" else 10)
        yield from _of_task(spec, max(1, share))


def _of_task(spec: TaskSpec, episodes: int) -> Iterator[str]:
    env = build(spec.id)
    size = env.unwrapped.size()
    for index in range(episodes):
        observation, _ = env.reset(seed=index, options={"index": index % size})
        yield observation["text"]
        for action in env.unwrapped.demonstrator():
            yield action
            observation, _, terminated, truncated, _ = env.step(action)
            yield observation["text"]
            if terminated or truncated:
                break
    env.close()
