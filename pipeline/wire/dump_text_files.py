"""Which file a line of a dump text is of, and the rows of those beside the log."""

from __future__ import annotations

from pipeline.wire import dump_text_lines as lines
from pipeline.wire.dump_text_lines import Line, number
from pipeline.wire.dump_text_parts import OFFSETS_TOPIC, TXN_TOPIC
from pipeline.wire.errors import WireError
from pipeline.wire.producer_snapshot import SnapshotEntry
from pipeline.wire.txn_index import AbortedTxn

SIDECARS = (lines.SNAPSHOT, lines.ABORTED, lines.OFFSET_INDEX, lines.TIME_INDEX)
CONSOLE = (lines.CONSOLE_TXN, lines.CONSOLE_OFFSETS, lines.CONSOLE_JSON)


def file_kind(line: Line) -> str | None:
    """Kind of the dumped file; None for a line that is of none."""
    if line.kind == lines.SNAPSHOT:
        return "snapshot"
    if line.kind == lines.ABORTED:
        return "txnindex"
    if line.kind in (lines.OFFSET_INDEX, lines.TIME_INDEX):
        return line.kind
    if line.kind in CONSOLE:
        return "console"
    return "log" if line.kind in lines.IS_DATA else None


def topic_of(rest: str) -> str | None:
    """Topic by the decoder's notation, for lines whose file is not named."""
    if rest.startswith(
        (" key: transaction_metadata::", ' key: {"type":"0","data":{"transactionalId"')
    ):
        return TXN_TOPIC
    is_group = rest.startswith(
        (" key: offset_commit::", " key: group_metadata::", ' key: {"type":')
    )
    return OFFSETS_TOPIC if is_group else None


def snapshot(line: Line) -> SnapshotEntry:
    """A producer of a `.snapshot`.

    Raises:
        WireError: a field that no version leaves out is missing.
    """
    get = line.fields.get
    first = get("currenttxnfirstoffset", "")
    producer_id, epoch = number(get("producerid")), number(get("producerepoch"))
    coordinator_epoch = number(get("coordinatorepoch"))
    if (
        producer_id is None
        or epoch is None
        or coordinator_epoch is None
        or (number(first) is None and first not in ("None", "OptionalLong.empty"))
    ):
        raise WireError("a producer that is not whole", "bad_record")

    def optional(value: str | None, default: int) -> int:
        found = number(value)
        return default if found is None else found

    return SnapshotEntry(
        producer_id,
        epoch,
        optional(get("lastsequence"), -1),
        optional(get("lastoffset"), -1),
        optional(get("offsetdelta"), 0),
        optional(get("lasttimestamp", get("timestamp")), -1),
        coordinator_epoch,
        optional(first, -1),
    )


def aborted(line: Line) -> AbortedTxn:
    """A transaction of a `.txnindex`.

    Raises:
        WireError: it is not whole.
    """
    names = ("version", "producerid", "firstoffset", "lastoffset", "laststableoffset")
    values = [number(line.fields.get(name)) for name in names]
    if None in values:
        raise WireError("an aborted transaction that is not whole", "bad_record")
    return AbortedTxn(*values)  # type: ignore[arg-type]  # none is None
