"""Facts of cases that Kafka 4.0 and later add to its coordinator tests: epochs that rise with each end, empty aborts.

Classes: `TransactionMetadataTest` (Java since 4.1) and `TransactionCoordinatorTest`.
"""

from __future__ import annotations

import pytest

from tests.unit.kafka_facts.coordinator_rows import (
    HIGH,
    LAST,
    NEW_ID,
    Refused,
    Written,
    check_refused,
    check_written,
    named,
)
from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    START_MS,
    TIMEOUT_MS,
    Row,
    row,
)

METADATA, COORDINATOR = "TransactionMetadataTest", "TransactionCoordinatorTest"
LATE = {"wait_ms": TIMEOUT_MS + 1}
ROTATES = row(PREPARE_COMMIT, LAST, next_producer_id=2)
NOW = START_MS + 20
TIMED_OUT = [
    row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_ABORT, LAST, next_producer_id=2, **LATE),
    row(COMPLETE_ABORT, 0, **NEW_ID),
]  # fmt: skip
FENCED = [
    row(ONGOING, HIGH), row(PREPARE_ABORT, LAST, next_producer_id=2), row(COMPLETE_ABORT, 0, **NEW_ID),
]  # fmt: skip


def empty_abort(epoch: int) -> Row:
    """An abort of a transaction that wrote nothing; it starts as it ends."""
    return row(PREPARE_ABORT, epoch, partitions="", start_ms=NOW)


WRITTEN = [
    *(
        Written(METADATA, name, 2, [row(state, 735), empty_abort(736)], "empty_abort",
                {"producer_id": 1, "epoch": 736, "transaction_start_ms": NOW, "promised": ""})
        for name, state in (
            ("testTransitFromEmptyToPrepareAbortInV2", EMPTY),
            ("testTransitFromCompleteAbortToPrepareAbortInV2", COMPLETE_ABORT),
            ("testTransitFromCompleteCommitToPrepareAbortInV2", COMPLETE_COMMIT),
        )
    ),
    *(
        Written(COORDINATOR, name, 2, [row(state, 1), empty_abort(2)], "empty_abort",
                {"epoch": 2, "transaction_start_ms": NOW})
        for name, state in (
            ("TestEndTxnRequestWhenEmptyTransactionStateForAbortInV2", EMPTY),
            ("shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbortInV2", COMPLETE_ABORT),
            ("testEndTxnRequestWhenStatusIsCompleteCommitAndResultIsAbortInV2", COMPLETE_COMMIT),
        )
    ),
    Written(COORDINATOR, "shouldReturnConcurrentTxnOnAddPartitionsIfEndTxnV2EpochOverflowAndNotComplete", 2,
            [ROTATES, row(COMPLETE_COMMIT, 0, **NEW_ID), row(ONGOING, 0, **NEW_ID)],
            "complete add_partitions", {"listed": "a"}),
    Written(COORDINATOR, "shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyTV2", 2,
            [row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_ABORT, LAST, **LATE)],
            "add_partitions timeout", {"producer_id": 1, "prepare_epoch": LAST}),
    Written(COORDINATOR,
            "shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyAndLateClientAbortRequestTV2", 2,
            TIMED_OUT, "add_partitions timeout complete", {"prepare_epoch": LAST, "producer_id": 2}),
    Written(COORDINATOR,
            "shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyAndRetryInitProducerIdTV2", 2,
            [*TIMED_OUT, row(EMPTY, 0, **NEW_ID)],
            "add_partitions timeout complete init_retry", {"cause": "timeout"}),
    Written(COORDINATOR, "shouldNotCauseEpochOverflowWhenInitPidDuringOngoingTxnV2", 2,
            FENCED[:2], None, {"prepare_epoch": LAST, "state": PREPARE_ABORT}),
    Written(COORDINATOR,
            "shouldRotateProducerIdWhenInitPidFencesOngoingTxnAtEpochOverflowBoundaryTV2", 2,
            FENCED, None, {"prepare_epoch": LAST, "producer_id": 2, "epoch": 0}),
    Written(COORDINATOR, "testTV2AllowsEpochReBumpingAfterFailedWrite", 2,
            [row(ONGOING, 1), row(PREPARE_ABORT, 2), row(PREPARE_ABORT, 2, wait_ms=2_000),
             row(COMPLETE_ABORT, 2), row(EMPTY, 3)],
            None, {"transactions": 1, "cause": "fence", "prepare_epoch": 2, "epoch": 3}),
]  # fmt: skip

REFUSED = [
    *(
        Refused(METADATA, name, 0, [row(state, HIGH)], row(PREPARE_ABORT, LAST), "illegal_transition")
        for name, state in (
            ("testInvalidTransitionFromCompleteCommitToFence", COMPLETE_COMMIT),
            ("testInvalidTransitionFromCompleteAbortToFence", COMPLETE_ABORT),
        )
    ),
    *(
        Refused(COORDINATOR, name, 0, [row(complete, 1)], row(prepare, asked), "illegal_transition")
        for asked in (0, 1)
        for name, complete, prepare in (
            ("testEndTxnWhenStatusIsCompleteCommitAndResultIsCommitInV1", COMPLETE_COMMIT, PREPARE_COMMIT),
            ("testEndTxnWhenStatusIsCompleteAbortAndResultIsAbortInV1", COMPLETE_ABORT, PREPARE_ABORT),
            ("testEndTxnRequestWhenStatusIsCompleteCommitAndResultIsAbortInV1", COMPLETE_COMMIT, PREPARE_ABORT),
        )
    ),
    Refused(COORDINATOR, "TestEndTxnRequestWhenEmptyTransactionStateForAbortInV1", 0,
            [row(EMPTY, 1)], row(PREPARE_ABORT, 1), "illegal_transition"),
    *(
        Refused(COORDINATOR, name, 2, [row(state, 1)], row(PREPARE_COMMIT, epoch), "illegal_transition")
        for epoch in (1, 2)
        for name, state in (
            ("testEndTxnWhenStatusIsCompleteCommitAndResultIsCommitInV2", COMPLETE_COMMIT),
            ("TestEndTxnRequestWhenEmptyTransactionStateForCommitInV2", EMPTY),
        )
    ),
    *(
        Refused(COORDINATOR, name, 2, [row(state, 1)], empty_abort(1), "epoch_rule")
        for name, state in (
            ("TestEndTxnRequestWhenEmptyTransactionStateForAbortInV2", EMPTY),
            ("shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbortInV2", COMPLETE_ABORT),
            ("testEndTxnRequestWhenStatusIsCompleteCommitAndResultIsAbortInV2", COMPLETE_COMMIT),
        )
    ),
    *(
        Refused(COORDINATOR, name, 2, log, row(PREPARE_ABORT, LAST), "epoch_rule")
        for name, log in (
            ("shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyAndLateClientAbortRequestTV2", TIMED_OUT),
            ("shouldRotateProducerIdWhenInitPidFencesOngoingTxnAtEpochOverflowBoundaryTV2", FENCED),
        )
    ),
    Refused(COORDINATOR, "shouldReturnConcurrentTxnOnAddPartitionsIfEndTxnV2EpochOverflowAndNotComplete", 2,
            [ROTATES], row(ONGOING, 0, **NEW_ID), "illegal_transition"),
]  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN, ids=named)
def test_what_the_coordinator_writes(case: Written) -> None:
    check_written(case)


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_what_the_coordinator_refuses(case: Refused) -> None:
    check_refused(case)
