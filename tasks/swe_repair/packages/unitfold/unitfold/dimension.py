"""Exponents of the base quantities."""

BASE = ("length", "mass", "time", "temperature", "current")
SYMBOLS = ("m", "kg", "s", "K", "A")


class Dimension:
    """A product of powers of the base quantities."""

    def __init__(self, **exponents):
        unknown = set(exponents) - set(BASE)
        if unknown:
            raise ValueError(f"unknown base quantity {sorted(unknown)[0]!r}")
        self.exponents = tuple(exponents.get(name, 0) for name in BASE)

    @classmethod
    def of(cls, exponents):
        """Return the dimension with these five exponents."""
        return cls(**dict(zip(BASE, exponents)))

    @property
    def none(self):
        """True for a plain number."""
        return not any(self.exponents)

    def __mul__(self, other):
        return Dimension.of([a + b for a, b in zip(self.exponents, other.exponents)])

    def __truediv__(self, other):
        return Dimension.of([a - b for a, b in zip(self.exponents, other.exponents)])

    def __pow__(self, power):
        return Dimension.of([a * power for a in self.exponents])

    def root(self, degree):
        """Return the dimension whose power is this one. Raises ValueError if there is none."""
        if any(exponent % degree for exponent in self.exponents):
            raise ValueError(f"{self} has no root of degree {degree}")
        return Dimension.of([exponent // degree for exponent in self.exponents])

    def __eq__(self, other):
        return isinstance(other, Dimension) and self.exponents == other.exponents

    def __hash__(self):
        return hash(self.exponents)

    def __str__(self):
        return powers(zip(SYMBOLS, self.exponents)) or "1"

    __repr__ = __str__


def powers(pairs):
    """Return (symbol, exponent) pairs as text such as "kg m/s^2"."""
    above, below = [], []
    for symbol, exponent in pairs:
        if exponent == 0:
            continue
        size = abs(exponent)
        word = symbol if size == 1 else f"{symbol}^{size}"
        if exponent > 0:
            above.append(word)
        else:
            below.append(word)
    text = " ".join(above)
    if below:
        text = (text or "1") + "/" + "/".join(below)
    return text
