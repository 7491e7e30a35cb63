"""TRL's GRPOTrainer on lmgym tasks, through its `environment_factory`.

    from lmgym.interop import trl as interop

    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=GRPOConfig(max_tool_calling_iterations=6, ...),
        train_dataset=Dataset.from_list(interop.rows("wordle", 64)),
        environment_factory=interop.factory("wordle"),
    )

Actions are calls of the tool `act`. For models without training on tool calls, `plain(tokenizer)` turns every answer
into one. TRL ends an episode when an answer calls no tool; the episode is then cut and scored by `score_if_cut`.
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
MOVES = (  # prepended to a chat template: tool calls become plain answers, and tool results become user messages
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
    """TRL's interface of an environment: `reset`, tools and `get_reward`."""

    def __init__(self, episode: TextEpisode, *, reward: Literal["score", "return"] = "score") -> None:
        self._episode = episode
        self._reward = reward

    def reset(self, *, index: int | None = None, seed: int | None = None, **row: Any) -> str:
        """Start the instance of a dataset row and return its first observation."""
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
        """Return the score or the sum of rewards. Raises a BackendError of the episode: TRL has no void episodes."""
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
    """Return a function that makes environments. `reward="return"` can favour silence where actions cost reward."""
    if reward not in ("score", "return"):
        raise InstanceError(f"reward must be 'score' or 'return'; got {reward!r}")
    return lambda: Environment(TextEpisode(task, split=split, max_turns=max_turns, **options), reward=reward)


def rows(
    task: str, count: int, *, split: str = "train", prompt: str = "", seed: int = 0, **options: Any
) -> list[dict[str, Any]]:
    """Return dataset rows for `count` instances; TRL repeats each row `num_generations` times to form a group.

    The first observation follows `prompt` in the user's message.
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
    """Change and return the tokenizer so that every answer is an action, for models without training on tool calls.

    `begin` and `end` are the texts that the chat template writes around an answer. The trainer then sees the same
    conversation of user and assistant as lmgym's own engine.
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
