"""Batches as the lines of a dump show them, and what in those lines cannot be.

Source: `DefaultRecordBatch`; the fields that `DumpLogSegments` prints of it by version.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.wire.batch import Batch, increment_sequence
from pipeline.wire.dump_text_lines import Line, number
from pipeline.wire.errors import WireError

_CODECS = {"none": 0, "nocompressioncodec": 0, "gzip": 1, "gzipcompressioncodec": 1, "snappy": 2,
           "snappycompressioncodec": 2, "lz4": 3, "lz4compressioncodec": 3, "zstd": 4}  # fmt: skip
_CONTROL_TYPES = {"ABORT": 0, "COMMIT": 1}
_JSON_CONTROLS = (
    ("LeaderChange", 2),
    ("SnapshotHeader", 3),
    ("SnapshotFooter", 4),
    ("KRaftVersion", 5),
    ("KRaftVoters", 6),
)
_BOOLEANS = {"true": True, "false": False}


class TextRecord(NamedTuple):
    """A record line.

    Attributes:
        offset: None where the tool was told to skip record metadata.
        timestamp_ms: -1 when not printed.
        sequence: None when not printed.
        control: Control type and coordinator epoch of a marker.
        rest: Key and payload as printed.
        key_size: As printed; None where it is not.
    """

    offset: int | None
    timestamp_ms: int
    sequence: int | None
    control: tuple[int | None, int | None] | None
    rest: str
    key_size: int | None


def record_of(line: Line) -> TextRecord:
    """The record that a line shows."""
    _, at = _timestamp(line.fields)
    return TextRecord(
        number(line.fields.get("offset")),
        at,
        number(line.fields.get("sequence")),
        _control(line.rest),
        line.rest,
        number(line.fields.get("keysize")),
    )


def batch_of(fields: dict[str, str]) -> Batch:
    """A batch line (0.11 and later); what it does not print is unknown: -1 or None.

    Raises:
        WireError: `crc` when the tool found the checksum wrong, `bad_record` for a line that is
            not whole or whose fields contradict each other.
    """
    base, last = _needed(fields, "baseoffset"), _needed(fields, "lastoffset")
    producer_id, epoch = _needed(fields, "producerid"), _needed(fields, "producerepoch")
    sequence = _needed(fields, "basesequence")
    position, size = _needed(fields, "position"), _needed(fields, "size")
    transactional = _flag(fields, "istransactional")
    _check_valid(fields)
    if "iscontrol" in fields:
        control = _flag(fields, "iscontrol")
    else:  # 0.11 and 1.x do not print it; only a marker has an epoch and no sequence
        control = producer_id >= 0 and transactional and sequence == -1
    count = number(fields.get("count"))
    last_sequence = -1 if sequence == -1 else increment_sequence(sequence, max(last - base, 0))
    printed = number(fields.get("lastsequence"))
    if last < base or base < 0:
        raise WireError("last offset below the first", "bad_record")
    if count is not None and not 0 <= count <= last - base + 1:
        raise WireError(f"{count} records between offsets {base} and {last}", "bad_record")
    if printed is not None and printed != last_sequence:
        raise WireError("last sequence does not fit the offsets", "bad_record")
    kind, at = _timestamp(fields)
    horizon = number(fields.get("deletehorizonms"))
    codec = _codec(fields)
    bits = (
        codec | max(kind, 0) << 3 | transactional << 4 | control << 5 | (horizon is not None) << 6
    )
    return Batch(
        position, size, base, last, _or(fields, "partitionleaderepoch", -1), _needed(fields, "magic"),
        _or(fields, "crc", 0), bits, codec, max(kind, 0), transactional, control, horizon,
        -1 if horizon is None else horizon, at, producer_id, epoch, sequence, last_sequence,
        last - base + 1 if count is None else count, None, None,
    )  # fmt: skip


def bare_batch(fields: dict[str, str], record: TextRecord) -> Batch:
    """A batch of one record, of a line that stands for both (message formats 0 and 1; 0.11 to 2.1 deep).

    Raises:
        WireError: as `batch_of`.
    """
    offset, position = _needed(fields, "offset"), _needed(fields, "position")
    magic = _needed(fields, "magic")
    _check_valid(fields)
    kind, at = _timestamp(fields)
    codec = _codec(fields)
    producer_id = _or(fields, "producerid", -1)
    sequence = _or(fields, "sequence", -1)
    transactional = _BOOLEANS.get(fields.get("istransactional", "false"), False)
    control = record.control is not None
    bits = codec | max(kind, 0) << 3 | transactional << 4 | control << 5
    control_type, coordinator_epoch = record.control or (None, None)
    return Batch(
        position, 0, offset, offset, -1, magic, _or(fields, "crc", 0), bits, codec, max(kind, 0),
        transactional, control, None, at, at, producer_id, _or(fields, "producerepoch", -1),
        sequence, sequence, 1, control_type, coordinator_epoch,
    )  # fmt: skip


def joined(batch: Batch, more: Batch) -> Batch:
    """Two records of one batch, printed without their batch."""
    return batch._replace(
        last_offset=more.last_offset,
        max_timestamp_ms=max(batch.max_timestamp_ms, more.max_timestamp_ms),
        last_sequence=more.last_sequence,
        records_count=batch.records_count + 1,
    )


def with_records(batch: Batch, records: list[TextRecord]) -> Batch:
    """A batch with what only its record lines tell: the marker and the first timestamp."""
    if not records:
        return batch
    if batch.is_control and records[0].control is not None:
        control_type, epoch = records[0].control
        batch = batch._replace(control_type=control_type, coordinator_epoch=epoch)
    is_first = records[0].offset in (None, batch.base_offset)
    if batch.delete_horizon_ms is None and is_first and batch.timestamp_type == 0:
        batch = batch._replace(base_timestamp_ms=records[0].timestamp_ms)
    return batch


_BITS = {
    "size_bytes": 31, "partition_leader_epoch": 31, "crc": 32, "producer_epoch": 15,
    "base_sequence": 31, "last_sequence": 31, "records_count": 31, "control_type": 15,
    "coordinator_epoch": 31,
}  # fmt: skip


def is_in_range(batch: Batch) -> bool:
    """Whether each value fits its field in the log."""
    values = batch._asdict()
    fits = all(
        values[name] is None or -1 <= values[name] < 1 << bits for name, bits in _BITS.items()
    )
    return fits and batch.magic in (0, 1, 2) and batch.position >= 0 and batch.base_offset >= 0


def contradiction(batch: Batch, records: list[TextRecord]) -> str | None:
    """What cannot be between a batch and its records: a hand was at work; None when all fits."""
    offsets = [one.offset for one in records if one.offset is not None]
    if any(not batch.base_offset <= one <= batch.last_offset for one in offsets):
        return "a record outside of its batch"
    if offsets != sorted(set(offsets)):
        return "records out of order"
    if len(records) > batch.records_count:
        return "more records than the batch counts"
    times = [one.timestamp_ms for one in records if one.timestamp_ms >= 0]
    if times and batch.timestamp_type == 0 and batch.max_timestamp_ms >= 0:
        if max(times) > batch.max_timestamp_ms:
            return "a record that is newer than its batch"
        if len(records) == batch.records_count and max(times) != batch.max_timestamp_ms:
            return "no record has the time of its batch"
    for one in records:
        if one.sequence is not None and batch.base_sequence >= 0 and one.offset is not None:
            delta = one.offset - batch.base_offset
            if one.sequence != increment_sequence(batch.base_sequence, delta):
                return "a sequence that does not fit its batch"
    return None


def _needed(fields: dict[str, str], name: str) -> int:
    found = number(fields.get(name))
    if found is None:
        raise WireError(f"no {name}: the line is not whole", "bad_record")
    return found


def _or(fields: dict[str, str], name: str, default: int) -> int:
    found = number(fields.get(name))
    return default if found is None else found


def _flag(fields: dict[str, str], name: str) -> bool:
    found = _BOOLEANS.get(fields.get(name, ""))
    if found is None:
        raise WireError(f"no {name}: the line is not whole", "bad_record")
    return found


def _check_valid(fields: dict[str, str]) -> None:
    is_valid = _BOOLEANS.get(fields.get("isvalid", ""))
    if is_valid is None:
        raise WireError("no isvalid: the line is not whole", "bad_record")
    if not is_valid:
        raise WireError("the tool found the checksum wrong", "crc")


def _codec(fields: dict[str, str]) -> int:
    name = fields.get("compresscodec", fields.get("compresstype", "none"))
    codec = _CODECS.get(name.lower())
    if codec is None:
        raise WireError("an unknown codec", "codec")
    return codec


def _timestamp(fields: dict[str, str]) -> tuple[int, int]:
    for kind, name in enumerate(("createtime", "logappendtime")):
        if name in fields:
            return kind, _or(fields, name, -1)
    return -1, -1


def _control(rest: str) -> tuple[int | None, int | None] | None:
    """Control type and coordinator epoch, of a marker; None for data."""
    text = rest.lstrip()
    for name, control_type in _JSON_CONTROLS:
        if text.startswith((f"{name}: ", f"{name} {{")):
            return control_type, None
    words = text.split(" ")
    if words[0] not in ("endTxnMarker:", "controlType:") or len(words) < 2:
        return None
    name, _, tail = words[1].partition("(")
    control = _CONTROL_TYPES.get(name, number(tail.rstrip(")")) if tail else None)
    epoch = number(words[3]) if len(words) > 3 and words[2] == "coordinatorEpoch:" else None
    return control, epoch
