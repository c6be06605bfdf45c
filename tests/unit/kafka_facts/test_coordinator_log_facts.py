"""Facts of Kafka's tests of what the coordinator keeps in its log: appends, loads, expiry, ends, requests at once.

Classes: `TransactionStateManagerTest`, `TransactionMarkerChannelManagerTest`, `TransactionCoordinatorConcurrencyTest`.
"""

from __future__ import annotations

import pytest

from tests.unit.kafka_facts.coordinator_rows import (
    HIGH,
    NEW_ID,
    WEEK_MS,
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
    TOMBSTONE,
    row,
)

MANAGER, MARKERS, AT_ONCE = (
    "TransactionStateManagerTest", "TransactionMarkerChannelManagerTest",
    "TransactionCoordinatorConcurrencyTest",
)  # fmt: skip
COMMIT, ABORT = 1, 0
TWO, THREE, FIVE = {"partitions": "a+b"}, {"partitions": "c+d+e"}, {"partitions": "a+b+c+d+e"}
WAITED = {"wait_ms": 2_000}
A_WEEK = {"wait_ms": WEEK_MS}
A_SECOND, TEN_SECONDS = {"txn_timeout_ms": 1_000}, {"txn_timeout_ms": 10_000}
ON_THE_NEXT = {"leader_epoch": 1}
ROTATED = [row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)]

KEPT = [
    Written(MANAGER, "testCompleteTransitionWhenAppendSucceeded", 0,
            [row(EMPTY), row(ONGOING, 0, **TWO)], "add_partitions", {"listed": "a+b"}),
    Written(MANAGER, "testAppendFailToCoordinatorNotAvailableError", 0,
            [row(EMPTY), row(ONGOING), row(ONGOING, 0, **WAITED), row(EMPTY, 1, **WAITED)],
            "add_partitions repeated_append init_again", {"transactions": 0}),
    Written(MANAGER, "testLoadAndRemoveTransactionsForPartition", 1,
            [row(ONGOING, 0, **TWO), row(ONGOING, 0, **FIVE), row(PREPARE_COMMIT, 0, **FIVE)],
            "add_partitions client_commit", {"listed": "a+b+c+d+e", "outcome": COMMIT}),
    Written(MANAGER, "testLoadAndRemoveTransactionsForPartition", 1,
            [row(ONGOING, 0, **THREE), row(PREPARE_ABORT, 0, **THREE), row(COMPLETE_ABORT), row(EMPTY)],
            "client_abort complete init_retry", {"listed": "", "outcome": ABORT}),
    Written(MANAGER, "shouldWriteTxnMarkersForTransactionInPreparedCommitState", 1,
            [row(PREPARE_COMMIT, 0, **TWO)], "",
            {"promised": "a+b", "outcome": COMMIT, "completed_under": None}),
    Written(MANAGER, "shouldWriteTxnMarkersForTransactionInPreparedAbortState", 1,
            [row(PREPARE_ABORT, 0, **TWO)], "",
            {"promised": "a+b", "outcome": ABORT, "completed_under": None}),
    Written(MANAGER, "another coordinator completes what it finds prepared", 1,
            [row(PREPARE_COMMIT, 0, **TWO), row(COMPLETE_COMMIT, 0, **ON_THE_NEXT)], "complete",
            {"completed_under": 1}),
    *(
        Written(MANAGER, name, 0, [row(state), row(TOMBSTONE, 0, **A_WEEK)], "expiry",
                {"is_known": False})
        for name, state in (
            ("shouldRemoveCompleteCommitExpiredTransactionalIds", COMPLETE_COMMIT),
            ("shouldRemoveCompleteAbortExpiredTransactionalIds", COMPLETE_ABORT),
            ("shouldRemoveEmptyExpiredTransactionalIds", EMPTY),
        )
    ),
    Written(MANAGER, "shouldNotRemoveExpiredTransactionalIdsIfLogAppendFails", 0,
            [row(COMPLETE_ABORT), row(TOMBSTONE, 0, **A_WEEK), row(ONGOING, 0, **WAITED)],
            "expiry add_partitions", {"is_known": True, "transactions": 1}),
    Written(MANAGER, "testTransactionExpirationShouldNotFailWithUninitializedTransactionMetadata", 0,
            [row(TOMBSTONE)], "expiry", {"is_known": False}, is_new=True),
    Written(MANAGER, "shouldOnlyConsiderTransactionsInTheOngoingStateToAbort", 0,
            [row(EMPTY, 0, **A_SECOND), row(ONGOING, 0, **A_SECOND),
             row(PREPARE_ABORT, 1, **WAITED, **A_SECOND)],
            "add_partitions timeout"),
    Written(MANAGER, "an abort before the timeout is no timeout", 0,
            [row(EMPTY, 0, **TEN_SECONDS), row(ONGOING, 0, **TEN_SECONDS),
             row(PREPARE_ABORT, 1, **WAITED, **TEN_SECONDS)],
            "add_partitions fence"),
    Written(MARKERS, "shouldGenerateRequestPerPartitionPerBroker", 2,
            [row(PREPARE_COMMIT, 0, **TWO)], "", {"promised": "a+b", "outcome": COMMIT}),
    Written(MARKERS, "shouldGenerateRequestPerPartitionPerBroker", 2,
            [row(PREPARE_COMMIT, 0, **NEW_ID)], "", {"promised": "a", "outcome": COMMIT}),
    Written(MARKERS, "shouldCompleteAppendToLogOnEndTxnWhenSendMarkersSucceed", 2,
            [row(PREPARE_COMMIT), row(COMPLETE_COMMIT)], "complete",
            {"transaction_state": COMPLETE_COMMIT, "transactions": 1}),
    Written(MARKERS, "shouldAbortAppendToLogOnEndTxnWhenNotCoordinatorError", 2,
            [row(PREPARE_COMMIT)], "",
            {"transaction_state": PREPARE_COMMIT, "completed_under": None}),
    Written(MARKERS, "shouldRetryAppendToLogOnEndTxnWhenCoordinatorNotAvailableError", 2,
            [row(PREPARE_COMMIT), row(COMPLETE_COMMIT), row(COMPLETE_COMMIT, 0, **WAITED)],
            "complete repeated_append", {"transaction_state": COMPLETE_COMMIT, "transactions": 1}),
    Written(MARKERS, "shouldNotLoseTxnCompletionAfterLoad", 2,
            [row(PREPARE_COMMIT), row(COMPLETE_COMMIT, 0, **ON_THE_NEXT)], "complete",
            {"transaction_state": COMPLETE_COMMIT, "completed_under": 1}),
]  # fmt: skip

