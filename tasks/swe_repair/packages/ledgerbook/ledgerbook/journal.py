"""Entries and postings, and the text format they are kept in."""

from .money import AmountError, format_amount, parse_amount


class JournalError(ValueError):
    """A journal that cannot be read; the message names the line."""

    def __init__(self, line, reason):
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class Posting:
    """An amount booked on an account."""

    def __init__(self, account, amount):
        self.account = account
        self.amount = amount

    def __eq__(self, other):
        return isinstance(other, Posting) and (self.account, self.amount) == (other.account, other.amount)

    def __repr__(self):
        return f"Posting({self.account!r}, {self.amount})"


class Entry:
    """A dated transaction whose postings sum to zero."""

    def __init__(self, date, description, postings, tags=()):
        self.date = date
        self.description = description
        self.postings = list(postings)
        self.tags = set(tags)

    @property
    def total(self):
        """Sum of all postings in cents; zero in a balanced entry."""
        return sum(posting.amount for posting in self.postings)

    def accounts(self):
        """Return the accounts in the order in which they are booked, each once."""
        names = []
        for posting in self.postings:
            if posting.account not in names:
                names.append(posting.account)
        return names

    def amount_on(self, account):
        """Return what the entry books on an account and its sub-accounts."""
        booked = 0
        for posting in self.postings:
            if posting.account == account or posting.account.startswith(account + ":"):
                booked += posting.amount
        return booked

    def render(self):
        """Return the entry as text, with amounts aligned on the right."""
        tags = "".join(f" #{tag}" for tag in sorted(self.tags))
        width = max(len(posting.account) for posting in self.postings)
        amounts = [format_amount(posting.amount) for posting in self.postings]
        longest = max(len(amount) for amount in amounts)
        lines = [f"{self.date} {self.description}{tags}"]
        for posting, amount in zip(self.postings, amounts):
            lines.append(f"  {posting.account.ljust(width)}  {amount.rjust(longest)}")
        return "\n".join(lines)


def valid_date(text):
    """Return True for an existing day written as YYYY-MM-DD."""
    parts = text.split("-")
    if [len(part) for part in parts] != [4, 2, 2] or not all(part.isdigit() for part in parts):
        return False
    year, month, day = (int(part) for part in parts)
    if not 1 <= month <= 12:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return 1 <= day <= lengths[month - 1]


def parse_head(text, number):
    """Return date, description and tags of an entry's first line."""
    date, _, rest = text.partition(" ")
    if not valid_date(date):
        raise JournalError(number, f"not a date: {date!r}")
    words, tags = [], []
    for word in rest.split():
        if word.startswith("#") and len(word) > 1:
            tags.append(word[1:])
        else:
            words.append(word)
    if not words:
        raise JournalError(number, "an entry needs a description")
    return date, " ".join(words), tags


def parse_posting(text, number):
    """Return account and amount of a posting line; the amount is None where it is left out."""
    account, _, amount = text.strip().partition("  ")
    if not account:
        raise JournalError(number, "a posting needs an account")
    if not amount.strip():
        return account, None
    try:
        return account, parse_amount(amount)
    except AmountError as error:
        raise JournalError(number, str(error)) from error


def close_entry(head, lines):
    """Make an entry of a parsed head and its posting lines, filling in the amount that is left out."""
    number, date, description, tags = head
    missing = [account for account, amount in lines if amount is None]
    known = sum(amount for _, amount in lines if amount is not None)
    if len(missing) > 1:
        raise JournalError(number, "only one amount may be left out")
    if not missing and known != 0:
        raise JournalError(number, f"entry is off by {format_amount(known)}")
    if len(lines) < 2:
        raise JournalError(number, "an entry needs two postings")
    postings = [Posting(account, -known if amount is None else amount) for account, amount in lines]
    return Entry(date, description, postings, tags)


def parse_journal(text):
    """Return the entries of a journal, in the order of the text. Lines that start with ";" are comments."""
    entries = []
    head, lines = None, []
    for number, line in enumerate(text.splitlines() + [""], start=1):
        if line.lstrip().startswith(";"):
            continue
        if not line.strip():
            if head is not None:
                entries.append(close_entry(head, lines))
            head, lines = None, []
        elif line[0] in " \t":
            if head is None:
                raise JournalError(number, "a posting outside an entry")
            lines.append(parse_posting(line, number))
        else:
            if head is not None:
                entries.append(close_entry(head, lines))
                lines = []
            head = (number, *parse_head(line, number))
    return entries
