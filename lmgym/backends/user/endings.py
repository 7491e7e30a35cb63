"""Tokens with which a user ends a dialogue."""

from __future__ import annotations

STOP, TRANSFER, OUT_OF_SCOPE = "###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"
ENDINGS = (STOP, TRANSFER, OUT_OF_SCOPE)


def ending_of(words: str) -> str:
    """Return the token with which a user ends the dialogue, the first of `ENDINGS` in its words; "" for none."""
    return next((token for token in ENDINGS if token in words), "")


def without_endings(words: str) -> str:
    """Return a user's words without protocol tokens."""
    for token in ENDINGS:
        words = words.replace(token, "")
    return words.strip()
