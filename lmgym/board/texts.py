"""Rules for the texts of an entry: nothing hidden, no markup, and no keys, paths or hosts of the author's machine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from lmgym.errors import SubmissionError

PROMPT = 8_000  # characters of a system prompt, or of a text within a request
MARKUP = frozenset('<>&"`\\')
LAYOUT = "\r\n\t\u200c\u200d"  # allowed in prompts and requests; the last two separate or join letters and emoji
INVISIBLE = re.compile(  # default-ignorable code points (Unicode DerivedCoreProperties), and letters drawn as blanks
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufff8\U00013441\U00013442\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # U+FE0F is missing: it shows a sign as an emoji
)
ROOTS = "home|root|tmp|usr|var|etc|opt|mnt|media|srv|proc|scratch|nfs|lustre|gpfs|workspace|Users|Volumes|private"
MACHINE = (  # paths and hosts
    re.compile(r"(?:^|[\s\"'=(:,])(?:~|\.\.?)?/[\w.-]+/"),
    re.compile(rf"(?:^|[\s\"'=(:,])/(?:{ROOTS})(?![\w-])"),
    re.compile(r"[A-Za-z]:\\|\\\\\w"),
    re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE),
    re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
    re.compile(r"\blocalhost\b|\S@\S+\.\S", re.IGNORECASE),
)
KEYS = (  # API keys as issuers format them: prefix, alphabet and length; hyphenated words do not match
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk|csk)-(?:\w+-)*(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:hf|gsk|api_org)_[A-Za-z0-9]{28,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:gh[opsur]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,})"),
    re.compile(r"(?<![A-Za-z0-9])xox[a-z]-(?=\S*[0-9])[\w-]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:AIza[\w-]{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|r8_[A-Za-z0-9]{30,})"),
    re.compile(r"(?<![A-Za-z0-9])(?:xai|pplx|nvapi|fw)[-_](?=[A-Za-z_-]*[0-9])[\w-]{32,}"),
    re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\."),
    re.compile(r"\bBearer\s+(?=\S*[0-9])[\w.~+/=-]{16,}"),
)


def check_line(text: str, where: str) -> None:
    """Raise SubmissionError unless a text is plain and entirely visible, and names no key, path or host."""
    label = f"{where} {text[:60]!r}"
    if MARKUP.intersection(text):
        raise SubmissionError(f"{label} contains markup; write plain words")
    if hidden := INVISIBLE.search(text):
        raise SubmissionError(f"{label} contains the invisible character U+{ord(hidden[0]):04X}")
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") for letter in text):
        raise SubmissionError(f"{label} contains control characters")
    _check_private(text, where)


def check_heading(text: str, where: str) -> None:
    """Raise SubmissionError where a text has no letter, number or sign to read."""
    if not any(unicodedata.category(letter)[0] in "LNPS" for letter in text):
        raise SubmissionError(f"{where} {text[:60]!r} is blank")


def check_prompt(text: str, where: str) -> None:
    """Check a text that a model was sent: lines, tags and joined letters are allowed, keys, paths and hosts are not."""
    if len(text) > PROMPT:
        raise SubmissionError(f"{where} has {len(text):,} characters; the limit is {PROMPT:,}")
    hidden = [letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf", "Co") and letter not in LAYOUT]
    if hidden:
        raise SubmissionError(f"{where} contains control characters: U+{ord(hidden[0]):04X}")
    _check_private(text, where)


def _check_private(text: str, where: str) -> None:
    if any(pattern.search(text) for pattern in KEYS):
        raise SubmissionError(f"{where} contains what looks like an API key")  # and the message must not repeat it
    if any(pattern.search(text) for pattern in MACHINE):
        raise SubmissionError(
            f"{where} {text[:60]!r} names a path or a host; remove everything about the machine it was made on"
        )


def nested_texts(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value if isinstance(value, list) else [*value, *value.values()]:
            yield from nested_texts(part)


def words_of(text: str) -> list[str]:
    """Return the words and signs of a text in a form that ignores case, width and spacing."""
    return re.findall(r"\w+|[^\w\s]", unicodedata.normalize("NFKC", text).casefold())


def same_title(a: str, b: str) -> bool:
    """Return True if two titles have the same words."""
    return [word for word in words_of(a) if word.isalnum()] == [word for word in words_of(b) if word.isalnum()]
