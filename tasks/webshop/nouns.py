"""Noun finders for titles: the title score of the reward counts common nouns.

The original asks spaCy's `en_core_web_sm`, a model that its makers put on no package index. Where it is installed it is
asked here too; elsewhere words are nouns unless a table or their ending says otherwise. Records name the finder.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from lmgym.errors import MissingExtra
from lmgym.tasks.webshop.catalogue import lines

MODEL = "en_core_web_sm"
FINDERS = ("auto", "spacy", "own")
NOUN_TAGS = ("PNOUN", "NOUN", "PROPN")  # the first is the original's, and no tag
WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
ENDINGS = re.compile(
    r"(?:able|ible|less|ful|ous|ical|ized|ised|ly|ated|ted|ned|red|led|ded|ged|ked|med|ped|sed|wed|xed|zed)$"
)
GERUND = re.compile(r"[^\W\d_]{3,}ing$")  # "long lasting", "quick drying": what a product does, seldom what it is
Nouns = Callable[[str], tuple[str, ...]]


def finder(name: str) -> tuple[str, Nouns]:
    """Return a finder's name for records, and the function; "auto" is spaCy if its model is installed."""
    if name == "own" or (name == "auto" and importlib.util.find_spec(MODEL) is None):
        return "own", own
    return f"spacy {MODEL} {_model().meta['version']}", with_spacy


@lru_cache(maxsize=65_536)
def own(title: str) -> tuple[str, ...]:
    """Return the nouns of a title by table and word ending, in lower case, with repetitions."""
    return tuple(word for word in WORD.findall(title.lower()) if _is_noun(word))


@lru_cache(maxsize=65_536)
def with_spacy(title: str) -> tuple[str, ...]:
    """Return the nouns and proper nouns that spaCy's model finds, as the original does."""
    return tuple(token.text.lower() for token in _model()(title) if token.pos_ in NOUN_TAGS)


def title_score(purchased: str, wanted: str, nouns: Nouns) -> float:
    """Return the share of the wanted title's nouns in the purchased one; 0.2 if it has no noun."""
    counted = nouns(wanted)
    return len(set(nouns(purchased)) & set(counted)) / len(counted) if counted else 0.2


@cache
def _known() -> dict[str, bool]:
    """Return the table: True for nouns, False for other words."""
    words = [word for line in lines("modifiers.txt") for word in line.split()]
    return {word.lstrip("+"): word.startswith("+") for word in words}


def _is_noun(word: str) -> bool:
    listed = _known().get(word)
    if listed is not None or word[0].isdigit():
        return bool(listed)
    return len(word) < 5 or not (ENDINGS.search(word) or GERUND.match(word))


@cache
def _model() -> Any:
    if importlib.util.find_spec(MODEL) is None:
        raise MissingExtra(
            f"nouns='spacy' needs spaCy's model: python -m spacy download {MODEL}; nouns='own' needs nothing"
        )
    import spacy

    return spacy.load(MODEL)
