"""Keys come from the environment, and are struck out of everything that is kept or shown."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from lmgym.errors import PolicyError

NAMES = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
SHORTEST = 8  # characters; shorter values are words like any other
STRUCK = "[key]"
ESCAPE = re.compile("%[0-9A-F]{2}")
SIGN = re.compile(r"[+&<>'`/]")  # what some write as an escape inside JSON
URL_SAFE = str.maketrans("+/", "-_")
HOSTS = {  # whose key is sent to which host; to others only what LMGYM_API_KEY holds
    "api.openai.com": "OPENAI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
OTHERS = "LMGYM_API_KEY"


class Secrets:
    """Words that nobody may see."""

    def __init__(self, words: Iterable[str]) -> None:
        found = {form for word in words if len(word) >= SHORTEST for form in _forms(word)}
        ordered = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None, *, key: str | None = None) -> Secrets:
        """The values of all variables whose names say that they are keys, tokens or passwords, and that of `key`."""
        environment = os.environ if environment is None else environment
        return cls(value for name, value in environment.items() if name == key or NAMES.search(name))

    def struck(self, text: str) -> str:
        """`text` without the secrets."""
        return text if self._pattern is None else self._pattern.sub(STRUCK, text)

    def struck_all(self, value: Any) -> Any:
        """The same for all texts in a JSON value, names of members included."""
        if isinstance(value, str):
            return self.struck(value)
        if isinstance(value, Mapping):
            return {self.struck(str(name)): self.struck_all(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.struck_all(item) for item in value]
        return value

    def struck_line(self, line: str) -> str:
        """The same for a value written as JSON; where it holds none, the line as it is."""
        if self._pattern is None or not self._pattern.search(line):
            return line
        return json.dumps(self.struck_all(json.loads(line)), ensure_ascii=True)


def _forms(word: str) -> Iterable[str]:
    """A secret as it may be written: plain, in a URL, between quotes, in base64 with anything before and after it."""
    urls = {quote(word, safe=safe) for safe in ("", "/")} | {quote_plus(word, safe=safe) for safe in ("", "/")}
    urls |= {ESCAPE.sub(lambda found: found[0].lower(), url) for url in urls}
    written = json.dumps(word)[1:-1]
    large = SIGN.sub(_escape, word)  # as .NET does; Go writes small digits
    small = SIGN.sub(lambda found: _escape(found).lower(), word)
    jsons = {written, written.replace("/", "\\/"), small, large}
    return {word, repr(word)[1:-1], *jsons, *urls, *_in_base64(word.encode())}


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"


def _in_base64(word: bytes) -> Iterable[str]:
    """The letters that stand for `word` alone in base64, plain and of URLs, at each of the three places in a triple."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + word)
        first, last = -(-8 * before // 6), 8 * (before + len(word)) // 6  # letters that hold no bit of a neighbour
        yield (kept := text[first:last].decode())
        yield kept.translate(URL_SAFE)


def without_secrets(url: str, secrets: Secrets) -> str:
    """`url`, if no key stands in it; raises PolicyError, which does not repeat it, where one does."""
    parts = urlsplit(url)
    names = {pair.partition("=")[0] for pair in parts.query.split("&") if pair}
    host = parts.hostname or "the host"
    if parts.username is not None or names - {"api-version"} or secrets.struck(url) != url:
        raise PolicyError(
            f"the address of {host} holds a user, a query or a key: keys come from the environment only, "
            f"here from {key_variable(url)}"
        )
    return url


def key_variable(url: str) -> str:
    """The environment variable whose key is sent to this address."""
    return HOSTS.get(urlsplit(url).hostname or "", OTHERS)
