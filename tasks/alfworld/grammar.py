"""Parse the text grammar of a game file into rules that the engine renders.

A grammar is a .twl2 text: actions with a command template and a feedback rule, and rules in JSON whose right-hand sides
hold `{names}`, `#rules#` and `[{item | query}]` lists. The words are the file's; only the queries and conditions that
the two published grammars ask of the world are known. Anything else is an InstanceError, never a guess.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.alfworld.logic import ACTIONS

HERE = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
FLOOR = (
    "atlocation(a:agent, l:location) & objectatlocation(o:object, l:location)"
    " & receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)"
)
QUERIES = {  # of the world -> the variable that a list runs over
    "inreceptacle(o:object, r:receptacle)": "o",
    "holds(a:agent, o:object)": "o",
    "inreceptacleobject(o2:object, o:object)": "o2",
    "receptacleatlocation(r:receptacle, l:location)": "r",
    "holdsany(a:agent)": "",
    HERE: "r",
    FLOOR: "o",
}
NEEDS = {  # queries that stand on a variable which the action must bind
    "inreceptacle(o:object, r:receptacle)": "r",
    "inreceptacleobject(o2:object, o:object)": "o",
}
FACTS = frozenset(  # that a condition may ask of a receptacle or a thing
    {
        *("openable", "opened", "isreceptacleobject", "isclean", "ishot", "iscool", "issliced"),
        *("istoggled", "not_istoggled", "toggleable", "sliceable", "cleanable", "heatable", "coolable", "pickupable"),
    }
)
BOUND = {  # the variables of each action: those of its command; a feedback rule may name these and a walk's `lend`
    **dict.fromkeys(("look", "inventory", "help"), ""),
    **dict.fromkeys(("gotolocation", "examinereceptacle", "openobject", "closeobject"), "r"),
    **dict.fromkeys(("examineobject", "toggleobject"), "o"),
    **dict.fromkeys(("pickupobject", "putobject", "cleanobject", "heatobject", "coolobject"), "o r"),
    "sliceobject": "co ko",
}
VARIABLES = {"r": "receptacles", "o": "things", "o2": "things", "co": "things", "ko": "things", "lend": "places"}
GOTO = "[{r.name | receptacleatlocation(r:receptacle, lend:location)}]"  # r is the action's own: one name
PARTS = re.compile(r"\[\{(?P<item>[^|{}]+)\|(?P<query>[^{}]+)\}\]|\{(?P<name>[^{}]+)\}|#(?P<rule>[^#]+)#")
SPECIAL = re.compile(r'[;|"<>\[\]#{}]')  # ends plain words in the stock parser
UNARY = re.compile(r"(\w+)\(([or]):\w+\)")


@dataclass(frozen=True, slots=True)
class Name:
    """The name of the object bound to a variable."""

    variable: str


@dataclass(frozen=True, slots=True)
class Use:
    """A reference to another rule."""

    rule: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of everything that answers a query: "a cup 1, and a mug 2"."""

    query: str
    before: str  # words before the name
    after: str


@dataclass(frozen=True, slots=True)
class Option:
    """One right-hand side and its condition: `query` has an answer, and each (fact, variable) is true."""

    parts: tuple[str | Name | Use | Listing, ...]
    query: str = ""
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Grammar:
    """The wording of a game, without the goal's sentence."""

    rules: dict[str, tuple[Option, ...]]
    commands: dict[str, str]  # of an action: "take {o} from {r}"
    feedback: dict[str, str]  # of an action: the rule of its answer
    separator: str  # between the items of a list
    last: str  # before the last item
    empty: str  # for no items


def split_task(text: str) -> tuple[str, str]:
    """Return the grammar with an empty task rule, and the rule's text as the stock game prints it."""
    match = re.search(r'("task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*)("(?:[^"\\]|\\.)*")', text)
    if match is None:
        raise InstanceError("the game's grammar has no task rule")
    words = SPECIAL.split(json.loads(match[2]).lstrip(), maxsplit=1)[0]
    return text[: match.start(2)] + '""' + text[match.end(2) :], words


@lru_cache(maxsize=16)
def read_grammar(text: str) -> Grammar:
    """Parse a .twl2 grammar; raise InstanceError for queries that the engine cannot answer."""
    raw: dict[str, list[dict[str, Any]]] = {}
    for block in re.findall(r'grammar\s*::\s*"""(.*?)"""', text, re.DOTALL):
        try:
            raw.update(json.loads(block))
        except (TypeError, ValueError) as error:
            raise InstanceError(f"a block of the game's grammar is no JSON object of rules: {error}") from error
    commands, feedback = {}, {}
    for name, template, answer in re.findall(
        r'action\s+(\w+)\s*\{\s*template\s*::\s*"([^"]*)";\s*feedback\s*::\s*"#([^"#]+)#";', text
    ):
        if name.lower() in ACTIONS:  # the file also words actions that its domain has commented out
            commands[name.lower()], feedback[name.lower()] = template.replace(GOTO, "{r}"), answer
    rules: dict[str, tuple[Option, ...]] = {}
    _add(rules, raw, "intro", frozenset())
    for action, answer in feedback.items():
        _check_command(action, commands[action])
        _add(rules, raw, answer, frozenset([*BOUND[action].split(), *(["lend"] if action == "gotolocation" else [])]))
    words = [_raw(raw, name)[0]["rhs"].lstrip() for name in ("list_separator", "list_last_separator", "list_empty")]
    return Grammar(rules, commands, feedback, *words)


