"""Data sets of LMRL-Gym as episodes: what its scripts write, by the shapes that its training scripts read.

| layout | tasks | shape of an episode |
|---|---|---|
| `sequence` | Wordle, Twenty Questions | texts as [text, is_action]; `reward` of each but the first; `done` |
| `text_history` | Text-Nav, maze (partly observed) | texts in turns; `rewards`, `dones` of each action or each text |
| steps | maze (fully observed) | a list of `state`, `action`, `reward`, `done` |
| questions | Twenty Questions, Guess My City | `lines` of "Question? Answer", `correct`, `word` |
| sale | Car Dealer | `lines` of `role` and `text`, `buyer_info`, `output` where it came to one |

An episode stands on a line; a file `.json` holds a list of them, or lists by name as Car Dealer's by personality. Its
chess (a step a line, or arrays) and its pairs of `in_text` and `out_text`, which have no rewards, are not read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from lmgym.errors import InstanceError
from lmgym.types import Completion, Message, Trajectory, Turn

Text = tuple[str, bool, float]  # what it says, whether it is an action, what that earned

QUESTIONS = 20  # after which a game of questions is over
SELLER, BUYER = ("Seller", "Dealer"), "Buyer"  # the seller, whose part is learnt, by the names of two versions


def episode(content: Any, name: str, number: int) -> Trajectory:
    """The episode that stands as `content` at place `number` of the file `name`, counted from 0.

    Nobody here played it: what it scored is not known, its return is. Conversations about the same word, or with the
    same buyer, are tries of one task. Raises InstanceError for what has none of the layouts.
    """
    try:
        texts, done = _read(content)
        if not any(is_action for _, is_action, _ in texts):
            raise ValueError("there is no action")
        return _trajectory(texts, done, _instance(content), name, number)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        place = f"{name}, line {number + 1}" if not name.endswith(".json") else f"{name}, item {number + 1}"
        raise InstanceError(f"{place} is no episode of ours or LMRL-Gym's: {error!r}") from error


def items(content: Any, name: str) -> Iterator[Trajectory]:
    """The episodes of a file that is one JSON value: a list, or lists by name."""
    lists = list(content.values()) if isinstance(content, Mapping) else [content]
    if not all(isinstance(each, list) for each in lists):
        raise InstanceError(f"{name} is no list of LMRL-Gym's episodes, and no lists by name")
    found = (each for one in lists for each in one)
    for number, each in enumerate(found):
        yield episode(each, name, number)


def _read(content: Any) -> tuple[list[Text], bool]:
    """The texts of an episode in any of the layouts, and whether it came to its end."""
    if isinstance(content, list):
        steps = [[(step["state"], False, 0.0), (step["action"], True, step["reward"])] for step in content]
        return [text for step in steps for text in step], bool(content[-1]["done"])
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


def _rewarded(texts: Sequence[tuple[str, bool]], rewards: Sequence[float]) -> list[Text]:
    """Texts with a reward each; one on a text that is no action is an error, as it is there."""
    found = [(text, is_action, reward) for (text, is_action), reward in zip(texts, rewards, strict=True)]
    lost = next((reward for _, is_action, reward in found if reward and not is_action), None)
    if lost is not None:
        raise ValueError(f"a reward of {lost} on a text that is no action")
    return found


def _questions(content: Mapping[str, Any]) -> tuple[list[Text], bool]:
    """-1 a question, 0 for the one that was right; cut where it ended before the last question without that."""
    texts: list[Text] = [("Questions:\n", False, 0.0)]
    lines, correct = content["lines"], bool(content["correct"])
    for number, line in enumerate(lines, start=1):
        question, mark, answer = line.rpartition("? ")
        if not mark:
            raise ValueError(f"no question and answer: {line!r}")
        texts += [
            (f"{question}?\n", True, 0.0 if correct and number == len(lines) else -1.0),
            (f"{answer}\n", False, 0.0),
        ]
    return texts, correct or len(lines) >= QUESTIONS


def _sale(content: Mapping[str, Any]) -> tuple[list[Text], bool]:
    """The seller's part: what follows each other of it is one action, the last of which earns what came of the sale."""
    said = [(line["role"], line["text"].rstrip("\n")) for line in content["lines"]]
    for role, _ in said:
        if role not in (*SELLER, BUYER):
            raise ValueError(f"{role!r} neither sells nor buys")
    texts: list[Text] = [("Start\n", False, 0.0)]
    for sells, lines in groupby(said, key=lambda line: line[0] in SELLER):
        spoken = [text for _, text in lines]
        texts += [(" ".join(spoken) + "\n", True, 0.0)] if sells else [(f"{text}\n", False, 0.0) for text in spoken]
    if "output" not in content:
        return texts, False
    last = max(place for place, (_, is_action, _) in enumerate(texts) if is_action)
    texts[last] = (texts[last][0], True, _earned(content["buyer_info"]["budget"], content["output"]))
    return texts, True


def _earned(budget: float, output: Mapping[str, Any]) -> float:
    """Sold, the price by the mean of budget and list price; unsold, list price less budget, by the list price."""
    listed = float(output["msrp"])
    if not listed:
        return 0.0
    if output["car_bought"]:
        return float(output.get("buy_price") or 0.0) / (0.5 * (budget + listed))
    return (listed - budget) / listed


def _instance(content: Any) -> dict[str, Any] | None:
    """What a conversation is about; None where the layout does not tell."""
    known = {} if isinstance(content, list) else content
    return {key: known[key] for key in ("word", "buyer_info") if key in known} or None


def _trajectory(
    texts: Iterable[Text], done: bool, instance: dict[str, Any] | None, name: str, number: int
) -> Trajectory:
    """Join what stands between two actions."""
    turns: list[Turn] = []
    shown: list[str] = []
    for text, is_action, reward in texts:
        if not isinstance(text, str):
            raise TypeError(f"no text: {text!r}")
        if is_action:
            turns.append(_turn("".join(shown), text, float(reward)))
            shown = []
        else:
            shown.append(text)
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
        final=Message(role="user", text="".join(shown)) if shown else None,
        terminated=done,
        truncated=not done,
        stop="done" if done else "recorded",
    )


def _turn(shown: str, action: str, reward: float) -> Turn:
    return Turn(
        observation=Message(role="user", text=shown),
        completion=Completion(text=action),
        action=action,
        reward=reward,
        terms={"reward": reward},
        kind="given",
    )
