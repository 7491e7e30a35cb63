"""Text to ids and back, with control tokens only where the chat template wrote them.

Text of messages is guarded: a mark is put between the characters of every control token that it spells, the template
is rendered, control tokens are matched by their exact names, and the rest is encoded, marks removed, by a copy of the
tokenizer without added tokens. A guarded name can therefore never become a control id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lmgym.errors import PolicyError
from lmgym.policy.tools import CLOSE, OPEN

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MARKS = [chr(code) for code in range(0xE000, 0xF8FF)]  # private use: no language has them


class Vocabulary:
    """The encodings of a chat: guarded text, and a rendered template."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Raise PolicyError for a slow tokenizer, one without a `tokenizer.json`."""
        from tokenizers import Tokenizer

        if not getattr(tokenizer, "is_fast", False):
            raise PolicyError(f"{tokenizer.name_or_path or 'The tokenizer'} has no tokenizer.json (fast tokenizer)")
        self._backend = tokenizer.backend_tokenizer
        spec = json.loads(self._backend.to_str())
        spec |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
        self._plain = Tokenizer.from_str(json.dumps(_without_prefix(spec)))  # matches no added token
        added = tokenizer.added_tokens_decoder
        self.control = {token.content: i for i, token in added.items() if len(token.content.strip()) > 1}
        self._special = {token.content for token in added.values() if token.special} - {OPEN, CLOSE}
        self._hidden = {i for i, token in added.items() if token.content in self._special}
        self._special_tags = any(token.special and token.content in (OPEN, CLOSE) for token in added.values())
        self._any = _any_of(self.control)
        self._reserved = _any_of(name for name in self.control if name in self._special)
        self._template_tokens = _any_stripped(token for token in added.values() if token.content in self.control)

    def mark(self, texts: Sequence[str]) -> str:
        """Return a character that occurs in none of `texts`."""
        return next(mark for mark in MARKS if not any(mark in text for text in texts))

    def guard(self, text: str, mark: str, *, own: bool) -> str:
        """Return `text` without control tokens; the policy's `own` text keeps non-special ones such as <think>."""
        pattern = self._reserved if own else self._any
        return pattern.sub(lambda match: mark.join(match[0]), text)

    def rendered(self, text: str, mark: str) -> list[int]:
        """Return the ids of rendered, guarded `text`, in which names of control tokens become their ids."""
        ids: list[int] = []
        start = 0
        for match in self._template_tokens.finditer(text):
            ids += self.words(text[start : match.start()].replace(mark, ""))
            ids.append(self.control[match[0] if match[0] in self.control else match[0].strip()])
            start = match.end()
        return ids + self.words(text[start:].replace(mark, ""))

    def words(self, text: str) -> list[int]:
        """Return the ids of `text`, which are never control tokens, whatever it spells."""
        if not text:
            return []
        encodable = text.encode("utf-8", "replace").decode("utf-8")  # no tokenizer takes lone surrogates
        ids: list[int] = self._plain.encode(encodable, add_special_tokens=False).ids
        if self._any.search(text) and not self.control_ids.isdisjoint(ids):  # the plain vocabulary has the name
            cut = self._any.search(text).start() + 1  # type: ignore[union-attr]
            return self.words(text[:cut]) + self.words(text[cut:])
        return ids

    def text(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Decode `ids`, by default without special tokens; tags of thinking stay."""
        if self._special_tags and not special:
            ids, special = [each for each in ids if each not in self._hidden], True
        return str(self._backend.decode(list(ids), skip_special_tokens=not special))

    def name(self, token: int) -> str:
        """Return the name of a token."""
        return str(self._backend.id_to_token(token))

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids of all control tokens."""
        return frozenset(self.control.values())


def _without_prefix(part: Any) -> Any:
    """Return a tokenizer's specification without the parts that add a leading space."""
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


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of `names`, longest first; it never matches if there are none."""
    ordered = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")


def _any_stripped(tokens: Iterable[Any]) -> re.Pattern[str]:
    """Return a pattern of any of the added tokens, with the white space that they strip."""
    ordered = sorted(tokens, key=lambda token: len(token.content), reverse=True)
    space = {True: r"\s*", False: ""}
    names = [space[token.lstrip] + re.escape(token.content) + space[token.rstrip] for token in ordered]
    return re.compile("|".join(names) or r"(?!)")