def _check_command(action: str, template: str) -> None:
    plain = re.sub(r"\{\w+\}", "", template)
    if sorted(re.findall(r"\{(\w+)\}", template)) != BOUND[action].split() or "{" in plain or "}" in plain:
        raise InstanceError(f"the grammar's command for {action} cannot be read: {template!r}")


def _raw(raw: dict[str, list[dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    """Return the options of a rule as the file has them."""
    options = raw.get(name) or [{}]
    if not all(isinstance(option, dict) and isinstance(option.get("rhs"), str) for option in options):
        raise InstanceError(f"the game's grammar lacks the rule {name!r}, or has it without words")
    return options


def _add(
    rules: dict[str, tuple[Option, ...]], raw: dict[str, list[dict[str, Any]]], name: str, bound: frozenset[str]
) -> None:
    """Add a rule and the rules that it uses, in a context where the variables `bound` have a value."""
    if name not in rules:
        rules[name] = tuple(_option(raw, name, option) for option in _raw(raw, name))
    if rules[name][-1].query or rules[name][-1].facts:
        raise InstanceError(f"the grammar's rule {name!r} may have nothing to say: its last option has a condition")
    for option in rules[name]:
        named = {part.variable for part in option.parts if isinstance(part, Name)} | {of for _, of in option.facts}
        queries = [option.query, *(part.query for part in option.parts if isinstance(part, Listing))]
        named |= {need for query in queries for need in NEEDS.get(query, "")}
        if free := named - bound:
            raise InstanceError(f"the grammar's rule {name!r} names {sorted(free)}, which its action does not bind")
        for part in option.parts:
            if isinstance(part, Use):
                _add(rules, raw, part.rule, bound)


def _option(raw: dict[str, list[dict[str, Any]]], rule: str, option: dict[str, Any]) -> Option:
    condition, rhs = str(option.get("condition", "")), option["rhs"].lstrip()  # as the stock parser skips it
    parts: list[str | Name | Use | Listing] = []
    end = 0
    for part in PARTS.finditer(rhs):
        parts.append(_literal(rhs[end : part.start()], rule))
        end = part.end()
        if part["rule"]:
            parts.append(Use(part["rule"]))
        elif part["name"]:
            before, variable, after = _item(raw, part["name"], rule)
            parts += [before, Name(variable), after]
        else:
            parts.append(_listing(raw, part, rule))
    parts.append(_literal(rhs[end:], rule))
    kept = tuple(part for part in parts if part != "")
    if not condition or condition in QUERIES:
        return Option(kept, query=condition)
    matches = [UNARY.fullmatch(atom.strip()) for atom in condition.split("&")]
    facts = tuple((match[1], match[2]) for match in matches if match and match[1] in FACTS)
    if len(facts) < len(matches):
        raise InstanceError(f"the grammar's rule {rule!r} asks {condition!r}, which the engine cannot answer")
    return Option(kept, facts=facts)


def _literal(text: str, rule: str) -> str:
    if SPECIAL.search(text):
        raise InstanceError(f"the grammar's rule {rule!r} has a part that cannot be read: {text!r}")
    return text.replace("\\n", "\n")


def _listing(raw: dict[str, list[dict[str, Any]]], part: re.Match[str], rule: str) -> Listing:
    query, item = part["query"].strip(), part["item"].strip()
    if not QUERIES.get(query):
        raise InstanceError(f"the grammar's rule {rule!r} lists {query!r}, which the engine cannot answer")
    before, variable, after = _item(raw, item, rule)
    if variable != QUERIES[query]:
        raise InstanceError(f"the grammar's rule {rule!r} lists {query!r} by {variable!r}")
    return Listing(query, before, after)


def _item(raw: dict[str, list[dict[str, Any]]], item: str, rule: str) -> tuple[str, str, str]:
    """Return the text before, the variable and the text after in `o.indefinite + ' ' + o.name` or `#overview(o)#`."""
    if item.startswith("#") and item.endswith("#") and item[1:-1] in raw:
        pieces = re.findall(r"\{([^{}]+)\}|([^{}]+)", _raw(raw, item[1:-1])[0]["rhs"])
    else:
        quoted = (piece.strip() for piece in item.split(" + "))
        pieces = [("", p[1:-1]) if p[:1] == p[-1:] == "'" else (p, "") for p in quoted]
    words, variable = ["", ""], ""
    for expression, literal in pieces:
        match = re.fullmatch(r"(\w+)\.(name|indefinite)(?: or \1\.id)?", expression)
        if literal or (match and match[2] == "indefinite"):
            words[bool(variable)] += literal or "a"
        elif match and match[1] in VARIABLES and not variable:
            variable = match[1]
        else:
            raise InstanceError(f"the grammar's rule {rule!r} names {item!r}, which the engine cannot read")
    if not variable:
        raise InstanceError(f"the grammar's rule {rule!r} has an item without a name: {item!r}")
    return words[0], variable, words[1]
