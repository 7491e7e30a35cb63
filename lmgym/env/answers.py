r"""An exact checker of answers: rationals, signs, thousands separators, units, percentages, LaTeX, sets and tuples.

Numbers are compared as fractions, so 0.5, 1/2, .50, 50 % and \frac{1}{2} are one answer, 0.333 is not 1/3, and "-3" is
not "3". A unit must be the expected one, by any of its names, or may be left out. An answer with two numbers is no
answer, unless the truth is a set `{1, 2}`, whose order and repetitions do not count, or a tuple `(1, 2)`, whose order
does.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 200  # characters of an answer
NUMBER = re.compile(
    r"(?P<sign>[-+\u2212]?)\s?(?:(?P<whole>\d{1,18})\s+(?P<part>\d{1,18}/\d{1,18})"  # 1 1/2
    r"|(?P<ratio>\d{1,18}\s?/\s?\d{1,18})"
    r"|(?P<grouped>\d{1,3}(?:,\d{3})+(?:\.\d{1,18})?)"
    r"|(?P<plain>\d{1,60}(?:\.\d{0,18})?|\.\d{1,18}))"
    r"(?:[eE](?P<power>[-+]?\d{1,2}))?(?P<percent>\s?%)?"
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
)
NAMES = {name: names[0] for names in UNITS for name in names} | {
    f"{name}s": names[0] for names in UNITS for name in names
}
FILLERS = re.compile(r"\b(the|answer|is|it|equals|x|so|therefore|result|about)\b|[=:$]|\\boxed|\\[()\[\]]|[{}*`\"']")
LATEX = (  # notation of LaTeX and what it says in plain text, in this order
    (re.compile(r"\\left|\\right|\\displaystyle|\\[,;! ]|~"), " "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"(\d)\s*\\[dtc]?frac\s*\{\s*(\d{1,18})\s*\}\s*\{\s*(\d{1,18})\s*\}"), r"\1 \2/\3"),
    (re.compile(r"\\[dtc]?frac\s*\{\s*([-+]?\d{1,18})\s*\}\s*\{\s*(\d{1,18})\s*\}"), r" \1/\2"),
    (re.compile(r"\\[dtc]?frac\s*(\d)\s*(\d)"), r" \1/\2"),
    (re.compile(r"\\(?:text|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\s*\\(?:times|cdot)\s*10\s*\^\s*\{?\s*([-+]?\d{1,2})\s*\}?"), r"e\1"),
    (re.compile(r"\\([%$#&])"), r"\1"),
    (re.compile(r"\\[()]"), " "),
    (re.compile(r"\\([{}])"), r"\1"),
)
BOXED = "\\boxed{"
ASSIGNED = re.compile(r"^\s*[a-z]\s*(?:=|\\in\b|\u2208)")  # "x = " and "x in "
JOINED = re.compile(r"\bor\b|\band\b|[,;]")
BRACKETS = {"{": "}", "(": ")", "[": "]"}


def number_of(answer: str) -> tuple[Fraction, str] | None:
    """Return the number of an answer and its unit, "" for none; None unless there is exactly one number."""
    text = FILLERS.sub(" ", plain(answer[: LONGEST + 1].strip().lower())) if len(answer) <= LONGEST else ""
    matches = list(NUMBER.finditer(text))
    if len(matches) != 1:
        return None
    match = matches[0]
    before, after = text[: match.start()].strip(), text[match.end() :].strip(" .\t\n")
    unit = " ".join((before, after)).strip()
    if unit and unit not in NAMES:
        return None
    value = _value(match)
    return None if value is None else (value, NAMES.get(unit, ""))


def same(answer: str, truth: str) -> bool:
    """Return True if an answer equals the truth: numbers exactly, other texts without case and spaces."""
    if (kind := truth.strip()[:1]) in BRACKETS and (members := _members(truth)) is not None:
        given = _members(answer)
        return given is not None and (set(given) == set(members) if kind == "{" else given == members)
    if (expected := number_of(truth)) is not None:
        number = number_of(answer)
        return number is not None and number[0] == expected[0] and number[1] in ("", expected[1])
    return len(answer) <= LONGEST and _squeezed(answer) == _squeezed(truth)


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
    if "\\" in text or "{,}" in text:
        for pattern, replacement in LATEX:
            text = pattern.sub(replacement, text)
    return text


def _members(answer: str) -> list[Fraction] | None:
    """Return the numbers of a set or a tuple, its brackets being optional; None if an element is no number."""
    if len(answer) > LONGEST:
        return None
    text = plain(answer.strip().strip("$").lower().removesuffix(".")).strip()
    text = ASSIGNED.sub("", text).strip()
    if text[:1] in BRACKETS and text[-1:] == BRACKETS[text[0]]:
        text = text[1:-1]
    numbers = [number_of(part) for part in JOINED.split(text)]
    return [each[0] for each in numbers if each] if numbers and all(numbers) else None


def _value(match: re.Match[str]) -> Fraction | None:
    try:
        if match["whole"] is not None:
            value = Fraction(match["whole"]) + Fraction(match["part"])
        elif match["ratio"] is not None:
            value = Fraction("".join(match["ratio"].split()))
        else:
            text = (match["grouped"] or match["plain"]).replace(",", "").rstrip(".")
            value = Fraction(f"0{text}" if text.startswith(".") else text)
    except ZeroDivisionError:
        return None
    value *= Fraction(10) ** int(match["power"] or 0)
    value = value / 100 if match["percent"] else value
    return -value if match["sign"] in ("-", "\u2212") else value


def _squeezed(text: str) -> str:
    return "".join(text.lower().split()).rstrip(".")
