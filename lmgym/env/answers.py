r"""An exact checker of answers: rationals, signs, thousands separators, units, percentages, LaTeX, sets and tuples.

Numbers are compared as fractions, so 0.5, 1/2, .50, 50 % and \frac{1}{2} are one answer, 0.333 is not 1/3, and "-3" is
not "3". A unit must be the expected one, by any of its names, or may be left out; a dollar sign that is not one of a
pair around maths is a unit, and counts beside a number without one. An answer with two numbers is no answer, unless the
truth is a set `{1, 2}`, whose order and repetitions do not count, or a tuple `(1, 2)`, whose order does; `x = 1, y = 2`
is a tuple in the order of the alphabet.

Digits in groups of three, parted by commas or single spaces, are one number. In a set or a tuple a comma parts
elements, so `1,234` has two; where another separator cannot stand in a number, as in `1,234, 5`, it is one number.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 200  # characters of an answer
SIGN = "[-+]"
MINUS = str.maketrans("\u2212\u2013", "--")  # signs as typeset
NUMBER = re.compile(
    rf"(?P<sign>{SIGN}?) ?(?:(?P<whole>\d{{1,18}})[ \t\xa0]+(?P<part>\d{{1,18}}/\d{{1,18}})"  # 1 1/2
    rf"|(?P<ratio>\d{{1,18}} ?/ ?{SIGN}? ?\d{{1,18}})"
    r"|(?:(?P<grouped>\d{1,3}(?:(?:,\d{3})+|(?:[ \xa0\u2009\u202f]\d{3})+)(?!\d)(?:\.\d{1,18})?)"
    r"|(?P<plain>\d{1,60}(?:\.\d{0,18})?|\.\d{1,18}))(?:[eE](?P<power>[-+]?\d{1,2}))?)"
    r"(?P<percent>\s?(?:%|per ?cent\b))?"
)
UNITS = (  # names of one unit each
    ("mm", "millimetre", "millimeter"),
    ("cm", "centimetre", "centimeter"),
    ("m", "metre", "meter"),
    ("km", "kilometre", "kilometer"),
    ("g", "gram"),
    ("kg", "kilogram"),
    ("s", "sec", "second"),
    ("min", "minute"),
    ("h", "hr", "hour"),
    ("day",),
    ("l", "litre", "liter"),
    ("ml", "millilitre", "milliliter"),
    ("euro", "eur", "\u20ac"),
    ("cent",),
    ("dollar", "usd", "$"),
)
NAMES = {name: names[0] for names in UNITS for name in names} | {
    f"{name}s": names[0] for names in UNITS for name in names
}
FILLERS = re.compile(  # a line break takes their place: it joins no digits
    r"\b(?:the|answer|is|it|equals|so|therefore|result|about)\b|(?<![\w.])[a-z](?:_\{?\w\}?)?\s*[=:]|=\s*[a-z]\s*$"
    r"|[=:{}*`\"']|\\boxed"
)
MATHS = re.compile(r"(?<!\\)\$\$?((?:[^$\\]|\\.)*)\$\$?", re.S)
POWER = r"10 ?\^ ?(?:\{\s*(" + SIGN + r"?\d{1,2})\s*\}|(" + SIGN + r"?\d{1,2})(?!\d))"
TIMES_POWER = re.compile(r"(?<=\d)\s*(?:\\times|\\cdot|[\u00d7\u00b7*x])\s*" + POWER)
POWER_ALONE = re.compile(r"(?<![\w.^*/)\u00d7\u00b7])(?<![\w^*/)\u00d7\u00b7] )" + POWER)
ENCLOSED = re.compile(rf"[(\[{{]\s*({SIGN}? ?[\d.]{{1,60}}(?: ?/ ?\d{{1,18}})?)\s*[)\]}}](?!\s*[\d(]|\.\d)")
LATEX = (  # notation of LaTeX and what it says in plain text, in this order
    (re.compile(r"(?<=\d)(?:\{,\}|,?\\!|\\,)(?=\d{3}(?!\d))"), "\u202f"),
    (re.compile(r"\\left|\\right|\\displaystyle|\\[,;: ]|~"), " "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\!"), ""),
    (re.compile(r"\\lbrace\b"), "{"),
    (re.compile(r"\\rbrace\b"), "}"),
    (re.compile(r"\\pm\b|\\pm(?=\d)"), "\u00b1"),
    (re.compile(r"(\d)\s*\\[dtc]?frac\s*\{\s*(\d{1,18})\s*\}\s*\{\s*(\d{1,18})\s*\}"), r"\1 \2/\3"),
    (re.compile(rf"\\[dtc]?frac\s*\{{\s*({SIGN}?\d{{1,18}})\s*\}}\s*\{{\s*({SIGN}?\d{{1,18}})\s*\}}"), r" \1/\2"),
    (re.compile(r"\\[dtc]?frac\s*(\d)\s*(\d)"), r" \1/\2"),
    (re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it|sf)|emph|operatorname)\s*\{([^{}]*)\}"), "\n\\1\n"),
    (re.compile(r"\\([%$#&])"), r"\1"),
    (re.compile(r"\\[()\[\]]"), "\n"),
    (re.compile(r"\\([{}])"), r"\1"),
)
BOXED = "\\boxed{"
ASSIGNED = re.compile(r"^[a-z]\s*(?:=|\\in\b|\u2208)\s*(?=[\[({])")  # "x = " and "x in " before brackets
NAMED = re.compile(r"^(\()?\s*([a-z](?:\s*,\s*[a-z])+)\s*(?(1)\))\s*=\s*")  # "(x, y) = "
NAME = re.compile(r"^\s*([a-z](?:_\{?\w\}?)?)\s*=")
JOINED = re.compile(r"[,;]\s*(?:or|and)\b|\bor\b|\band\b|[,;]")
LOOSE = re.compile(r",\s|;|\bor\b|\band\b")  # a separator that no number has inside
THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?!,?\d)")
BRACKETS = {"{": "}", "(": ")", "[": "]"}


def number_of(answer: str) -> tuple[Fraction, str] | None:
    """Return the number of an answer and its unit, "" for none; None unless there is exactly one number."""
    if len(answer) > LONGEST:
        return None
    text = plain(answer.strip().lower())
    text = POWER_ALONE.sub(r"1e\1\2 ", TIMES_POWER.sub(r"e\1\2 ", text))
    text = FILLERS.sub("\n", ENCLOSED.sub(_opened, text))
    matches = list(NUMBER.finditer(text))
    if len(matches) != 1:
        return None
    match = matches[0]
    before, after = text[: match.start()], text[match.end() :].strip(" .\t\n")
    unit = " ".join(f"{before} {after}".split())
    if unit and unit not in NAMES:
        return None
    value = _value(match)
    return None if value is None else (value, NAMES.get(unit, ""))


def same(answer: str, truth: str) -> bool:
    """Return True if an answer equals the truth: numbers exactly, other texts without case and spaces.

    An empty answer equals nothing.
    """
    kind = truth.strip()[:1]
    if kind in BRACKETS and (members := _members(truth, ordered=kind != "{")) is not None:
        given = _members(answer, ordered=kind != "{")
        return given is not None and (set(given) == set(members) if kind == "{" else given == members)
    if (expected := number_of(truth)) is not None:
        number = number_of(answer)
        units = ("", expected[1], "dollar" if "$" in answer and not expected[1] else "")
        return number is not None and number[0] == expected[0] and number[1] in units
    return len(answer) <= LONGEST and _squeezed(answer) == _squeezed(truth) != ""


def boxed(text: str) -> str | None:
    r"""Return the content of the last \boxed{...} with balanced braces; None if the last one does not close."""
    start = text.rfind(BOXED)
    if start < 0:
        return None
    inside = text[start + len(BOXED) : start + len(BOXED) + 4 * LONGEST]
    depth = 1
    for position, character in enumerate(inside):
        depth += (character == "{") - (character == "}")
        if not depth:
            return inside[:position].strip()
    return None


def plain(text: str) -> str:
    """Return a text with LaTeX's notation of numbers, units and brackets written plainly."""
    text = MATHS.sub("\n\\1\n", text.translate(MINUS))
    if "\\" in text or "{,}" in text:
        for pattern, replacement in LATEX:
            text = pattern.sub(replacement, text)
    return text.strip()


