"""API keys: read from the environment, and struck out of everything that is stored or shown."""

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
MIN_LENGTH = 8  # characters; shorter values are ordinary words
STRUCK = "[key]"
PERCENT_ESCAPE = re.compile("%[0-9A-F]{2}")
JSON_SIGN = re.compile(r"[+&<>'`/]")  # some encoders escape these in JSON
URL_SAFE = str.maketrans("+/", "-_")
HOSTS = {  # variable of the key for each host; other hosts get LMGYM_API_KEY only
    "api.openai.com": "OPENAI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
DEFAULT_VARIABLE = "LMGYM_API_KEY"


class Secrets:
    """Strings that must not be stored or shown, in all their encodings."""

    def __init__(self, words: Iterable[str]) -> None:
        forms = {form for word in words if len(word) >= MIN_LENGTH for form in _forms(word)}
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None, *, key: str | None = None) -> Secrets:
        """Return the values of `key` and of all variables named like a key, token, secret or password."""
        environment = os.environ if environment is None else environment
        return cls(value for name, value in environment.items() if name == key or NAMES.search(name))

    def struck(self, text: str) -> str:
        """Return `text` without the secrets."""
        return text if self._pattern is None else self._pattern.sub(STRUCK, text)

    def struck_all(self, value: Any) -> Any:
        """Return a JSON value with the secrets struck out of all strings and member names."""
        if isinstance(value, str):
            return self.struck(value)
        if isinstance(value, Mapping):
            return {self.struck(str(name)): self.struck_all(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.struck_all(item) for item in value]
        return value

    def struck_line(self, line: str) -> str:
        """Return a line of JSON with the secrets struck out; lines without any stay as they are."""
        if self._pattern is None or not self._pattern.search(line):
            return line
        return json.dumps(self.struck_all(json.loads(line)), ensure_ascii=True)


def _forms(word: str) -> Iterable[str]:
    """Return a secret's spellings: plain, in URLs, in JSON, and in base64 at any offset."""
    urls = {quote(word, safe=safe) for safe in ("", "/")} | {quote_plus(word, safe=safe) for safe in ("", "/")}
    urls |= {PERCENT_ESCAPE.sub(lambda match: match[0].lower(), url) for url in urls}
    escaped = json.dumps(word)[1:-1]
    upper = JSON_SIGN.sub(lambda match: f"\\u{ord(match[0]):04X}", word)  # as .NET does; Go writes lower case
    lower = JSON_SIGN.sub(lambda match: f"\\u{ord(match[0]):04x}", word)
    base64s = set()
    for offset in range(3):
        text = base64.b64encode(bytes(offset) + word.encode())
        # characters that encode no bit of a neighbouring byte
        first, last = -(-8 * offset // 6), 8 * (offset + len(word.encode())) // 6
        base64s |= {text[first:last].decode(), text[first:last].decode().translate(URL_SAFE)}
    return {word, repr(word)[1:-1], escaped, escaped.replace("/", "\\/"), lower, upper, *urls, *base64s}


def without_secrets(url: str, secrets: Secrets) -> str:
    """Return `url` if it contains no key; raise PolicyError, which does not repeat it, otherwise."""
    parts = urlsplit(url)
    names = {pair.partition("=")[0] for pair in parts.query.split("&") if pair}
    host = parts.hostname or "the host"
    if parts.username is not None or names - {"api-version"} or secrets.struck(url) != url:
        raise PolicyError(
            f"the address of {host} contains a user, a query or a key: keys come from the environment only, "
            f"here from {key_variable(url)}"
        )
    return url


def key_variable(url: str) -> str:
    """Return the environment variable whose key is sent to this address."""
    return HOSTS.get(urlsplit(url).hostname or "", DEFAULT_VARIABLE)
