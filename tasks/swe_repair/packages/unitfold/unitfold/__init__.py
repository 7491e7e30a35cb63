"""Quantities with units."""

from .dimension import Dimension
from .quantity import DimensionError, Quantity
from .text import best_prefix, parse_quantity, parse_unit
from .units import Registry, Unit, UnknownUnit

__all__ = [
    "Dimension",
    "DimensionError",
    "Quantity",
    "Registry",
    "Unit",
    "UnknownUnit",
    "best_prefix",
    "parse_quantity",
    "parse_unit",
]
