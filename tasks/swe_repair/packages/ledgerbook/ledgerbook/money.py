"""Amounts of money as whole cents."""


class AmountError(ValueError):
    """A text that is not an amount."""


def parse_amount(text):
    """Return the cents that a text such as "-1,250.5" or "(3.00)" stands for.

    Parentheses mean a negative amount, commas group thousands, and at most two decimals are allowed.
    """
    text = text.strip()
    negative = False
    if text.startswith("(") and text.endswith(")"):
        negative = True
        text = text[1:-1].strip()
    if text[:1] in ("-", "+"):
        if text[0] == "-":
            negative = not negative
        text = text[1:].strip()
    whole, point, cents = text.partition(".")
    digits = whole.replace(",", "")
    if not digits.isdigit() or (point and not cents.isdigit()):
        raise AmountError(f"not an amount: {text!r}")
    if len(cents) > 2:
        raise AmountError(f"too many decimals: {text!r}")
    value = int(digits) * 100 + int(cents.ljust(2, "0") or "0")
    return -value if negative else value


def format_amount(cents, symbol="", grouped=True):
    """Return cents as text with two decimals; negative amounts get a leading minus."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    if grouped:
        digits = f"{whole:,}"
    else:
        digits = str(whole)
    return f"{sign}{symbol}{digits}.{rest:02d}"


def allocate(cents, weights):
    """Split an amount in proportion to weights without losing a cent.

    The cents that are left over by rounding down go to the first shares.
    """
    total = sum(weights)
    if total <= 0 or any(weight < 0 for weight in weights):
        raise AmountError(f"weights must be non-negative and not all zero: {weights!r}")
    sign = -1 if cents < 0 else 1
    amount = abs(cents)
    shares = [amount * weight // total for weight in weights]
    left = amount - sum(shares)
    for index, weight in enumerate(weights):
        if left == 0:
            break
        if weight > 0:
            shares[index] += 1
            left -= 1
    return [sign * share for share in shares]
