"""Plain-text double-entry bookkeeping."""

from .journal import Entry, JournalError, Posting, parse_journal
from .ledger import Ledger
from .money import allocate, format_amount, parse_amount
from .report import balance_table, income_statement, monthly_totals

__all__ = [
    "Entry",
    "JournalError",
    "Ledger",
    "Posting",
    "allocate",
    "balance_table",
    "format_amount",
    "income_statement",
    "monthly_totals",
    "parse_amount",
    "parse_journal",
]
