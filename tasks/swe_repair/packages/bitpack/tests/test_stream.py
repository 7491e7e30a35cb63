import pytest
from bitpack import BitReader, BitWriter, OutOfBits


def test_bits_are_written_from_the_left():
    writer = BitWriter()
    writer.write(1, 1)
    writer.write(2, 3)
    assert writer.data() == bytes([0b10100000])


def test_read_what_was_written():
    writer = BitWriter()
    for number, bits in ((5, 3), (1023, 10), (0, 2), (77, 7)):
        writer.write(number, bits)
    reader = BitReader(writer.data())
    assert [reader.read(bits) for bits in (3, 10, 2, 7)] == [5, 1023, 0, 77]
    assert reader.left == 2


def test_numbers_must_fit():
    writer = BitWriter()
    with pytest.raises(ValueError):
        writer.write(8, 3)
    with pytest.raises(ValueError):
        writer.write(-1, 3)
    with pytest.raises(ValueError):
        writer.write_signed(4, 3)
    assert writer.data() == b""


def test_signed():
    writer = BitWriter()
    for number in (-4, 3, -1):
        writer.write_signed(number, 3)
    reader = BitReader(writer.data())
    assert [reader.read_signed(3) for _ in range(3)] == [-4, 3, -1]


@pytest.mark.parametrize(("number", "data"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**20, "808040")])
def test_varints(number, data):
    writer = BitWriter()
    writer.write_varint(number)
    assert writer.data().hex() == data
    assert BitReader(writer.data()).read_varint() == number


def test_negative_varints():
    with pytest.raises(ValueError):
        BitWriter().write_varint(-1)


def test_delta():
    writer = BitWriter()
    writer.write_delta([1000, 1001, 998, 998])
    assert len(writer.data()) == 6
    assert BitReader(writer.data()).read_delta() == [1000, 1001, 998, 998]


def test_gamma():
    writer = BitWriter()
    for number in (1, 2, 5, 16):
        writer.write_gamma(number)
    assert writer.position == 1 + 3 + 5 + 9
    reader = BitReader(writer.data())
    assert [reader.read_gamma() for _ in range(4)] == [1, 2, 5, 16]
    with pytest.raises(ValueError):
        writer.write_gamma(0)


def test_align():
    writer = BitWriter()
    writer.write(1, 1)
    assert not writer.aligned
    writer.align()
    writer.write(255, 8)
    assert writer.aligned
    reader = BitReader(writer.data())
    reader.read(1)
    reader.align()
    assert reader.read(8) == 255


def test_out_of_bits():
    reader = BitReader(b"\x01")
    reader.read(5)
    with pytest.raises(OutOfBits, match="4 bits wanted, 3 left"):
        reader.read(4)
