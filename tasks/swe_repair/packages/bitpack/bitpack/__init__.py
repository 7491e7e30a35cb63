"""Numbers as bits."""

from .bitset import BitSet
from .checks import adler32, crc8, crc16, fletcher16, parity
from .codes import gray, hamming_decode, hamming_encode, run_lengths, ungray, unzigzag, zigzag
from .record import Record
from .stream import BitReader, BitWriter, OutOfBits

__all__ = [
    "BitReader",
    "BitSet",
    "BitWriter",
    "OutOfBits",
    "Record",
    "adler32",
    "crc16",
    "crc8",
    "fletcher16",
    "gray",
    "hamming_decode",
    "hamming_encode",
    "parity",
    "run_lengths",
    "ungray",
    "unzigzag",
    "zigzag",
]
