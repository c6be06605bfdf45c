"""Facts of Kafka's `TransactionMetadataTest`: which steps of an id's state there are, and which there are not."""

from __future__ import annotations

import pytest

from pipeline.replay.transaction_state import LEGAL_PREVIOUS
from schemas.codes import STATE_NAMES
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
    DEAD,
    EMPTY,
    FENCE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    START_MS,
    replayed,
    row,
    violations,
)

OF = "TransactionMetadataTest"
BACK = {"wait_ms": -1}
LONG_AGO = {"start_ms": 1}
COMMIT, ABORT = 1, 0

WRITTEN = [
    Written(OF, "testInitializeEpoch", 0, [row(EMPTY, 0)], "init", is_new=True),
    Written(OF, "testAttemptedEpochBumpWithNewlyCreatedMetadata", 0, [row(EMPTY, 0)], "init",
            {"producer_id": 1, "epoch": 0}, is_new=True),
    Written(OF, "testNormalEpochBump", 0, [row(EMPTY, 735), row(EMPTY, 736)], "init_again"),
    Written(OF, "testEpochBumpWithCurrentEpochProvided", 0,
            [row(EMPTY, 735), row(EMPTY, 736)], "init_again"),
    Written(OF, "testAttemptedEpochBumpWithLastEpoch", 0,
            [row(EMPTY, 734), row(EMPTY, 735), row(EMPTY, 735)], "init_again init_retry"),
    Written(OF, "testTolerateUpdateTimeShiftDuringEpochBump", 0,
            [row(EMPTY, 1, **LONG_AGO), row(EMPTY, 2, **BACK, **LONG_AGO)], "init_again",
            {"start_ms": 1}),
    Written(OF, "testTolerateUpdateTimeResetDuringProducerIdRotation", 0,
            [row(EMPTY, 1, **LONG_AGO), row(EMPTY, 0, **BACK, **LONG_AGO, **NEW_ID)], "init_again",
            {"start_ms": 1}),
    # Kafka 4.1 and later: an Empty has no start.
    Written(OF, "testTolerateUpdateTimeShiftDuringEpochBump", 0,
            [row(EMPTY, 1, **LONG_AGO), row(EMPTY, 2, **BACK, start_ms=-1)], "init_again",
            {"start_ms": -1}),
    Written(OF, "testTolerateUpdateTimeResetDuringProducerIdRotation", 0,
            [row(EMPTY, 1, **LONG_AGO), row(EMPTY, 0, **BACK, start_ms=-1, **NEW_ID)], "init_again",
            {"start_ms": -1}),
    Written(OF, "testTolerateTimeShiftDuringAddPartitions", 0,
            [row(EMPTY, 1), row(ONGOING, 1, **BACK), row(ONGOING, 1, **BACK, partitions="a+b")],
            "add_partitions add_partitions",
            {"listed": "a+b", "start_ms": START_MS + 9, "transaction_start_ms": START_MS + 9}),
    Written(OF, "testTolerateTimeShiftDuringPrepareCommit", 0,
            [row(ONGOING, 1, **LONG_AGO), row(PREPARE_COMMIT, 1, **BACK, **LONG_AGO)],
            "client_commit", {"outcome": COMMIT, "transaction_start_ms": 1}),
    Written(OF, "testTolerateTimeShiftDuringPrepareAbort", 0,
            [row(ONGOING, 1, **LONG_AGO), row(PREPARE_ABORT, 1, **BACK, **LONG_AGO)],
            "client_abort", {"outcome": ABORT, "transaction_start_ms": 1}),
    *(
        Written(OF, "testTolerateTimeShiftDuringCompleteCommit", version,
                [row(PREPARE_COMMIT, 1, **LONG_AGO), row(COMPLETE_COMMIT, 1, **BACK, **LONG_AGO)],
                "complete", {"outcome": COMMIT, "transaction_start_ms": 1})
        for version in (0, 2)
    ),
    *(
        Written(OF, "testTolerateTimeShiftDuringCompleteAbort", version,
                [row(PREPARE_ABORT, 1, **LONG_AGO), row(COMPLETE_ABORT, 1, **BACK, **LONG_AGO)],
                "complete", {"outcome": ABORT, "transaction_start_ms": 1})
        for version in (0, 2)
    ),
    Written(OF, "testFenceProducerAfterEpochsExhausted", 0,
            [row(ONGOING, HIGH), row(PREPARE_ABORT, LAST)], "fence", {"producer_id": 1}),
    Written(OF, "testRotateProducerId", 0,
            [row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)], "epoch_exhausted"),
    Written(OF, "testEpochBumpOnEndTxn", 2,
            [row(ONGOING, 10, client_transaction_version=0),
             row(PREPARE_COMMIT, 11, **BACK), row(COMPLETE_COMMIT, 11)],
            "client_commit complete", {"prepare_epoch": 11, "producer_id": 1}),
    Written(OF, "testEpochBumpOnEndTxnOverflow", 2,
            [row(ONGOING, HIGH, client_transaction_version=0),
             row(PREPARE_COMMIT, LAST, **BACK, next_producer_id=2),
             row(COMPLETE_COMMIT, 0, **NEW_ID)],
            "client_commit complete", {"prepare_epoch": LAST, "producer_id": 2}),
]  # fmt: skip

REFUSED = [
    Refused(OF, "testBumpEpochNotAllowedIfEpochsExhausted", 0,
            [row(EMPTY, HIGH)], row(EMPTY, LAST), "epoch_rule"),
    Refused(OF, "testFenceProducerNotAllowedIfItWouldOverflow", 0,
            [row(ONGOING, LAST)], row(PREPARE_ABORT, -32768), "epoch_rule"),
    Refused(OF, "testRotateProducerIdInOngoingState", 0,
            [row(ONGOING, HIGH)], row(EMPTY, 0, **NEW_ID), "illegal_transition"),
    *(
        Refused(OF, name, version, [row(state, HIGH)], row(EMPTY, 0, **NEW_ID), "illegal_transition")
        for name, state in (
            ("testRotateProducerIdInPrepareAbortState", PREPARE_ABORT),
            ("testRotateProducerIdInPrepareCommitState", PREPARE_COMMIT),
        )
        for version in (0, 2)
    ),
    Refused(OF, "an epoch that goes back", 0,
            [row(EMPTY, 735)], row(EMPTY, 733), "epoch_rule"),
]  # fmt: skip

STATES = {
    0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort", 4: "CompleteCommit",
    5: "CompleteAbort", 6: "Dead", 7: "PrepareEpochFence",
}  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN, ids=named)
def test_steps_that_there_are(case: Written) -> None:
    check_written(case)


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_steps_that_there_are_not(case: Refused) -> None:
    check_refused(case)


@pytest.mark.parametrize("number", STATES)
def test_states_by_number_and_name(number: int) -> None:
    """`TransactionMetadataTest.testTransactionStateIdAndNameMapping`."""
    assert STATE_NAMES[number] == STATES[number]
    assert [one for one, name in STATE_NAMES.items() if name == STATES[number]] == [number]


def test_all_states_are_mapped() -> None:
    """`TransactionMetadataTest.testAllTransactionStatesAreMapped`: to a step, or to what is never on disk."""
    assert set(STATE_NAMES) == set(STATES) == {*LEGAL_PREVIOUS, DEAD, FENCE}
    for state in (DEAD, FENCE):
        assert violations(replayed([row(EMPTY), row(ONGOING), row(state)])) == [
            (2, "impossible_state_on_disk")
        ]
