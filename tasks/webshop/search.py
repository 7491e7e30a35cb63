"""The search engine: BM25 in Lucene's variant over stemmed English words, with its index cached on disk.

An index is written once a user and read by memory map, so environments and processes share its pages. Document
lengths count exactly, where Lucene rounds those above 40 words to one byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

from lmgym.cache import cache_folders

FORMAT = 1  # of the cache: a new one forgets the old files
HITS = 50
K1, B = 0.9, 0.4  # pyserini's
LONGEST = 255  # characters of a word: Lucene cuts longer ones
REMEMBERED = 1000  # characters of a query whose hits are kept
STOPS = frozenset(  # Lucene's for English
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    )
)
# Words by the rules of Unicode's annex 29, as far as English text needs them: "don't", "3.5" and "1,000" are one.
WORD = re.compile(r"\w+(?:(?:(?<=[^\W\d_])['’.:](?=[^\W\d_])|(?<=\d)[.,;'’](?=\d))\w+)*")
Document = tuple[str, int]  # what is indexed, and the goals that can be made of it


def analyse(text: str) -> list[str]:
    """Return the terms of a text: stemmed lower-case words without possessives and stop words."""
    raw = (word.lower().replace("’", "'").removesuffix("'s") for word in WORD.findall(text))
    words = (word[start : start + LONGEST] for word in raw for start in range(0, len(word), LONGEST))
    return [_stem(word) for word in words if word not in STOPS]


class Index:
    """A search index, and the number of goals of each document."""

    def __init__(self, folder: Path) -> None:
        """Open the index that `build` wrote."""
        self._engine = bm25s.BM25.load(folder, mmap=True, load_corpus=False)
        self._terms: dict[str, int] = self._engine.vocab_dict
        self.goals: NDArray[np.int64] = np.load(folder / "goals.npy", mmap_mode="r")
        self._remembered = lru_cache(maxsize=4096)(self._hits)

    def hits(self, query: str) -> tuple[int, ...]:
        """Return the numbers of the best documents for a query, best first; equal ones in order."""
        return self._remembered(query) if len(query) <= REMEMBERED else self._hits(query)

    def _hits(self, query: str, count: int = HITS) -> tuple[int, ...]:
        """Score a query against the index."""
        terms = [self._terms[term] for term in analyse(query) if term in self._terms]
        if not terms:
            return ()
        scores = self._engine.get_scores_from_ids(terms)
        matches = np.flatnonzero(scores > 0)
        if len(matches) > count:
            least = np.partition(scores[matches], -count)[-count]
            matches = matches[scores[matches] >= least]
        return tuple(matches[np.lexsort((matches, -scores[matches]))][:count].tolist())


def build(documents: Iterable[Document], folder: Path) -> None:
    """Write the index of documents to a folder."""
    texts, goals = [], []
    for text, count in documents:
        texts.append(analyse(text))
        goals.append(count)
    engine = bm25s.BM25(method="lucene", k1=K1, b=B)
    engine.index(texts, show_progress=False)
    engine.save(folder, corpus=None, show_progress=False)
    np.save(folder / "goals.npy", np.asarray(goals, np.int64))


def kept(recipe: Sequence[object], documents: Callable[[], Iterable[Document]]) -> Index:
    """Return the index of a recipe, which determines the documents: from the cache, or newly built."""
    parts = [FORMAT, version("bm25s"), version("PyStemmer"), *recipe]
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    folders = cache_folders("webshop")
    for folder in folders:
        if (folder / name / "goals.npy").is_file():
            return Index(folder / name)
    if _write(folders[-1] / name, documents):
        return Index(folders[-1] / name)
    raise OSError(f"the search index cannot be written to {folders[-1]}; set $LMGYM_CACHE to a folder of your own")


def _write(folder: Path, documents: Callable[[], Iterable[Document]]) -> bool:
    """Build an index beside `folder` and rename it; return False where that cannot be written."""
    try:
        made = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=folder.parent))
    except OSError:
        return False
    try:
        build(documents(), made)
        os.rename(made, folder)
    except OSError:
        return (folder / "goals.npy").is_file()  # another process was first
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return True


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    return str(_stemmer(threading.get_ident()).stemWord(word))


@lru_cache(maxsize=64)
def _stemmer(thread: int) -> Stemmer.Stemmer:
    """Return the thread's own stemmer: they are not to be shared."""
    return Stemmer.Stemmer("porter")
