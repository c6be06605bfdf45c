"""What users wrote, as keyed hashes: all that leaves the decoder of a record's key, value and headers.

The hash is BLAKE2b under a key that is made for one run and kept nowhere, so that nobody can try likely contents
against it, and hashes of two runs do not compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from pipeline.wire.batch import LOG_APPEND_TIME, TIMESTAMP_TYPE_MASK
from pipeline.wire.cursor import read_varint, read_varlong
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits
from pipeline.wire.record import opened

DIGEST_BYTES = 16
LATEST_MS = 2**62
"""No client means a later time."""


class Content(NamedTuple):
    """One record that has a value.

    Attributes:
        offset: its offset.
        create_ms: CreateTime as its client set it; None where it has none or the broker wrote its own over it.
        digest: hash of key, value and headers, `DIGEST_BYTES` long.
    """

    offset: int
    create_ms: int | None
    digest: bytes


def contents(batch: bytes, key: bytes, limits: Limits = DEFAULT_LIMITS) -> Iterator[Content]:
    """Hash the records of one batch of message format 2; those without a value (tombstones) have no content.

    Args:
        batch: the whole batch, its checksum right.
        key: key of the hash, up to 64 bytes.
        limits: bounds.

    Raises:
        WireError: `bad_record`, `codec` or `too_large`, at the latest when the last record was taken.
    """
    header, payload = opened(batch, limits)
    is_append_time = header.attributes & TIMESTAMP_TYPE_MASK == LOG_APPEND_TIME << 3
    at = 0
    for _ in range(header.records_count):
        length, at = read_varint(payload, at)
        end = at + length
        if length < 0 or end > len(payload):
            raise WireError("record longer than its batch")
        timestamp_delta, at = read_varlong(payload, at + 1)
        offset_delta, at = read_varint(payload, at)
        key_size, key_at = read_varint(payload, at)
        value_size, _ = read_varint(payload, key_at + max(key_size, 0))
        if value_size > 0:
            create_ms = header.base_timestamp_ms + timestamp_delta
            is_known = not is_append_time and 0 <= create_ms <= LATEST_MS
            yield Content(
                header.base_offset + offset_delta,
                create_ms if is_known else None,
                blake2b(payload[at:end], digest_size=DIGEST_BYTES, key=key).digest(),
            )
        at = end
