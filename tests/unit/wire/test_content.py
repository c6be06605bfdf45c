"""Only keyed hashes of contents leave the decoder."""

from __future__ import annotations

import pytest

from pipeline.wire.content import DIGEST_BYTES, contents
from pipeline.wire.errors import WireError
from tests import builders
from tests.builders import Rec

KEY, OTHER = b"one run", b"another run"


def batch(*records: Rec, **fields: int) -> bytes:
    return builders.batch(100, list(records), timestamp_ms=5_000, **fields)


def digests(data: bytes, key: bytes = KEY) -> list[bytes]:
    return [one.digest for one in contents(data, key)]


@pytest.mark.parametrize("codec", range(5))
def test_the_same_content_has_the_same_hash(codec: int) -> None:
    first = batch(Rec(b"k", b"v"), Rec(b"k", b"w"), codec=codec)
    second = batch(Rec(b"k", b"v"), producer_id=4, producer_epoch=1, base_sequence=9)
    assert digests(first)[0] == digests(second)[0] != digests(first)[1]
    assert {len(one) for one in digests(first)} == {DIGEST_BYTES}


def test_key_value_and_their_border_count() -> None:
    data = batch(Rec(b"a", b"bc"), Rec(b"ab", b"c"), Rec(b"", b"abc"), Rec(None, b"abc"))
    assert len(set(digests(data))) == 4


def test_headers_count() -> None:
    plain, tagged = Rec(b"k", b"v"), Rec(b"k", b"v", headers=(("h", b"1"),))
    assert len(set(digests(batch(plain, tagged)))) == 2


def test_hashes_of_two_runs_do_not_compare() -> None:
    data = batch(Rec(b"k", b"v"))
    assert digests(data) != digests(data, OTHER)


def test_no_hash_holds_what_was_written() -> None:
    data = batch(Rec(b"secret-key", b"secret-value"))
    assert b"secret" not in b"".join(digests(data))


def test_tombstones_have_no_content() -> None:
    assert [one.offset for one in contents(batch(Rec(b"k", None), Rec(b"k", b"v")), KEY)] == [101]


def test_times_that_are_none() -> None:
    assert next(contents(batch(Rec(b"k", b"v")), KEY)).create_ms == 5_000
    data = batch(Rec(b"k", b"v"), log_append_time=True)
    assert next(contents(data, KEY)).create_ms is None


def test_broken_records_are_refused() -> None:
    data = bytearray(batch(Rec(b"k", b"v")))
    data[61] = 0x7F  # the first record's length
    with pytest.raises(WireError):
        list(contents(builders.with_crc(data), KEY))
