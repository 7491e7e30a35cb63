"""Named fields of so many bits."""

from .checks import crc8
from .stream import BitReader, BitWriter


class Record:
    """A layout: field names with their bits; a negative number of bits means a signed field."""

    def __init__(self, **fields):
        self.fields = fields

    @property
    def size(self):
        """Number of bytes of a packed record with its checksum."""
        return (sum(abs(bits) for bits in self.fields.values()) + 7) // 8 + 1

    def pack(self, **values):
        """Return a record as bytes, with a CRC-8 at the end. Fields that are not given are 0."""
        unknown = sorted(set(values) - set(self.fields))
        if unknown:
            raise KeyError(unknown[0])
        writer = BitWriter()
        for name, bits in self.fields.items():
            if bits < 0:
                writer.write_signed(values.get(name, 0), -bits)
            else:
                writer.write(values.get(name, 0), bits)
        data = writer.data()
        return data + bytes([crc8(data)])

    def unpack(self, data):
        """Return the fields of a packed record. Raises ValueError if length or checksum are wrong."""
        if len(data) != self.size:
            raise ValueError(f"a record has {self.size} bytes, not {len(data)}")
        if crc8(data[:-1]) != data[-1]:
            raise ValueError("wrong checksum")
        reader = BitReader(data)
        values = {}
        for name, bits in self.fields.items():
            values[name] = reader.read_signed(-bits) if bits < 0 else reader.read(bits)
        return values
