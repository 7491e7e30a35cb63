"""A baseline that buys the first hit: `--model python:lmgym.tasks.webshop.floors:first_hit`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

PRODUCT = re.compile(r"\b[bB](?=\w*\d)[0-9A-Za-z]{6,9}\b")  # an ASIN


def first_hit(messages: Sequence[Mapping[str, Any]]) -> str:
    """Search for the unchanged instruction, open the first product and buy it without options."""
    pages = [str(message["content"]) for message in messages if message["role"] == "user"]
    if len(pages) == 1:
        words = pages[0].partition("Instruction: [SEP] ")[2].partition(" [SEP] ")[0] or pages[0].partition("\n")[0]
        return f"search[{words}]"
    match = PRODUCT.search(pages[-1]) if len(pages) == 2 else None
    return f"click[{match[0]}]" if match else "click[buy now]"
