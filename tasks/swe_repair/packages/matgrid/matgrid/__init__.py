"""Small matrices of exact numbers, and grids of cells."""

from .grid import Grid, life, prefix_sums
from .matrix import Matrix, ShapeError
from .special import fit_polynomial, identity, magic_square, pascal, vandermonde

__all__ = [
    "Grid",
    "Matrix",
    "ShapeError",
    "fit_polynomial",
    "identity",
    "life",
    "magic_square",
    "pascal",
    "prefix_sums",
    "vandermonde",
]
