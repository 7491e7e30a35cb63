"""TRL's GRPOTrainer on tasks of lmgym, through its `environment_factory`.

    from lmgym.interop import trl as interop

    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=GRPOConfig(max_tool_calling_iterations=6, ...),
        train_dataset=Dataset.from_list(interop.rows("wordle", 64)),
        environment_factory=interop.factory("wordle"),
    )

Actions are calls of the tool `act`. A model without tool calls plays after `plain(tokenizer)`, by which every answer
is one. TRL ends an episode when an answer calls no tool; it is then cut and scored by the task's `score_if_cut`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmgym.errors import InstanceError
from lmgym.evaluation.runner import size_of, try_seed
from lmgym.interop.episode import TextEpisode

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOOL = "act"
MOVES = (  # goes before a chat template: calls of the tool become plain answers, its results the user's words
    "{%- set ns = namespace(plain=[]) -%}{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}"
    "{%- set ns.plain = ns.plain + [{'role': 'user', 'content': message.content}] -%}"
    "{%- elif message.tool_calls and message.tool_calls[0].function.name == '" + TOOL + "' -%}"
    "{%- set said = message.tool_calls[0].function.arguments.action | default('') -%}"
    "{%- set ns.plain = ns.plain + [{'role': 'assistant', 'content': said}] -%}"
    "{%- elif message.tool_calls -%}"
    "{%- set ns.plain = ns.plain + [{'role': 'assistant', 'content': message.tool_calls | tojson}] -%}"
    "{%- else -%}{%- set ns.plain = ns.plain + [message] -%}{%- endif -%}{%- endfor -%}"
    "{%- set messages = ns.plain -%}"
)


class Environment:
    """What TRL wants of an environment: `reset`, tools, and `get_reward`."""

    def __init__(self, episode: TextEpisode, *, reward: Literal["score", "return"] = "score") -> None:
        self._episode = episode
        self._reward = reward

    def reset(self, *, index: int | None = None, seed: int | None = None, **row: Any) -> str:
        """Open the instance of a row of the data and return its first words."""
        return self._episode.begin(index=index, seed=seed)

    def act(self, action: str) -> str:
        """Take one action in the task.

        Args:
            action: The action, in the words that the task asks for.

        Returns:
            What the task answers.
        """
        return self._episode.act(action)

    def get_reward(self) -> float:
        """The score of the episode, or the sum of its rewards. Raises what broke it: TRL has no void episodes."""
        outcome = self._episode.end()
        return outcome.score if self._reward == "score" else outcome.reward


def factory(
    task: str,
    *,
    split: str = "train",
    max_turns: int | None = None,
    reward: Literal["score", "return"] = "score",
    **options: Any,
) -> Callable[[], Environment]:
    """Makes environments of a task. With `reward="return"` an early end may pay: actions can cost, silence cannot."""
    if reward not in ("score", "return"):
        raise InstanceError(f"reward={reward!r}: an environment for TRL takes 'score' or 'return'")

    def make() -> Environment:
        return Environment(TextEpisode(task, split=split, max_turns=max_turns, **options), reward=reward)

    return make


def rows(
    task: str, count: int, *, split: str = "train", prompt: str = "", seed: int = 0, **options: Any
) -> list[dict[str, Any]]:
    """Rows of data that name `count` instances; TRL repeats each `num_generations` times, which makes the groups.

    The task's first words follow `prompt` in the user's message.
    """
    size = size_of(task, split, options)
    order = np.random.default_rng([seed, size]).permutation(size)
    return [
        {
            "prompt": [{"role": "user", "content": prompt}],
            "index": index,
            "seed": try_seed(task, split, index, 0, seed=seed),
        }
        for index in map(int, order[np.arange(count) % size])
    ]


def plain(
    tokenizer: PreTrainedTokenizerBase, *, begin: str = "<|im_start|>assistant\n", end: str = "<|im_end|>"
) -> PreTrainedTokenizerBase:
    """The tokenizer, changed so that every answer is an action: for models that were not taught to call tools.

    `begin` and `end` are what its chat template writes around an answer. What goes through the trainer is then the
    same conversation of user and assistant that lmgym's own engine holds.
    """
    tokenizer.chat_template = MOVES + str(tokenizer.chat_template)
    call = {"type": "function", "function": {"name": TOOL, "arguments": {"action": "{content}"}}}
    words = {"content": "text", "content_args": {"strip": False}, "close": end, "repeats": True, "transform": call}
    tokenizer.response_template = {
        "defaults": {"role": "assistant"},
        "start_anchor": begin,
        "fields": {"tool_calls": words},
    }
    return tokenizer
