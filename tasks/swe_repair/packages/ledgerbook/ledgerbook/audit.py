"""Checks of a ledger, in a fixed order."""


class Checklist:
    """Checks are the methods whose names begin with "check_", made in the order in which they are defined."""

    def titles(self):
        """Return the names of the checks without their prefix."""
        return [name[len("check_") :] for name in vars(type(self)) if name.startswith("check_")]

    def run(self, ledger, stop_at=None):
        """Return "title: problem" for every problem, at most `stop_at`."""
        problems = []
        for title in self.titles():
            for problem in getattr(self, "check_" + title)(ledger):
                problems.append(f"{title}: {problem}")
                if stop_at is not None and len(problems) >= stop_at:
                    return problems
        return problems


class Audit(Checklist):
    """What a bookkeeper looks at before closing a period."""

    def __init__(self, limit=100_000):
        self.limit = limit

    def check_accounts(self, ledger):
        """Find accounts outside the five kinds."""
        kinds = ("assets", "liabilities", "equity", "income", "expenses")
        for account in ledger.accounts():
            if account.split(":")[0] not in kinds:
                yield f"unknown kind of account {account}"

    def check_amounts(self, ledger):
        """Find postings of nothing, and postings above the limit."""
        for entry in ledger.entries:
            for posting in entry.postings:
                if posting.amount == 0:
                    yield f"{entry.date} {posting.account} is booked with 0"
                elif abs(posting.amount) > self.limit:
                    yield f"{entry.date} {posting.account} exceeds the limit"

    def check_cash(self, ledger):
        """Find the first day on which cash is negative."""
        for date, _, _, balance in ledger.register("assets:cash"):
            if balance < 0:
                yield f"negative on {date}"
                break

    def check_duplicates(self, ledger):
        """Find entries that are booked twice on a day."""
        seen = set()
        for entry in ledger.entries:
            key = (entry.date, entry.description, tuple(sorted((p.account, p.amount) for p in entry.postings)))
            if key in seen:
                yield f"{entry.date} {entry.description}"
            seen.add(key)
