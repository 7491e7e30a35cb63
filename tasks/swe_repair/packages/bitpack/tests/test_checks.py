from bitpack import adler32, crc8, crc16, fletcher16, parity
from bitpack.checks import luhn

CHECK = b"123456789"


def test_parity():
    assert [parity(number) for number in (0, 1, 3, 7)] == [0, 1, 0, 1]


def test_fletcher16():
    assert fletcher16(b"abcde") == 0xC8F0
    assert fletcher16(b"abcdefgh") == 0x0627


def test_adler32():
    assert adler32(b"Wikipedia") == 0x11E60398
    assert adler32(b"") == 1


def test_crc8():
    assert crc8(CHECK) == 0xF4


def test_crc16():
    assert crc16(CHECK) == 0x31C3
    assert crc16(b"") == 0


def test_luhn():
    assert luhn("7992739871") == 3
    assert luhn("0") == 0
