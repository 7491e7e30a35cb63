"""Questions in free English about a hidden member of a table, understood by rules.

A question names members ("Is it a piano?"), or says something about one: predicates of the table and comparisons with
other members. The rules look for the longest phrases that the table knows; a question with more than a few words
that no phrase covers is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

from lmgym.errors import InstanceError

LONGEST = 40  # words of a question
LETTERS = 1_000  # of a question
OPENERS = ("is", "does", "can", "do", "are", "could", "would", "will", "might", "may", "has", "have", "was", "did")
BEYOND = 3  # content words that no phrase needs to cover
FIELDS = {"~": "pattern", "?": "phrasings", "=": "members"}
NEGATIONS = re.compile(r"\b(not|isnt|doesnt|cant|arent|never|without|non|no)\b")
EXCEPTIONS = re.compile(r"\b(except|anything but|other than|besides|apart from|unlike)\b")
SIMPLER = (  # turns of phrase whose words say nothing about the member
    (re.compile(r"^(the|this|that|your) (animal|creature|item|device|fruit|vegetable|plant|vehicle|material)\b"), "it"),
    (re.compile(r"\b(small|little|light|big|large|long) enough (to|for|that)\b"), ""),
    (re.compile(r"\btoo (\w+) (to|for)\b.*"), r"\1"),
    (re.compile(r"\bon (the|its) (outside|inside)\b"), ""),
    (re.compile(r"\b(in|at|from) (a|an|the) (\w+ )?(store|shop|supermarket|mall)\b"), r"\3"),
)
PARTS = re.compile(r"\b(have|has|with|contain|contains|come with|comes with)\b")
AROUND = """
it its this that they these the a an some any one of be being is are object objects thing things something item type
kind sort piece word answer secret you youre your my im i thinking think about mean called named known as possibly
perhaps maybe really just actually happen happens to simply by chance most likely place city town from in talking live
located where which hidden correct right
"""
AROUND_NAMES = frozenset(AROUND.split())  # words of a question that does nothing but name members
OFTEN = """
and or if so such than then there here them their he she we us our people person persons someone anyone everyone man
human humans have has had having get got make makes made making use used uses using useful need needs needed require
required find finds found see seen say said consider considered call classify classified count counted usually normally
typically commonly generally often mostly mainly mostly primarily frequently always sometimes ever very quite rather
more less than much many lot lots at on with within into onto for out up can could does do would will may might should
must able possible what who how when while during also even own owned keep kept put take go goes come comes look looks
feel like main whole part parts category form way each every everyday other another first two inside somewhere shape
shaped color colour colored coloured purpose average normal typical common regular daily day life world believe certain
specific particular tend tends seem seems described describe associated related belong belongs bought sold buy else
"""
FILLERS = AROUND_NAMES | frozenset(OFTEN.split())  # words that carry little meaning


@dataclass(frozen=True)
class Predicate:
    """Something that holds of some members of a table."""

    name: str
    patterns: tuple[re.Pattern[str], ...]  # of phrases in plain words
    phrasings: tuple[str, ...]  # questions, the plainest first
    members: frozenset[str]
    unknown: frozenset[str] = frozenset()  # members of which nobody knows


@dataclass(frozen=True)
class Scale:
    """A measure by which members and well-known things are compared, such as size in cm."""

    more: str  # pattern of the words that ask for more
    less: str
    values: Mapping[str, float]  # by name or alias, in plain words, things outside the table included

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of a comparison: `more` or `less`, and the `other` thing."""
        things = "|".join(map(re.escape, sorted(self.values, key=len, reverse=True)))
        return re.compile(
            rf"\b(?:(?P<more>{self.more})|(?P<less>{self.less})) than "
            rf"(?:(?:a|an|the|your|my|most|average|normal|typical|that of|of) )*(?P<other>{things})(?:e?s)?\b"
        )


@dataclass(frozen=True)
class Question:
    """A question as it was understood: the members for which its answer is yes."""

    yes: frozenset[str]
    unknown: frozenset[str] = frozenset()  # members for which the table has no answer
    names: tuple[str, ...] = ()  # members named by a question that does nothing else
    predicates: tuple[str, ...] = ()


