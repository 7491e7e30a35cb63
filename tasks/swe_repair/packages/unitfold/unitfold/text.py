"""Units and quantities as text."""

import re
from fractions import Fraction

from .quantity import ONE, Quantity
from .units import PREFIXES, STANDARD

FACTOR = re.compile(r"([A-Za-z]+)(?:\^(-?\d+))?")
NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:/\d+)?(?:e[-+]?\d+)?)\s*")


def parse_unit(text, registry=STANDARD):
    """Return the unit of a text such as "kg m/s^2"; every factor behind a slash divides."""
    if text.strip() in ("", "1"):
        return ONE
    parts = text.split("/")
    unit = ONE
    for index, part in enumerate(parts):
        words = part.replace("*", " ").split()
        if not words:
            raise ValueError(f"a factor is missing in {text!r}")
        for word in words:
            if word == "1" and index == 0:
                continue
            match = FACTOR.fullmatch(word)
            if match is None:
                raise ValueError(f"not a unit: {word!r}")
            exponent = int(match[2] or 1)
            found = registry.get(match[1])
            if found.offset and len(parts) == 1 and len(words) == 1 and exponent == 1:
                return found
            if index > 0:
                exponent = -exponent
            unit = unit * found**exponent
    return unit


def parse_number(text):
    """Return an exact number: a decimal or a fraction, with an optional power of ten."""
    mantissa, _, exponent = text.partition("e")
    value = Fraction(mantissa)
    if exponent:
        value *= Fraction(10) ** int(exponent)
    return value


def parse_quantity(text, registry=STANDARD):
    """Return the quantity of a text such as "90 km/h" or "1/3 m"."""
    match = NUMBER.match(text)
    if match is None:
        raise ValueError(f"no number at the start of {text!r}")
    value = parse_number(match[1])
    return Quantity(value, parse_unit(text[match.end() :], registry))


def best_prefix(value, name, registry=STANDARD):
    """Return (value, prefixed name) with a value of at least 1 and below 1000 where prefixes allow it."""
    if name not in registry.prefixed:
        return value, name
    best = (value, name)
    if 1 <= abs(value) < 1000 or value == 0:
        return best
    for prefix, factor in PREFIXES.items():
        if prefix in "hdc":
            continue
        scaled = value / factor
        if abs(scaled) >= 1:
            best = (scaled, prefix + name)
            break
    return best
