"""Data sets of LMRL-Gym as episodes, in the layouts that its scripts write and its training reads.

| layout | tasks | shape of an episode |
|---|---|---|
| `sequence` | Wordle, Twenty Questions | texts as [text, is_action]; `reward` of each but the first; `done` |
| `text_history` | Text-Nav, maze (partly observed) | texts in turns; `rewards`, `dones` of each action or each text |
| steps | maze (fully observed), chess, endgames | a list of `state`, `action`, `reward`, `done` |
| moves | chess (`train.jsonl`) | a step a line: `from_state`, `action`, `reward`, `done` |
| questions | Twenty Questions, Guess My City | `lines` of "Question? Answer", `correct`, `word` |
| sale | Car Dealer | `lines` of `role` and `text`, `buyer_info`, `output` where it came to one |

A line holds one episode; a `.json` file holds a list of them, or lists by name (Car Dealer's by personality). Moves of
chess are an episode up to a line that is done or blank, and 200 of them at most, spaced letter by letter as the release
reads them. Chess as arrays, and pairs of `in_text` and `out_text`, which have no rewards, are not supported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from lmgym.errors import InstanceError
from lmgym.types import Completion, Message, Trajectory, Turn

Text = tuple[str, bool, float]  # text, whether it is an action, its reward

QUESTIONS = 20  # of a game
MOVES = 200  # of a game of chess; the rest is another episode, as in the release
SELLER, BUYER = ("Seller", "Dealer"), "Buyer"  # the seller, whose part is learnt, has two names


def episode(content: Any, name: str, number: int) -> Trajectory:
    """Return the episode with JSON `content` at position `number`, from 0, of the file `name`.

    Its return is known, its score is not. Conversations about the same word, or with the same buyer, are tries of one
    instance. Raises InstanceError for other layouts.
    """
    try:
        texts, done = _read(content)
        if not any(is_action for _, is_action, _ in texts):
            raise ValueError("there is no action")
        fields = {} if isinstance(content, list) else content
        instance = {key: fields[key] for key in ("word", "buyer_info") if key in fields} or None
        return _trajectory(texts, done, instance, name, number)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        place = f"{name}, line {number + 1}" if not name.endswith(".json") else f"{name}, item {number + 1}"
        raise InstanceError(f"{place} is not an episode of lmgym or LMRL-Gym: {error!r}") from error


def lines(contents: Iterable[tuple[int, Any]], name: str) -> Iterator[Trajectory]:
    """Yield the episodes of a file of JSON lines, given as numbers and contents; None for a blank line."""
    moves: list[Any] = []  # of a game of chess
    first = 0
    for number, content in contents:
        if isinstance(content, Mapping) and "from_state" in content:
            first = first if moves else number
            moves.append(content)
        elif content is not None:
            yield episode(content, name, number)
        if moves and (content is None or content.get("done") or len(moves) == MOVES):
            yield episode(moves, name, first)
            moves = []
    if moves:
        yield episode(moves, name, first)


def items(content: Any, name: str) -> Iterator[Trajectory]:
    """Yield the episodes of a JSON value: a list, or lists by name."""
    lists = list(content.values()) if isinstance(content, Mapping) else [content]
    if not all(isinstance(each, list) for each in lists):
        raise InstanceError(f"{name} must hold a list of LMRL-Gym's episodes, or lists by name")
    for number, each in enumerate(each for one in lists for each in one):
        yield episode(each, name, number)


def _read(content: Any) -> tuple[list[Text], bool]:
    """Return the texts of an episode in any layout, and True if it ended."""
    if isinstance(content, list):
        steps = [text for step in content for text in _step(step)]
        return steps, bool(content[-1]["done"])
    if "sequence" in content:
        texts = [(text, bool(is_action)) for text, is_action in content["sequence"]]
        return _rewarded(texts, [0.0, *content["reward"]]), bool(content["done"])
    if "text_history" in content:
        texts = [(text, place % 2 == 1) for place, text in enumerate(content["text_history"])]
        rewards = content["rewards"]
        if len(rewards) == len(texts) // 2:  # of the actions
            rewards = [rewards[place // 2] if is_action else 0.0 for place, (_, is_action) in enumerate(texts)]
        return _rewarded(texts, rewards), bool(content["dones"][-1])
    return _sale(content) if "buyer_info" in content else _questions(content)


def _step(step: Mapping[str, Any]) -> list[Text]:
    """Return what a step tells and its action; a position and a move of chess are spaced letter by letter."""
    if "from_state" in step:
        state, action = " ".join(step["from_state"]), " ".join(step["action"]) + "\n"
    else:
        state, action = step["state"], step["action"]
    return [(state, False, 0.0), (action, True, step["reward"])]


def _rewarded(texts: Sequence[tuple[str, bool]], rewards: Sequence[float]) -> list[Text]:
    """Return texts with their rewards; as in LMRL-Gym, only actions may have one."""
    rewarded = [(text, is_action, reward) for (text, is_action), reward in zip(texts, rewards, strict=True)]
    stray = next((reward for _, is_action, reward in rewarded if reward and not is_action), None)
    if stray is not None:
        raise ValueError(f"reward {stray} on a text that is not an action")
    return rewarded


def _questions(content: Mapping[str, Any]) -> tuple[list[Text], bool]:
    """Return a game of questions: -1 each, 0 for the right one; truncated if it ended early without that."""
    texts: list[Text] = [("Questions:\n", False, 0.0)]
    lines, correct = content["lines"], bool(content["correct"])
    for number, line in enumerate(lines, start=1):
        question, mark, answer = line.rpartition("? ")
        if not mark:
            raise ValueError(f"not a question and an answer: {line!r}")
        texts += [
            (f"{question}?\n", True, 0.0 if correct and number == len(lines) else -1.0),
            (f"{answer}\n", False, 0.0),
        ]
    return texts, correct or len(lines) >= QUESTIONS


def _sale(content: Mapping[str, Any]) -> tuple[list[Text], bool]:
    """Return the seller's part: consecutive lines are one action, and the last action earns the sale.

    A sale earns price / mean(budget, list price), no sale (list price - budget) / list price.
    """
    spoken = [(line["role"], line["text"].rstrip("\n")) for line in content["lines"]]
    for role, _ in spoken:
        if role not in (*SELLER, BUYER):
            raise ValueError(f"unknown role {role!r}; choose from {', '.join((*SELLER, BUYER))}")
    texts: list[Text] = [("Start\n", False, 0.0)]
    for sells, lines in groupby(spoken, key=lambda line: line[0] in SELLER):
        words = [text for _, text in lines]
        texts += [(" ".join(words) + "\n", True, 0.0)] if sells else [(f"{text}\n", False, 0.0) for text in words]
    if "output" not in content:
        return texts, False
    last = max(place for place, (_, is_action, _) in enumerate(texts) if is_action)
    output, budget = content["output"], content["buyer_info"]["budget"]
    reward, listed = 0.0, float(output["msrp"])
    if listed and output["car_bought"]:
        reward = float(output.get("buy_price") or 0.0) / (0.5 * (budget + listed))
    elif listed:
        reward = (listed - budget) / listed
    texts[last] = (texts[last][0], True, reward)
    return texts, True


def _trajectory(
    texts: Iterable[Text], done: bool, instance: dict[str, Any] | None, name: str, number: int
) -> Trajectory:
    """Return the trajectory; texts between two actions are one observation."""
    turns: list[Turn] = []
    observation: list[str] = []
    for text, is_action, reward in texts:
        if not isinstance(text, str):
            raise TypeError(f"not a text: {text!r}")
        if is_action:
            turn = Turn(
                observation=Message(role="user", text="".join(observation)),
                completion=Completion(text=text),
                action=text,
                reward=float(reward),
                terms={"reward": float(reward)},
                kind="given",
            )
            turns.append(turn)
            observation = []
        else:
            observation.append(text)
    identity = f"{name}:{number}"
    return Trajectory(
        id=identity,
        root=identity,
        task="lmrl",
        split="train",
        index=number if instance is None else None,
        instance=instance,
        group=identity if instance is None else json.dumps(instance, sort_keys=True),
        turns=tuple(turns),
        info={"score": math.nan, "success": False, "unknown": True},
        final=Message(role="user", text="".join(observation)) if observation else None,
        terminated=done,
        truncated=not done,
        stop="done" if done else "recorded",
    )
