"""Reports of a ledger as text and as plain values."""

from .money import format_amount


def rolled_up(balances):
    """Return balances with every parent account added: "a:b:c" counts for "a:b" and "a" as well."""
    totals = {}
    for account, amount in balances.items():
        parts = account.split(":")
        for depth in range(1, len(parts) + 1):
            name = ":".join(parts[:depth])
            totals[name] = totals.get(name, 0) + amount
    return dict(sorted(totals.items()))


def balance_table(ledger, depth=None, end=None):
    """Return a table of accounts, indented by level, and a line with the sum at the bottom."""
    balances = ledger.trial_balance(end=end)
    rows = []
    for account, amount in rolled_up(balances).items():
        level = account.count(":")
        if depth is None or level < depth:
            label = "  " * level + account.rsplit(":", 1)[-1]
            rows.append((label, format_amount(amount)))
    rows.append(("total", format_amount(sum(balances.values()))))
    left = max(len(label) for label, _ in rows)
    right = max(len(amount) for _, amount in rows)
    lines = [f"{label.ljust(left)}  {amount.rjust(right)}" for label, amount in rows]
    lines.insert(len(lines) - 1, "-" * (left + 2 + right))
    return "\n".join(lines)


def income_statement(ledger, start=None, end=None):
    """Return income, expenses and profit of a period, in cents and with natural signs."""
    income = expenses = 0
    for entry in ledger.between(start, end):
        if "closing" in entry.tags:
            continue
        income -= entry.amount_on("income")
        expenses += entry.amount_on("expenses")
    return {"income": income, "expenses": expenses, "profit": income - expenses}


def monthly_totals(ledger, account):
    """Return what was booked on an account in each month, months without bookings between two others included."""
    totals = {}
    for entry in ledger.entries:
        amount = entry.amount_on(account)
        if amount != 0:
            month = entry.date[:7]
            totals[month] = totals.get(month, 0) + amount
    if not totals:
        return {}
    months = sorted(totals)
    filled = {}
    year, month = int(months[0][:4]), int(months[0][5:])
    while f"{year:04d}-{month:02d}" <= months[-1]:
        name = f"{year:04d}-{month:02d}"
        filled[name] = totals.get(name, 0)
        month += 1
        if month > 12:
            year, month = year + 1, 1
    return filled