def _opened(match: re.Match[str]) -> str:
    """Return a number without the brackets around it, unless a factor stands before them."""
    before = match.string[: match.start()].rstrip()[-1:]
    return match[0] if before.isdigit() or before in (")", "]", "}") else match[1]


def _members(answer: str, *, ordered: bool) -> list[Fraction] | None:
    """Return the numbers of a set, or of a tuple, its brackets being optional; None if an element is no number."""
    if len(answer) > LONGEST:
        return None
    text = answer.strip().removesuffix(".")
    text = plain((boxed(text) or "" if text.startswith(BOXED) else text).lower())
    names: list[str] = []
    if (match := NAMED.match(text)) is not None:
        names = [name.strip() for name in match[2].split(",")]
        text = text[match.end() :]
    text = ASSIGNED.sub("", text).strip()
    if text[:1] in BRACKETS and text[-1:] == BRACKETS[text[0]]:
        text = text[1:-1]
    if re.search(r"(?<!_)[{}\[\]]", text) or (ordered and re.search(r"\bor\b", text)):
        return None
    if LOOSE.search(text):
        text = THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    parts = JOINED.split(text)
    names = names or [match[1] for part in parts if (match := NAME.match(part))]
    numbers = [number for part in parts for number in _signed(part, both=not ordered)]
    if not all(numbers) or (ordered and names and len({*names}) != len(parts)):
        return None
    values = [number[0] for number in numbers if number]
    return [value for _, value in sorted(zip(names, values, strict=True))] if ordered and names else values


def _signed(part: str, *, both: bool) -> list[tuple[Fraction, str] | None]:
    """Return the number of an element; two for plus or minus 1 where `both` signs are allowed."""
    part = NAME.sub("", part).strip()
    if not (both and part.startswith("\u00b1")):
        return [number_of(part)]
    number = number_of(part[1:])
    return [number, number and (-number[0], number[1])]


def _value(match: re.Match[str]) -> Fraction | None:
    try:
        if match["whole"] is not None:
            value = Fraction(match["whole"]) + Fraction(match["part"])
        elif match["ratio"] is not None:
            above, below = "".join(match["ratio"].split()).split("/")
            value = Fraction(int(above), int(below))
        else:
            text = re.sub(r"[,\s]", "", match["grouped"] or match["plain"]).rstrip(".")
            value = Fraction(f"0{text}" if text.startswith(".") else text)
    except ZeroDivisionError:
        return None
    value *= Fraction(10) ** int(match["power"] or 0)
    value = value / 100 if match["percent"] else value
    return -value if match["sign"] == "-" else value


def _squeezed(text: str) -> str:
    return "".join(text.lower().split()).rstrip(".")
