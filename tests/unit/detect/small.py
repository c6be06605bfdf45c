"""Small histories: one data partition, one partition of `__transaction_state`, times in ms after `NOW_MS`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import builders, log_layout, pure_audit
from tests.builders import COMMIT, NOW_MS

TOPIC, STATE_TOPIC = "orders", "__transaction_state"
HERE = ((TOPIC, 0),)


class Small:
    """Batches of both logs so far; `data_start` and `state_start` are the offsets of the first."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.states: list[bytes] = []
        self.data_end = 0
        self.state_end = 0
        self._sent: dict[tuple[int, int], int] = {}

    def write(self, at: int, producer_id: int = 1, *, epoch: int = 0, **batch: Any) -> None:
        """One record in the data partition."""
        sequence = self._sent.get((producer_id, epoch), 0)
        self._sent[producer_id, epoch] = sequence + 1
        self.data.append(
            builders.batch(
                self.data_end, producer_id=producer_id, producer_epoch=epoch,
                **({"base_sequence": sequence, "transactional": True, "timestamp_ms": NOW_MS + at} | batch),
            )
        )  # fmt: skip
        self.data_end += 1

    def mark(
        self, at: int, producer_id: int = 1, kind: int = COMMIT, *, epoch: int = 0, **marker: Any
    ) -> None:
        """One marker in the data partition."""
        self.data.append(
            builders.marker(
                self.data_end, kind, producer_id=producer_id, producer_epoch=epoch,
                timestamp_ms=NOW_MS + at, **marker,
            )
        )  # fmt: skip
        self.data_end += 1

    def state(
        self,
        at: int,
        kind: int,
        producer_id: int = 1,
        *,
        epoch: int = 0,
        lists: Sequence[tuple[str, int]] = HERE,
        is_cleaned: bool = False,
        **value: Any,
    ) -> None:
        """One record of the producer's transactional id; `is_cleaned` leaves a hole in its place."""
        if not is_cleaned:
            text = builders.txn_value(
                kind, producer_id=producer_id, producer_epoch=epoch, start_ms=NOW_MS + at,
                partitions=lists if kind in (1, 2, 3) else (), **value,
            )  # fmt: skip
            self.states.append(
                builders.txn_entry(
                    self.state_end, f"writer-{producer_id}", text, timestamp_ms=NOW_MS + at
                )
            )
        self.state_end += 1

    def transaction(self, at: int, producer_id: int = 1) -> None:
        """Begun, written, committed and completed within 20 ms."""
        self.state(at, builders.ONGOING, producer_id)
        self.write(at + 2, producer_id)
        self.state(at + 10, builders.PREPARE_COMMIT, producer_id)
        self.mark(at + 15, producer_id)
        self.state(at + 20, builders.COMPLETE_COMMIT, producer_id)

    def said(
        self,
        root: Path,
        *,
        data: int | None = None,
        states: int | None = None,
        is_clean: bool = True,
        unacknowledged: int = 0,
    ) -> set[str]:
        """What an audit of two brokers says above `info`: `code/class`.

        Args:
            root: where their directories are made.
            data: so many batches of the data partition are in the copy; None for all.
            states: likewise of the coordinator's.
            is_clean: they were stopped before.
            unacknowledged: so many offsets at the end of each log lie above its high watermark.
        """
        self.write_to(
            root, data=data, states=states, is_clean=is_clean, unacknowledged=unacknowledged
        )
        found = [row for row in pure_audit.accusations(root) if row["severity"] != "info"]
        return {f"{row['code']}/{row['class']}" for row in found}

    def write_to(
        self,
        root: Path,
        *,
        data: int | None = None,
        states: int | None = None,
        is_clean: bool = True,
        unacknowledged: int = 0,
    ) -> None:
        """The directories of the two brokers, as `said` takes them."""
        logs = ((1, TOPIC, self.data[:data]), (2, STATE_TOPIC, self.states[:states]))
        for node, topic, rows in logs:
            log = log_layout.LogDir(root, node)
            log.segment(topic, 0, rows, base_offset=0)
            marks = {place: end - unacknowledged for place, end in log.log_ends.items()}
            log.finish(clean=is_clean, high_watermarks=marks)
