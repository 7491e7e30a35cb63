"""Streams of bits, most significant first."""

from .codes import unzigzag, zigzag


class OutOfBits(EOFError):
    """A read behind the end of the data."""


class Positioned:
    """A stream that knows how many bits lie behind it."""

    def __init__(self):
        self.position = 0

    @property
    def aligned(self):
        """True at the border of a byte."""
        return self.position % 8 == 0

    def padding(self):
        """Return the number of bits to the next border of a byte."""
        return -self.position % 8


class BitWriter(Positioned):
    """Collects bits."""

    def __init__(self):
        super().__init__()
        self.value = 0

    def write(self, number, bits):
        """Append a number as so many bits. Raises ValueError if it does not fit."""
        if number < 0 or number >> bits:
            raise ValueError(f"{number} does not fit into {bits} bits")
        self.value = (self.value << bits) | number
        self.position += bits

    def write_signed(self, number, bits):
        """Append a number in two's complement."""
        half = 1 << (bits - 1)
        if not -half <= number < half:
            raise ValueError(f"{number} does not fit into {bits} signed bits")
        self.write(number & ((1 << bits) - 1), bits)

    def write_varint(self, number):
        """Append a number as groups of seven bits, lowest first, each but the last led by a 1."""
        if number < 0:
            raise ValueError(f"{number} is negative; use zigzag")
        while number >= 128:
            self.write(number & 127 | 128, 8)
            number >>= 7
        self.write(number, 8)

    def write_delta(self, numbers):
        """Append a list of numbers as its length and the differences between neighbours."""
        self.write_varint(len(numbers))
        last = 0
        for number in numbers:
            self.write_varint(zigzag(number - last))
            last = number

    def write_gamma(self, number):
        """Append a positive number in Elias gamma code: its length in zeros, then the number."""
        if number < 1:
            raise ValueError(f"gamma codes are for positive numbers, not {number}")
        size = number.bit_length()
        self.write(0, size - 1)
        self.write(number, size)

    def align(self):
        """Append zeros up to the border of a byte."""
        self.write(0, self.padding())

    def data(self):
        """Return the bytes; the last one is filled with zeros."""
        size = (self.position + 7) // 8
        return (self.value << self.padding()).to_bytes(size, "big")


class BitReader(Positioned):
    """Reads what `BitWriter` wrote."""

    def __init__(self, data):
        super().__init__()
        self.bytes = bytes(data)

    @property
    def left(self):
        """Number of bits that are left."""
        return len(self.bytes) * 8 - self.position

    def read(self, bits):
        """Return the next bits as a number."""
        if bits > self.left:
            raise OutOfBits(f"{bits} bits wanted, {self.left} left")
        number = 0
        for _ in range(bits):
            byte = self.bytes[self.position // 8]
            bit = byte >> (7 - self.position % 8) & 1
            number = number << 1 | bit
            self.position += 1
        return number

    def read_signed(self, bits):
        """Return the next bits as a number in two's complement."""
        number = self.read(bits)
        if number >> (bits - 1):
            number -= 1 << bits
        return number

    def read_varint(self):
        """Return a number written by `write_varint`."""
        number = 0
        shift = 0
        while True:
            byte = self.read(8)
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def read_delta(self):
        """Return a list written by `write_delta`."""
        numbers = []
        last = 0
        for _ in range(self.read_varint()):
            last += unzigzag(self.read_varint())
            numbers.append(last)
        return numbers

    def read_gamma(self):
        """Return a number written by `write_gamma`."""
        zeros = 0
        while self.read(1) == 0:
            zeros += 1
        return 1 << zeros | self.read(zeros)

    def align(self):
        """Skip to the border of a byte."""
        self.position += self.padding()
