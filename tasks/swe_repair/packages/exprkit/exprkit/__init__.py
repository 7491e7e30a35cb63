"""Arithmetic expressions."""

from .algebra import differentiate, show, simplify, substitute
from .evaluator import EvaluationError, evaluate, names
from .lexer import SyntaxProblem, Token, tokenize
from .nodes import Binary, Call, Name, Number, Unary
from .parser import parse

__all__ = [
    "Binary",
    "Call",
    "EvaluationError",
    "Name",
    "Number",
    "SyntaxProblem",
    "Token",
    "Unary",
    "differentiate",
    "evaluate",
    "names",
    "parse",
    "show",
    "simplify",
    "substitute",
    "tokenize",
]
