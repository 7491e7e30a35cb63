"""Automata and state machines."""

from .dfa import DFA, combined, equivalent, minimised, shortest_word
from .machine import Machine, Refused, Transition
from .nfa import NFA, determinised
from .pattern import PatternError, compile_pattern

__all__ = [
    "DFA",
    "Machine",
    "NFA",
    "PatternError",
    "Refused",
    "Transition",
    "combined",
    "compile_pattern",
    "determinised",
    "equivalent",
    "minimised",
    "shortest_word",
]