class Table:
    """Members with their aliases, and the predicates that questions about them may use."""

    def __init__(
        self, aliases: Mapping[str, Sequence[str]], predicates: Sequence[Predicate], scales: Sequence[Scale] = ()
    ) -> None:
        self.members = tuple(aliases)
        self.aliases = aliases
        self.predicates = tuple(predicates)
        self.scales = tuple(scales)
        self.owners = {plain(alias): member for member, names in aliases.items() for alias in (member, *names)}
        owned = sorted(self.owners, key=len, reverse=True)
        self.named = re.compile(rf"\b({'|'.join(map(re.escape, owned))})(?:e?s)?\b")

    def part(self, members: Collection[str]) -> Table:
        """Return the table of some members. Raise InstanceError for names that it lacks, and for fewer than two."""
        if unknown := [name for name in members if name not in self.aliases]:
            example = self.members[0]
            raise InstanceError(f"{unknown[0]!r} is not in the list of {len(self.members)}, such as {example!r}")
        kept = frozenset(members)
        if len(kept) < 2:
            raise InstanceError(f"a game hides one of at least two things; got {list(members)!r}")
        predicates = [
            replace(each, members=each.members & kept, unknown=each.unknown & kept) for each in self.predicates
        ]
        return Table({name: self.aliases[name] for name in members}, predicates, self.scales)

    def understand(self, question: str) -> Question | None:
        """Return what a question asks; None if it is no single yes-or-no question or says nothing that is known."""
        if not is_single(question):
            return None
        words = plain(question).split()
        rest = " ".join(words[1:])
        names = self._names(rest) if words[0] in ("is", "are", "could") or {"be", "mean"} & set(words) else ()
        if names:
            return Question(frozenset(names), names=names)
        for pattern, replacement in SIMPLER:
            rest = pattern.sub(replacement, rest)
        return None if EXCEPTIONS.search(rest) else self._statement(rest)

    def _names(self, rest: str) -> tuple[str, ...]:
        """Return the members that a question names if it does nothing else and ends with a name."""
        names = [self.owners[match[1]] for match in self.named.finditer(rest)]
        around = self.named.sub("|", rest).split()
        only_names = all(word in AROUND_NAMES or word in ("|", "or", "and") for word in around)
        return tuple(dict.fromkeys(names)) if names and only_names and around[-1] == "|" else ()

    def _statement(self, rest: str) -> Question | None:
        phrases = sorted(self._phrases(rest), key=lambda each: (each[0] - each[1], each[0]))
        chosen: list[tuple[int, int, Predicate]] = []
        for start, end, predicate in phrases:
            if all(end <= other[0] or start >= other[1] for other in chosen):
                chosen.append((start, end, predicate))
        if not chosen:
            return None
        chosen = _without_modifiers(sorted(chosen, key=lambda each: each[0]), rest)
        beyond = rest
        for start, end, _ in chosen:
            beyond = beyond[:start] + "|" * (end - start) + beyond[end:]
        outside = [word for word in beyond.replace("|", " ").split() if word not in FILLERS]
        negations = len(NEGATIONS.findall(beyond.replace("|", " ")))
        if len(outside) - negations > BEYOND:
            return None
        predicates = list(dict.fromkeys(predicate for *_, predicate in chosen))
        return _combined(predicates, either="or" in beyond.split(), negated=negations % 2 == 1, table=self.members)

    def _phrases(self, rest: str) -> Iterator[tuple[int, int, Predicate]]:
        for predicate in self.predicates:
            for pattern in predicate.patterns:
                yield from ((*match.span(), predicate) for match in pattern.finditer(rest))
        for scale in self.scales:
            yield from self._comparisons(rest, scale)

    def _comparisons(self, rest: str, scale: Scale) -> Iterator[tuple[int, int, Predicate]]:
        sized = {member: scale.values.get(plain(member)) for member in self.members}
        unknown = frozenset(member for member, value in sized.items() if value is None)
        for match in scale.pattern.finditer(rest):
            limit = scale.values[match["other"]]
            sign = 1 if match["more"] else -1
            yes = frozenset(name for name, value in sized.items() if value is not None and sign * (value - limit) > 0)
            yield (*match.span(), Predicate(match[0], (), (), yes, unknown))


