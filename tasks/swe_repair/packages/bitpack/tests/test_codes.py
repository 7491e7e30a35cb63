import pytest
from bitpack import gray, hamming_decode, hamming_encode, run_lengths, ungray, unzigzag, zigzag
from bitpack.codes import reverse_bits, unrun


def test_zigzag():
    assert [zigzag(number) for number in (0, -1, 1, -2, 2)] == [0, 1, 2, 3, 4]
    assert [unzigzag(zigzag(number)) for number in range(-9, 9)] == list(range(-9, 9))


def test_gray_neighbours_differ_in_one_bit():
    codes = [gray(number) for number in range(64)]
    assert all((a ^ b).bit_count() == 1 for a, b in zip(codes, codes[1:]))
    assert [ungray(code) for code in codes] == list(range(64))


def test_hamming():
    assert hamming_encode(0b1011) == 0b0110011
    for nibble in range(16):
        assert hamming_decode(hamming_encode(nibble)) == (nibble, 0)
    with pytest.raises(ValueError):
        hamming_encode(16)


def test_hamming_corrects_one_bit():
    word = hamming_encode(0b0110)
    for position in range(1, 8):
        assert hamming_decode(word ^ 1 << (7 - position)) == (0b0110, position)


def test_run_lengths():
    assert run_lengths("aaab") == [("a", 3), ("b", 1)]
    assert run_lengths("aaaaa", longest=2) == [("a", 2), ("a", 2), ("a", 1)]
    assert run_lengths([]) == []
    assert unrun([("x", 2), ("y", 1)]) == ["x", "x", "y"]


def test_reverse_bits():
    assert reverse_bits(0b00010110, 8) == 0b01101000
    assert reverse_bits(0b110, 3) == 0b011
