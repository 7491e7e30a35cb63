"""A number with a unit."""

from .dimension import Dimension
from .units import Unit

ONE = Unit({}, 1, Dimension())


class DimensionError(TypeError):
    """Quantities of different dimensions in one sum or comparison."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second} have different dimensions")


def as_quantity(value):
    """Return a quantity; plain numbers get the unit 1."""
    return value if isinstance(value, Quantity) else Quantity(value, ONE)


class Quantity:
    """A value in a unit. Sums keep the unit of the left operand."""

    def __init__(self, value, unit):
        self.value = value
        self.unit = unit

    def to(self, unit):
        """Return the quantity in another unit of the same dimension; a unit may be given as text."""
        if isinstance(unit, str):
            from .text import parse_unit

            unit = parse_unit(unit)
        if unit.dimension != self.unit.dimension:
            raise DimensionError(self.unit, unit)
        return Quantity(unit.from_base(self.base), unit)

    @property
    def base(self):
        """Value in base units."""
        return self.unit.to_base(self.value)

    def _of_same_kind(self, other):
        other = as_quantity(other)
        if other.unit.dimension != self.unit.dimension:
            raise DimensionError(self.unit, other.unit)
        return other

    def __add__(self, other):
        other = self._of_same_kind(other)
        if self.unit.offset or other.unit.offset:
            raise ValueError("units with an offset cannot be added")
        return Quantity(self.value + other.value * other.unit.factor / self.unit.factor, self.unit)

    def __sub__(self, other):
        return self + as_quantity(other) * -1

    def __mul__(self, other):
        other = as_quantity(other)
        return Quantity(self.value * other.value, self.unit * other.unit)

    def __truediv__(self, other):
        other = as_quantity(other)
        return Quantity(self.value / other.value, self.unit / other.unit)

    def __pow__(self, power):
        return Quantity(self.value**power, self.unit**power)

    def __eq__(self, other):
        if not isinstance(other, Quantity) or self.unit.dimension != other.unit.dimension:
            return False
        return self.base == other.base

    def __lt__(self, other):
        return self.base < self._of_same_kind(other).base

    def __le__(self, other):
        return self.base <= self._of_same_kind(other).base

    def __hash__(self):
        return hash((self.base, self.unit.dimension))

    def close_to(self, other, tolerance=1e-9):
        """Return True if the relative difference of two quantities is within a tolerance."""
        a, b = self.base, self._of_same_kind(other).base
        largest = max(abs(a), abs(b))
        return abs(a - b) <= tolerance * largest

    def simplified(self):
        """Return the quantity in base units."""
        from .units import STANDARD

        unit = ONE
        for name, exponent in zip(("m", "kg", "s", "K", "A"), self.unit.dimension.exponents):
            unit = unit * STANDARD.get(name) ** exponent
        return Quantity(self.base, unit)

    def __repr__(self):
        return f"{self.value} {self.unit}"
