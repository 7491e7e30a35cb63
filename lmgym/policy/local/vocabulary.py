"""Words to ids and back, with control tokens only where the chat template wrote them.

Outside words are guarded: a mark is put between the characters of every control token they spell, the template is
rendered, control tokens are found by their exact names, and the rest is encoded, marks removed, by a copy of the
tokenizer that knows no added tokens. A guarded name can therefore never become a control id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lmgym.errors import PolicyError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MARKS = [chr(code) for code in range(0xE000, 0xF8FF)]  # private use: no language has words with them


class Vocabulary:
    """The two ways to encode that a chat needs: guarded words, and a rendered template."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Takes a tokenizer with a `tokenizer.json`; raises PolicyError for a slow one."""
        if not getattr(tokenizer, "is_fast", False):
            raise PolicyError(f"{tokenizer.name_or_path or 'The tokenizer'} has no tokenizer.json (fast tokenizer)")
        self._backend = tokenizer.backend_tokenizer
        self._plain = _without_added(self._backend)
        added = tokenizer.added_tokens_decoder
        self.control = {token.content: i for i, token in added.items() if len(token.content.strip()) > 1}
        self._special = {token.content for token in added.values() if token.special}
        self._any = _either(self.control)
        self._reserved = _either(name for name in self.control if name in self._special)
        self._written = _either_stripped(token for token in added.values() if token.content in self.control)

    def mark(self, texts: Sequence[str]) -> str:
        """A character that stands in none of `texts`."""
        return next(mark for mark in MARKS if not any(mark in text for text in texts))

    def guard(self, text: str, mark: str, *, own: bool) -> str:
        """`text` with no control token in it; the policy's `own` words keep what is not special, like <think>."""
        pattern = self._reserved if own else self._any
        return pattern.sub(lambda found: mark.join(found[0]), text)

    def rendered(self, text: str, mark: str) -> list[int]:
        """Ids of rendered, guarded `text`: names of control tokens become their ids."""
        ids: list[int] = []
        start = 0
        for found in self._written.finditer(text):
            ids += self.words(text[start : found.start()].replace(mark, ""))
            ids.append(self.control[found[0] if found[0] in self.control else found[0].strip()])
            start = found.end()
        return ids + self.words(text[start:].replace(mark, ""))

    def words(self, text: str) -> list[int]:
        """Ids of `text` as words: no control token whatever it spells."""
        if not text:
            return []
        ids: list[int] = self._plain.encode(_clean(text), add_special_tokens=False).ids
        if self._any.search(text) and not self.control_ids.isdisjoint(ids):  # a model that knows the name as a word
            cut = self._any.search(text).start() + 1  # type: ignore[union-attr]
            return self.words(text[:cut]) + self.words(text[cut:])
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """The words of `ids`; special tokens are left out."""
        return str(self._backend.decode(list(ids), skip_special_tokens=True))

    def name(self, token: int) -> str:
        """How a token is written."""
        return str(self._backend.id_to_token(token))

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that no outside word may become."""
        return frozenset(self.control.values())


def _clean(text: str) -> str:
    """`text` without lone surrogates, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _without_added(backend: Any) -> Any:
    """A copy that matches no added token and puts no space before a text."""
    from tokenizers import Tokenizer

    spec = json.loads(backend.to_str())
    spec |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    return Tokenizer.from_str(json.dumps(_without_prefix(spec)))


def _without_prefix(part: Any) -> Any:
    """A tokenizer's specification in which nothing puts a space before a text."""
    if isinstance(part, list):
        return [_without_prefix(x) for x in part if not (isinstance(x, dict) and x.get("type") == "Prepend")]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "Prepend":
        return None
    never = {"prepend_scheme": "never", "add_prefix_space": False}
    return {
        key: never[key] if key in never else value if key in ("vocab", "merges") else _without_prefix(value)
        for key, value in part.items()
    }


def _either(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of `names`, longest first; one that never matches where there are none."""
    ordered = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")


def _either_stripped(tokens: Iterable[Any]) -> re.Pattern[str]:
    """The same for added tokens, with the white space that they swallow."""
    ordered = sorted(tokens, key=lambda token: len(token.content), reverse=True)
    left, right = {True: r"\s*", False: ""}, {True: r"\s*", False: ""}
    names = [left[token.lstrip] + re.escape(token.content) + right[token.rstrip] for token in ordered]
    return re.compile("|".join(names) or r"(?!)")
