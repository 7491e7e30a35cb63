import pytest
from bitpack import BitSet, Record


def test_members():
    numbers = BitSet([3, 0, 10])
    assert list(numbers) == [0, 3, 10]
    assert 3 in numbers
    assert 4 not in numbers
    assert -1 not in numbers
    assert len(numbers) == 3


def test_changes():
    numbers = BitSet([1, 2])
    numbers.discard(1)
    numbers.discard(7)
    numbers.toggle(2)
    numbers.toggle(5)
    assert list(numbers) == [5]
    with pytest.raises(ValueError):
        numbers.add(-1)


def test_algebra():
    a, b = BitSet([1, 2, 3]), BitSet([3, 4])
    assert list(a | b) == [1, 2, 3, 4]
    assert list(a & b) == [3]
    assert list(a - b) == [1, 2]
    assert BitSet([3]).issubset(a)
    assert not b.issubset(a)


def test_rank_and_select():
    numbers = BitSet([2, 5, 9])
    assert [numbers.rank(number) for number in (0, 2, 3, 6, 99)] == [0, 0, 1, 2, 3]
    assert [numbers.select(index) for index in range(3)] == [2, 5, 9]
    with pytest.raises(IndexError):
        numbers.select(3)


def test_subsets():
    assert [list(sub) for sub in BitSet([0, 2]).subsets()] == [[], [0], [2], [0, 2]]


LAYOUT = Record(kind=4, value=-9, flag=1)


def test_record_round_trip():
    data = LAYOUT.pack(kind=9, value=-200, flag=1)
    assert len(data) == LAYOUT.size == 3
    assert LAYOUT.unpack(data) == {"kind": 9, "value": -200, "flag": 1}


def test_missing_fields_are_zero():
    assert LAYOUT.unpack(LAYOUT.pack(kind=3)) == {"kind": 3, "value": 0, "flag": 0}


def test_unknown_fields():
    with pytest.raises(KeyError, match="colour"):
        LAYOUT.pack(colour=1)


def test_damaged_records():
    data = bytearray(LAYOUT.pack(kind=1))
    data[0] ^= 4
    with pytest.raises(ValueError, match="checksum"):
        LAYOUT.unpack(bytes(data))
    with pytest.raises(ValueError, match="3 bytes, not 1"):
        LAYOUT.unpack(b"\0")
