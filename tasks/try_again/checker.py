"""An exact checker of answers: rationals, signs, thousands separators and units.

Numbers are compared as fractions, so 0.5, 1/2, .50 and 50 % are one answer, 0.333 is not 1/3, and "-3" is not "3".
A unit must be the expected one, by any of its names, or may be left out. An answer with two numbers is no answer.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 200  # characters of an answer
NUMBER = re.compile(
    r"(?P<sign>[-+\u2212]?)\s?(?:(?P<whole>\d{1,18})\s+(?P<part>\d{1,18}/\d{1,18})"  # 1 1/2
    r"|(?P<ratio>\d{1,18}\s?/\s?\d{1,18})"
    r"|(?P<grouped>\d{1,3}(?:,\d{3})+(?:\.\d{1,18})?)"
    r"|(?P<plain>\d{1,18}(?:\.\d{0,18})?|\.\d{1,18}))"
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


def number_of(answer: str) -> tuple[Fraction, str] | None:
    """Return the number of an answer and its unit, "" for none; None unless there is exactly one number."""
    text = FILLERS.sub(" ", answer[: LONGEST + 1].strip().lower()) if len(answer) <= LONGEST else ""
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
    expected = number_of(truth)
    if expected is None:
        return len(answer) <= LONGEST and _plain(answer) == _plain(truth)
    given = number_of(answer)
    return given is not None and given[0] == expected[0] and given[1] in ("", expected[1])


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


def _plain(text: str) -> str:
    return "".join(text.lower().split()).rstrip(".")
