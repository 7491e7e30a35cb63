"""Balances over the entries of a journal."""

from .journal import Entry, Posting


class LedgerBase:
    """Entries in the order of their dates; entries of one day keep their order."""

    def __init__(self, entries=()):
        self.entries = []
        for entry in entries:
            self.add(entry)

    def __len__(self):
        return len(self.entries)

    def add(self, entry):
        """Insert an entry behind all that are not later."""
        if entry.total != 0:
            raise ValueError(f"entry {entry.description!r} is off by {entry.total} cents")
        position = len(self.entries)
        while position > 0 and self.entries[position - 1].date > entry.date:
            position -= 1
        self.entries.insert(position, entry)

    def between(self, start=None, end=None):
        """Return the entries from `start` up to, but not including, `end`; both are dates or None."""
        chosen = []
        for entry in self.entries:
            if start is not None and entry.date < start:
                continue
            if end is not None and entry.date >= end:
                break
            chosen.append(entry)
        return chosen


class Ledger(LedgerBase):
    """A ledger that answers questions about accounts."""

    def accounts(self):
        """Return all accounts that were ever booked, sorted."""
        return sorted({posting.account for entry in self.entries for posting in entry.postings})

    def balance(self, account, end=None):
        """Return the balance of an account and its sub-accounts before the date `end`, in cents."""
        return sum(entry.amount_on(account) for entry in self.between(end=end))

    def trial_balance(self, end=None):
        """Return the balance of every account that is not zero."""
        balances = {}
        for entry in self.between(end=end):
            for posting in entry.postings:
                balances[posting.account] = balances.get(posting.account, 0) + posting.amount
        return {account: amount for account, amount in sorted(balances.items()) if amount != 0}

    def register(self, account):
        """Return (date, description, change, running balance) of every entry that touches an account."""
        rows = []
        running = 0
        for entry in self.entries:
            touched = any(name == account or name.startswith(account + ":") for name in entry.accounts())
            if touched:
                change = entry.amount_on(account)
                running = running + change
                rows.append((entry.date, entry.description, change, running))
        return rows

    def tagged(self, tag):
        """Return the entries that carry a tag."""
        return [entry for entry in self.entries if tag in entry.tags]

    def close_period(self, date, equity="equity:retained"):
        """Book all income and expenses before `date` to equity and return the closing entry; None if there are none."""
        postings = []
        result = 0
        for account, amount in self.trial_balance(end=date).items():
            kind = account.split(":")[0]
            if kind == "income" or kind == "expenses":
                postings.append(Posting(account, -amount))
                result += amount
        if not postings:
            return None
        postings.append(Posting(equity, result))
        entry = Entry(date, "closing", postings, ["closing"])
        self.add(entry)
        return entry
