"""Checksums."""


def parity(number):
    """Return 1 if a number has an odd number of ones."""
    return bin(number).count("1") % 2


def fletcher16(data):
    """Return the Fletcher-16 checksum."""
    low = high = 0
    for byte in data:
        low = (low + byte) % 255
        high = (high + low) % 255
    return high << 8 | low


def adler32(data):
    """Return the Adler-32 checksum."""
    a, b = 1, 0
    for byte in data:
        a = (a + byte) % 65521
        b = (b + a) % 65521
    return (b << 16) + a


def crc(data, bits, polynomial, start=0, final=0):
    """Return a cyclic redundancy check, most significant bit first."""
    top = 1 << (bits - 1)
    mask = (1 << bits) - 1
    value = start
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            if value & top:
                value = (value << 1 ^ polynomial) & mask
            else:
                value = value << 1 & mask
    return value ^ final


def crc8(data):
    """Return the CRC-8 of SMBus: polynomial 0x07."""
    return crc(data, 8, 0x07)


def crc16(data):
    """Return the CRC-16 of XMODEM: polynomial 0x1021."""
    return crc(data, 16, 0x1021)


def luhn(digits):
    """Return the digit that makes a number valid by Luhn's rule."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit)
        if index % 2 == 0:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return -total % 10
