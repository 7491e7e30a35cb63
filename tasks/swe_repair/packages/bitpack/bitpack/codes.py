"""Codes of single numbers and of lists."""


def zigzag(number):
    """Return 0, 1, 2, 3, 4 for 0, -1, 1, -2, 2: small sizes become small numbers."""
    return number * 2 if number >= 0 else -number * 2 - 1


def unzigzag(code):
    """Return the number that `zigzag` makes a code of."""
    half = code >> 1
    return -half - 1 if code & 1 else half


def gray(number):
    """Return the Gray code of a number: neighbours differ in one bit."""
    return number ^ number >> 1


def ungray(code):
    """Return the number of a Gray code."""
    number = 0
    while code:
        number ^= code
        code >>= 1
    return number


def hamming_encode(nibble):
    """Return seven bits for four, such that any single wrong bit can be found.

    Bits are p1 p2 d1 p3 d2 d3 d4, most significant first.
    """
    if not 0 <= nibble < 16:
        raise ValueError(f"{nibble} is not a number of four bits")
    d1, d2, d3, d4 = (nibble >> shift & 1 for shift in (3, 2, 1, 0))
    p1 = d1 ^ d2 ^ d4
    p2 = d1 ^ d3 ^ d4
    p3 = d2 ^ d3 ^ d4
    word = 0
    for bit in (p1, p2, d1, p3, d2, d3, d4):
        word = word << 1 | bit
    return word


def hamming_decode(word):
    """Return (nibble, position of the corrected bit or 0); positions count from 1 at the left."""
    bits = [0] + [word >> shift & 1 for shift in range(6, -1, -1)]
    wrong = 0
    for check in (1, 2, 4):
        parity = 0
        for position in range(1, 8):
            if position & check:
                parity ^= bits[position]
        if parity:
            wrong += check
    if wrong:
        bits[wrong] ^= 1
    nibble = bits[3] << 3 | bits[5] << 2 | bits[6] << 1 | bits[7]
    return nibble, wrong


def run_lengths(items, longest=None):
    """Return (item, count) of every run; runs above `longest` are split."""
    runs = []
    for item in items:
        if runs and runs[-1][0] == item and (longest is None or runs[-1][1] < longest):
            runs[-1] = (item, runs[-1][1] + 1)
        else:
            runs.append((item, 1))
    return runs


def unrun(runs):
    """Return the items of runs."""
    items = []
    for item, count in runs:
        items.extend([item] * count)
    return items


def reverse_bits(number, bits):
    """Return a number with its lowest bits in the opposite order."""
    turned = 0
    for _ in range(bits):
        turned = turned << 1 | number & 1
        number >>= 1
    return turned