TOGETHER = [
    Written(AT_ONCE, "testConcurrentGoodPathSequence", 2,
            [row(EMPTY), row(ONGOING), row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1)],
            "init add_partitions client_commit complete", {"outcome": COMMIT}, is_new=True),
    Written(AT_ONCE, "testConcurrentGoodPathSequence", 2,
            [row(EMPTY), row(ONGOING), row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)],
            "init add_partitions client_abort complete", {"outcome": ABORT}, is_new=True),
    Written(AT_ONCE, "testConcurrentLoadUnloadPartitions", 1,
            [row(ONGOING), row(PREPARE_COMMIT), row(COMPLETE_COMMIT)], "client_commit complete",
            {"transaction_state": COMPLETE_COMMIT}),
    Written(AT_ONCE, "testConcurrentNewInitProducerIdRequests", 0,
            [*ROTATED, row(EMPTY, 1, **NEW_ID)], "epoch_exhausted init_again"),
    Written(AT_ONCE, "testConcurrentInitProducerIdRequestsOneNewOneContinuing", 0,
            [row(EMPTY), row(EMPTY, 1), row(EMPTY, 2)], "init init_again init_again", is_new=True),
    Written(AT_ONCE, "testConcurrentInitProducerIdRequestsOneNewOneContinuing", 0,
            [row(EMPTY), row(EMPTY, 1)], "init init_again", is_new=True),
    Written(AT_ONCE, "testConcurrentContinuingInitProducerIdRequests", 0,
            [row(EMPTY, 0)], "init", {"epoch": 0}, is_new=True),
    Written(AT_ONCE, "testConcurrentInitProducerIdRequestsWithRetry", 0,
            [row(EMPTY), row(EMPTY, 1), row(EMPTY, 1), row(EMPTY, 2)],
            "init init_again init_retry init_again", is_new=True),
    Written(AT_ONCE, "testConcurrentInitProducerRequestsAtPidBoundary", 0,
            [*ROTATED, row(EMPTY, 1, **NEW_ID)], "epoch_exhausted init_again"),
    Written(AT_ONCE, "testConcurrentInitProducerRequestsAtPidBoundary", 0,
            ROTATED, "epoch_exhausted"),
    Written(AT_ONCE, "testConcurrentInitProducerRequestsWithRetryAtPidBoundary", 0,
            [*ROTATED, row(EMPTY, 0, **NEW_ID), row(EMPTY, 1, **NEW_ID)],
            "epoch_exhausted init_retry init_again"),
]  # fmt: skip

REFUSED = [
    Refused(MANAGER, "testAppendTransactionToLogWhileProducerFenced", 0,
            [row(EMPTY, 0), row(EMPTY, 1)], row(ONGOING, 0, **TWO), "epoch_rule"),
    *(
        Refused(MANAGER, "shouldOnlyConsiderTransactionsInTheOngoingStateToAbort", 0,
                [row(prepare), row(complete)], row(PREPARE_ABORT, 1, **WAITED), "illegal_transition")
        for prepare, complete in (
            (PREPARE_COMMIT, COMPLETE_COMMIT), (PREPARE_ABORT, COMPLETE_ABORT),
        )
    ),
    Refused(MANAGER, "shouldNotRemoveOngoingTransactionalIds", 0,
            [row(ONGOING), row(ONGOING, 0, **TWO)], row(TOMBSTONE, 0, **A_WEEK), "illegal_transition"),
    Refused(MANAGER, "shouldNotRemovePrepareAbortTransactionalIds", 0,
            [row(ONGOING), row(PREPARE_ABORT)], row(TOMBSTONE, 0, **A_WEEK), "illegal_transition"),
    Refused(MANAGER, "shouldNotRemovePrepareCommitTransactionalIds", 0,
            [row(ONGOING), row(PREPARE_COMMIT)], row(TOMBSTONE, 0, **A_WEEK), "illegal_transition"),
]  # fmt: skip
WRITTEN = [*KEPT, *TOGETHER]


@pytest.mark.parametrize("case", WRITTEN, ids=named)
def test_what_the_log_tells(case: Written) -> None:
    check_written(case)


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_what_is_never_appended(case: Refused) -> None:
    check_refused(case)
