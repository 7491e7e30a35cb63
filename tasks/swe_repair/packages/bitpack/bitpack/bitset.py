"""Sets of small numbers in one integer."""


class BitSet:
    """Numbers from 0 up, each one bit."""

    def __init__(self, numbers=()):
        self.bits = 0
        for number in numbers:
            self.add(number)

    @classmethod
    def of_bits(cls, bits):
        """Return the set whose members are the ones of an integer."""
        made = cls()
        made.bits = bits
        return made

    def add(self, number):
        """Add a number. Raises ValueError if it is negative."""
        if number < 0:
            raise ValueError(f"{number} is negative")
        self.bits |= 1 << number

    def discard(self, number):
        """Remove a number if it is there."""
        self.bits &= ~(1 << number)

    def toggle(self, number):
        """Add a number, or remove it if it is there."""
        self.bits ^= 1 << number

    def __contains__(self, number):
        return number >= 0 and self.bits >> number & 1 == 1

    def __iter__(self):
        bits, number = self.bits, 0
        while bits:
            if bits & 1:
                yield number
            bits >>= 1
            number += 1

    def __len__(self):
        return self.bits.bit_count()

    def __eq__(self, other):
        return isinstance(other, BitSet) and self.bits == other.bits

    def __or__(self, other):
        return BitSet.of_bits(self.bits | other.bits)

    def __and__(self, other):
        return BitSet.of_bits(self.bits & other.bits)

    def __sub__(self, other):
        return BitSet.of_bits(self.bits & ~other.bits)

    def issubset(self, other):
        """Return True if every number is in the other set."""
        return self.bits & other.bits == self.bits

    def rank(self, number):
        """Return how many members are below a number."""
        return (self.bits & (1 << number) - 1).bit_count()

    def select(self, index):
        """Return the member with so many below it. Raises IndexError if there is none."""
        bits = self.bits
        for _ in range(index):
            bits &= bits - 1
        if not bits:
            raise IndexError(f"no member number {index}")
        return (bits & -bits).bit_length() - 1

    def subsets(self):
        """Yield all subsets, smallest number of bits first."""
        sub = 0
        while True:
            yield BitSet.of_bits(sub)
            if sub == self.bits:
                return
            sub = (sub - self.bits) & self.bits