def _without_modifiers(chosen: Sequence[tuple[int, int, Predicate]], rest: str) -> list[tuple[int, int, Predicate]]:
    """Leave out the adjectives of a part: "does it have a long tail" asks for the tail."""
    parts = PARTS.search(rest)
    return [
        each
        for each, after in zip_longest(chosen, chosen[1:])
        if parts is None
        or each[0] < parts.start()
        or after is None
        or " " in rest[each[0] : each[1]]
        or rest[each[1] : after[0]] not in (" ", " of ")
    ]


def _combined(predicates: Sequence[Predicate], *, either: bool, negated: bool, table: Sequence[str]) -> Question:
    sets = [predicate.members for predicate in predicates]
    yes = frozenset.union(*sets) if either else frozenset.intersection(*sets)
    unknown = frozenset[str]().union(*(predicate.unknown for predicate in predicates))
    if negated:
        yes = frozenset(table) - yes
    return Question(yes - unknown, unknown, predicates=tuple(predicate.name for predicate in predicates))


def is_single(question: str, openers: Collection[str] = OPENERS) -> bool:
    """Return True for one question of at most 40 words; LMRL-Gym's openers make it one for yes or no."""
    text = question.strip().rstrip("? ")
    words = text.split(maxsplit=LONGEST)
    single = "?" not in text and re.search(r"[.!;]\s+\w+\s+\w", text) is None
    return 0 < len(words) <= LONGEST and len(text) <= LETTERS and words[0].lower() in openers and single


def plain(text: str) -> str:
    """Return words in lower case with single spaces, without punctuation; "it's" becomes "its"."""
    return " ".join(re.sub(r"[^\w\s]|_", " ", re.sub("['\u2019]", "", text.lower())).split())


def best_question(left: Collection[str], predicates: Sequence[Predicate]) -> Predicate:
    """Return the predicate whose answer tells most: the one that halves the members that are left best."""
    return min(predicates, key=lambda each: abs(2 * len(each.members.intersection(left)) - len(left)))


def read_predicates(
    text: str, sets: Mapping[str, frozenset[str]], measures: Mapping[str, Mapping[str, float]]
) -> tuple[Predicate, ...]:
    """Read predicates: a line with the name, then lines of `~` patterns, `?` phrasings and `=` members.

    Members are names, `@set` of `sets`, `*predicate` above, `-` before any of these takes it away; `cm<=15` takes the
    members whose measure is in the limit, several limits together. Raises ValueError for an unknown name.
    """
    predicates: dict[str, Predicate] = {}
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for block in lines.strip().split("\n\n"):
        name, *rest = block.strip().splitlines()
        fields = {FIELDS[line[0]]: line[1:].strip() for line in rest}
        members = _members(
            fields["members"], {**sets, **{f"*{each}": predicates[each].members for each in predicates}}, measures
        )
        phrasings = [f"{each.strip()}?" for each in fields["phrasings"].split("?") if each.strip()]
        predicates[name] = predicate_of(name, fields["pattern"], phrasings, members)
    return tuple(predicates.values())


def predicate_of(name: str, pattern: str, phrasings: Iterable[str], members: Iterable[str]) -> Predicate:
    """Return a predicate whose pattern is a regular expression over plain words."""
    patterns = tuple(re.compile(rf"\b(?:{each})\b") for each in _alternatives(pattern))
    return Predicate(name, patterns, tuple(phrasings), frozenset(members))


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars outside its brackets: each alternative is searched for its own longest phrase."""
    parts, depth = [""], 0
    for letter in pattern:
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _members(
    expression: str, sets: Mapping[str, frozenset[str]], measures: Mapping[str, Mapping[str, float]]
) -> frozenset[str]:
    members: set[str] = set()
    limits = [part for part in map(str.strip, expression.split(",")) if "=" in part]
    if limits:
        return frozenset.intersection(*(_limited(limit, measures) for limit in limits))
    for part in map(str.strip, expression.split(",")):
        name = part.removeprefix("-")
        if name not in sets and name not in sets["@all"]:
            raise ValueError(f"unknown member or set {part!r}")
        named = sets.get(name, frozenset({name}))
        members = members - named if part.startswith("-") else members | named
    return frozenset(members)


def _limited(limit: str, measures: Mapping[str, Mapping[str, float]]) -> frozenset[str]:
    name, sign, bound = re.split("(<=|>=)", limit)
    factor = 1 if sign == ">=" else -1
    return frozenset(each for each, value in measures[name].items() if factor * (value - float(bound)) >= 0)
