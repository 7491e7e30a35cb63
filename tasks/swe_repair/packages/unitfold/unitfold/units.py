"""Units and where their names are looked up."""

from fractions import Fraction

from .dimension import Dimension, powers

PREFIXES = {
    "G": Fraction(10**9),
    "M": Fraction(10**6),
    "k": Fraction(10**3),
    "h": Fraction(10**2),
    "d": Fraction(1, 10),
    "c": Fraction(1, 10**2),
    "m": Fraction(1, 10**3),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
}


class UnknownUnit(KeyError):
    """A name that no unit has."""

    def __str__(self):
        return f"unknown unit {self.args[0]!r}"


class Unit:
    """A product of named units with a factor, and an offset, to the base units."""

    def __init__(self, names, factor, dimension, offset=0):
        self.names = {name: exponent for name, exponent in names.items() if exponent}
        self.factor = Fraction(factor)
        self.dimension = dimension
        self.offset = Fraction(offset)

    def _plain(self):
        if self.offset:
            raise ValueError(f"{self} has an offset; only differences multiply")

    def __mul__(self, other):
        self._plain()
        other._plain()
        names = dict(self.names)
        for name, exponent in other.names.items():
            names[name] = names.get(name, 0) + exponent
        return Unit(names, self.factor * other.factor, self.dimension * other.dimension)

    def __pow__(self, power):
        self._plain()
        names = {name: exponent * power for name, exponent in self.names.items()}
        return Unit(names, self.factor**power, self.dimension**power)

    def __truediv__(self, other):
        return self * other**-1

    def __eq__(self, other):
        if not isinstance(other, Unit):
            return NotImplemented
        mine = (self.factor, self.offset, self.dimension)
        return mine == (other.factor, other.offset, other.dimension)

    def __hash__(self):
        return hash((self.factor, self.offset, self.dimension))

    def __str__(self):
        return powers(self.names.items()) or "1"

    __repr__ = __str__

    def to_base(self, value):
        """Return a value of this unit in base units."""
        return value * self.factor + self.offset

    def from_base(self, value):
        """Return a value of base units in this unit."""
        return (value - self.offset) / self.factor


class Registry:
    """Units by name; prefixes are tried where no unit has the name itself."""

    def __init__(self):
        self.units = {}
        self.prefixed = set()

    def define(self, name, factor, dimension, offset=0, prefixes=False):
        """Add a unit. Raises ValueError if the name is taken."""
        if name in self.units:
            raise ValueError(f"unit {name!r} is defined twice")
        self.units[name] = Unit({name: 1}, factor, dimension, offset)
        if prefixes:
            self.prefixed.add(name)

    def get(self, name):
        """Return the unit of a name, such as "m", "km" or "degC"."""
        if name in self.units:
            return self.units[name]
        prefix, rest = name[:1], name[1:]
        if prefix in PREFIXES and rest in self.prefixed:
            unit = self.units[rest]
            return Unit({name: 1}, unit.factor * PREFIXES[prefix], unit.dimension)
        raise UnknownUnit(name)


def standard():
    """Return a registry with SI units and some everyday ones."""
    length, mass, time = Dimension(length=1), Dimension(mass=1), Dimension(time=1)
    temperature, current = Dimension(temperature=1), Dimension(current=1)
    force = mass * length / time**2
    registry = Registry()
    for name, factor, dimension in (
        ("m", 1, length),
        ("g", Fraction(1, 1000), mass),
        ("s", 1, time),
        ("K", 1, temperature),
        ("A", 1, current),
        ("N", 1, force),
        ("J", 1, force * length),
        ("W", 1, force * length / time),
        ("Pa", 1, force / length**2),
        ("V", 1, force * length / time / current),
        ("Hz", 1, time**-1),
        ("l", Fraction(1, 1000), length**3),
    ):
        registry.define(name, factor, dimension, prefixes=True)
    for name, factor, dimension in (
        ("min", 60, time),
        ("h", 3600, time),
        ("day", 86400, time),
        ("inch", Fraction(254, 10000), length),
        ("ft", Fraction(3048, 10000), length),
        ("mile", Fraction(1609344, 1000), length),
        ("lb", Fraction(45359237, 10**8), mass),
        ("bar", 10**5, force / length**2),
    ):
        registry.define(name, factor, dimension)
    registry.define("degC", 1, temperature, offset=Fraction(27315, 100))
    registry.define("degF", Fraction(5, 9), temperature, offset=Fraction(45967, 180))
    return registry


STANDARD = standard()
