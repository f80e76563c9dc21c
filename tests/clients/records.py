"""Records as the drivers exchange them, and the data set every client writes and must read back equal."""

import random
from dataclasses import dataclass, replace

FIRST_MS = 1_700_000_000_000
STEP_MS = 1_000


@dataclass(frozen=True)
class Record:
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple = ()
    timestamp: int | None = None
    offset: int | None = None


def pack(data):
    return "-" if data is None else "x" + data.hex()


def unpack(text):
    return None if text == "-" else bytes.fromhex(text[1:])


def to_line(record):
    headers = ",".join(f"{pack(name.encode())}={pack(value)}" for name, value in record.headers) or "-"
    number = lambda value: "-" if value is None else str(value)
    return "\t".join(
        [
            str(record.partition),
            number(record.offset),
            number(record.timestamp),
            pack(record.key),
            pack(record.value),
            headers,
        ]
    )


def from_line(text):
    partition, offset, timestamp, key, value, headers = text.split("\t")
    pairs = [] if headers == "-" else [item.split("=") for item in headers.split(",")]
    return Record(
        partition=int(partition),
        offset=None if offset == "-" else int(offset),
        timestamp=None if timestamp == "-" else int(timestamp),
        key=unpack(key),
        value=unpack(value),
        headers=tuple((unpack(name).decode(), unpack(data)) for name, data in pairs),
    )


def _one(partition, index, can):
    key, value = b"k%d-%d" % (partition, index), b"value %d of partition %d, " % (index, partition) * 8
    timestamp = FIRST_MS + index * STEP_MS if "time" in can else None
    record = Record(partition, key, value, (), timestamp)
    headers = [("a", b"1"), ("b", b"\x00\xff\x80")]
    if "repeat-header" in can:
        headers.append(("a", b"2"))
    if "null-header" in can:
        headers.append(("n", None))
    kinds = [
        replace(record, headers=tuple(headers)),
        replace(record, key=None) if "null-key" in can else record,
        replace(record, value=None) if "tombstone" in can else record,
        replace(record, key=b"" if "empty-key" in can else key, value=b"" if "empty-value" in can else value, headers=(("e", b"" if "empty-header" in can else b"e"),)),
        replace(record, key=bytes(range(256)), value="Zürich ✓".encode() + b"\xfe\xff"),
        replace(record, value=value * 20, headers=(("größe", "viel".encode()),)),
    ]
    record = kinds[index % len(kinds)]
    return record if "headers" in can else replace(record, headers=())


def data_set(can, partitions=3, per_partition=60):
    """Every kind of record the client can express: keys and values null, empty and binary, headers repeated, null and empty."""
    return [_one(partition, index, can) for index in range(per_partition) for partition in range(partitions)]


def big_record(partition, size, seed):
    """Does not compress, so that its size on the wire is its size."""
    return Record(partition, b"big", random.Random(seed).randbytes(size))
