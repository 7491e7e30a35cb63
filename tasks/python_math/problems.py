"""Problem families with exact answers and a program that prints each, in three levels.

Numbers follow a space or a line break, in questions as in programs: a tokenizer then splits both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, isqrt, lcm

import numpy as np

LEVELS = (1, 2, 3)


@dataclass(frozen=True)
class MathProblem:
    """A question, its answer as the checker reads it, and a program that prints the answer."""

    question: str
    answer: str
    code: str


Draw = Callable[[int, int], int]  # lowest and highest -> an integer
Family = Callable[[Draw, int], MathProblem]


def problem(chance: np.random.Generator, level: int, family: str) -> MathProblem:
    """Draw a problem of a family and a level from 1 to 3."""
    return FAMILIES[family](lambda low, high: int(chance.integers(low, high + 1)), level)


def _sum(draw: Draw, level: int) -> MathProblem:
    terms = [draw(11, 10 ** (2 * level)) for _ in range(level + 1)]
    text = str(terms[0])
    value = terms[0]
    for term in terms[1:]:
        minus = draw(0, 1)
        value += -term if minus else term
        text += f" {'-' if minus else '+'} {term}"
    return MathProblem(f"Calculate {text}.", str(value), f"x = {text}\nprint(x)")


def _product(draw: Draw, level: int) -> MathProblem:
    a, b = draw(11, 10 ** (level + 1)), draw(3, 10**level + 9)
    return MathProblem(f"Calculate {a} times {b}.", f"{a * b:,}", f"x = {a} * {b}\nprint(x)")


def _remainder(draw: Draw, level: int) -> MathProblem:
    a, b = draw(50, 10 ** (2 * level + 1)), draw(3, 9 * 10 ** (level - 1) + 9)
    return MathProblem(f"What is the remainder of {a} divided by {b}?", str(a % b), f"x = {a} % {b}\nprint(x)")


def _divisor(draw: Draw, level: int) -> MathProblem:
    common = draw(2, 10**level + 5)
    a, b = common * draw(2, 9 * level), common * draw(2, 9 * level)
    code = f"import math\nx = math.gcd( {a}, {b})\nprint(x)"
    return MathProblem(f"What is the greatest common divisor of {a} and {b}?", str(gcd(a, b)), code)


def _multiple(draw: Draw, level: int) -> MathProblem:
    a, b = draw(4, 10**level + 10), draw(4, 10**level + 10)
    code = f"import math\nx = math.lcm( {a}, {b})\nprint(x)"
    return MathProblem(f"What is the least common multiple of {a} and {b}?", str(lcm(a, b)), code)


def _fraction(draw: Draw, level: int) -> MathProblem:
    parts = [(draw(1, 9), draw(2, 5 + 4 * level)) for _ in range(1 + level)]
    text = " + ".join(f"{a} / {b}" for a, b in parts)
    code = "from fractions import Fraction\nx = " + " + ".join(f"Fraction( {a}, {b})" for a, b in parts) + "\nprint(x)"
    return MathProblem(f"Calculate {text} as a fraction.", str(sum(Fraction(a, b) for a, b in parts)), code)


def _equation(draw: Draw, level: int) -> MathProblem:
    factor, shift = draw(2, 9), draw(1, 10 ** (level + 1))
    other = draw(1, factor - 1) if level > 1 else 0
    slope = factor - other
    right = shift + (slope * draw(-20, 20) if level < 3 else draw(-500, 500))
    tail = f"{right} + {other} x" if other else f"{right}"
    bottom = f"{factor} - {other}" if other else f"{factor}"
    code = f"from fractions import Fraction\nx = Fraction( {right} - {shift}, {bottom})\nprint(x)"
    return MathProblem(f"Solve {factor} x + {shift} = {tail} for x.", str(Fraction(right - shift, slope)), code)


def _percent(draw: Draw, level: int) -> MathProblem:
    share, whole = draw(3, 97), draw(5, 9 * 10**level)
    code = f"from fractions import Fraction\nx = Fraction( {share} * {whole}, 100)\nprint(x)"
    return MathProblem(f"What is {share} % of {whole} euros?", f"{Fraction(share * whole, 100)} euros", code)


def _sequence(draw: Draw, level: int) -> MathProblem:
    first, factor, step, count = draw(1, 12), draw(2, 3), draw(1, 12), draw(3, 4 * level)
    value = first
    for _ in range(count):
        value = factor * value + step
    code = f"x = {first}\nfor i in range( {count}):\n    x = {factor} * x + {step}\nprint(x)"
    question = f"Start with {first} and do this {count} times: multiply by {factor}, then add {step}. What is the end?"
    return MathProblem(question, str(value), code)


def _units(draw: Draw, level: int) -> MathProblem:
    big, small, factor = (("km", "m", 1000), ("kg", "g", 1000), ("hours", "minutes", 60))[draw(0, 2)]
    count, rest = draw(2, 9 * level), draw(1, factor - 1)
    times = draw(2, 9 * level)
    if level == 1:
        code = f"x = {count} * {factor} + {rest}\nprint(x)"
        question = f"How many {small} are {count} {big} and {rest} {small}?"
        return MathProblem(question, f"{count * factor + rest} {small}", code)
    code = f"x = {times} * ( {count} * {factor} + {rest})\nprint(x)"
    question = f"How many {small} are {times} times {count} {big} and {rest} {small}?"
    return MathProblem(question, f"{times * (count * factor + rest)} {small}", code)


def _power(draw: Draw, level: int) -> MathProblem:
    base, exponent, modulus = draw(2, 10**level), draw(3, 10**level), draw(11, 10 ** (level + 1))
    code = f"x = pow( {base}, {exponent}, {modulus})\nprint(x)"
    question = f"What is the remainder of {base} to the power {exponent} divided by {modulus}?"
    return MathProblem(question, str(pow(base, exponent, modulus)), code)


def _digits(draw: Draw, level: int) -> MathProblem:
    base, exponent = draw(2, 9 + 20 * (level - 1)), draw(3, 10 * level)
    value = sum(map(int, str(base**exponent)))
    code = f"x = {base} ** {exponent}\nprint(sum(map(int, str(x))))"
    return MathProblem(f"What is the sum of the digits of {base} to the power {exponent}?", str(value), code)


def _primes(draw: Draw, level: int) -> MathProblem:
    low = draw(2, 30 * 10 ** (level - 1))
    high = low + draw(5, 40 * level)
    value = sum(_prime(each) for each in range(low, high + 1))
    code = f"p = lambda n: n > 1 and all(n % d for d in range(2, n))\nprint(sum(map(p, range( {low}, {high} + 1))))"
    return MathProblem(f"How many primes are there from {low} to {high}?", str(value), code)


def _divisors(draw: Draw, level: int) -> MathProblem:
    n = draw(12, 10 ** (level + 1))
    value = sum(each for each in range(1, n + 1) if n % each == 0)
    code = f"n = {n}\nprint(sum(d for d in range(1, n + 1) if n % d == 0))"
    return MathProblem(f"What is the sum of the divisors of {n}?", str(value), code)


def _factors(draw: Draw, level: int) -> MathProblem:
    n = draw(12, 10 ** (level + 1))
    members = [each for each in range(2, n + 1) if n % each == 0 and _prime(each)]
    code = f"n = {n}\nx = [d for d in range(2, n + 1) if n % d == 0 and all(d % e for e in range(2, d))]\nprint(x)"
    return MathProblem(f"Which primes divide {n}? Answer with the set.", _set(members), code)


def _roots(draw: Draw, level: int) -> MathProblem:
    first, second = sorted((draw(-6 * level, 6 * level), draw(-6 * level, 6 * level)))
    b, c = -(first + second), first * second
    wide = 10 * level
    code = f"b, c = {b}, {c}\nx = [x for x in range(-{wide}, {wide}) if x * x + b * x + c == 0]\nprint(x)"
    question = f"Which integers x solve x * x + b * x + c = 0 for b = {b} and c = {c} ? Answer with the set."
    return MathProblem(question, _set(sorted({first, second})), code)


def _choose(draw: Draw, level: int) -> MathProblem:
    n = draw(5, 10 * level + 10)
    k = draw(2, n - 2)
    code = f"import math\nx = math.comb( {n}, {k})\nprint(x)"
    return MathProblem(f"In how many ways can {k} of {n} people be chosen?", f"{comb(n, k):,}", code)


def _base(draw: Draw, level: int) -> MathProblem:
    base, n = draw(3, 9), draw(10, 10 ** (level + 1))
    text, rest = "", n
    while rest:
        text, rest = f"{rest % base}{text}", rest // base
    code = f"x = int(' {text}', {base})\nprint(x)"
    return MathProblem(f"The digits {text} are a number in base {base}. What is it in base ten?", str(n), code)


def _multiples(draw: Draw, level: int) -> MathProblem:
    a, b, n = draw(2, 9), draw(10, 10 + 5 * level), draw(40, 10 ** (level + 1))
    value = sum(each % a == 0 or each % b == 0 for each in range(1, n + 1))
    code = f"x = [i for i in range(1, {n} + 1) if i % {a} == 0 or i % {b} == 0]\nprint(len(x))"
    return MathProblem(f"How many numbers from 1 to {n} are divisible by {a} or by {b}?", str(value), code)


def _system(draw: Draw, level: int) -> MathProblem:
    x, y = draw(-4 * level, 9 * level), draw(-4 * level, 9 * level)
    total, other = x + y, x - y
    factor = draw(2, 9) if level > 1 else 1
    left = "x + y" if level == 1 else f"{factor} x + {factor} y"
    code = f"s, d = {factor * total}, {other}\nx = (s // {factor} + d) // 2\nprint((x, x - d))"
    question = f"Solve {left} = {factor * total} and x - y = {other} ; answer with (x, y)."
    return MathProblem(question, f"({x}, {y})", code)


def _mean(draw: Draw, level: int) -> MathProblem:
    values = [draw(1, 10 ** (level + 1) - 1) for _ in range(2 + level)]
    text = ", ".join(map(str, values))
    code = f"from fractions import Fraction\nx = [ {text}]\nprint(Fraction(sum(x), len(x)))"
    return MathProblem(f"What is the mean of {text} as a fraction?", str(Fraction(sum(values), len(values))), code)


def _prime(n: int) -> bool:
    return n > 1 and all(n % each for each in range(2, isqrt(n) + 1))


def _set(members: list[int]) -> str:
    return "{" + ", ".join(map(str, members)) + "}"


FAMILIES: Mapping[str, Family] = {
    family.__name__.removeprefix("_"): family
    for family in (
        *(_sum, _product, _remainder, _divisor, _multiple, _fraction, _equation, _percent, _sequence),
        *(_units, _power, _digits, _primes, _divisors, _factors, _roots, _choose, _base, _multiples, _system, _mean),
    )
}
