"""Facts of Kafka's own tests of the transaction coordinator: what it writes is in order, what it refuses is not.

Each row names the test class and case. `records` is what the log of the case holds, or would hold had the coordinator
not refused; `offence` is the rule that its last record then breaks.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    FENCE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TIMEOUT_MS,
    TOMBSTONE,
    Row,
    causes,
    replayed,
    row,
    violations,
)

METADATA, COORDINATOR, MANAGER = (
    "TransactionMetadataTest", "TransactionCoordinatorTest", "TransactionStateManagerTest",
)  # fmt: skip
HIGH, LAST = 32766, 32767
NEW_ID = {"producer_id": 2}
INIT, BEGIN = row(EMPTY), row(ONGOING)
COMMIT = [row(PREPARE_COMMIT), row(COMPLETE_COMMIT)]
ABORT = [row(PREPARE_ABORT), row(COMPLETE_ABORT)]
COMMIT2 = [row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1)]
ABORT2 = [row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)]
FENCED = [row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)]
WIDER = row(ONGOING, 0, partitions="a+b")


class Case(NamedTuple):
    """Records of one id, the cause of the last, and the rule that it breaks (None: in order)."""

    of: str
    name: str
    version: int
    records: list[Row]
    cause: str
    offence: str | None = None


TRANSITIONS = [
    Case(METADATA, "testInitializeEpoch", 0, [INIT], "init"),
    Case(METADATA, "testNormalEpochBump", 0, [INIT, row(EMPTY, 1)], "init_again"),
    Case(METADATA, "an epoch that is skipped before the last", 0,
         [INIT, row(EMPTY, HIGH - 1), row(EMPTY, LAST)], "init_again", "epoch_rule"),
    Case(METADATA, "testTolerateUpdateTimeShiftDuringEpochBump", 0,
         [INIT, row(EMPTY, 1, wait_ms=-1)], "init_again"),
    Case(METADATA, "testTolerateUpdateTimeResetDuringProducerIdRotation", 0,
         [INIT, row(EMPTY, HIGH), row(EMPTY, 0, wait_ms=-1, **NEW_ID)], "epoch_exhausted"),
    Case(METADATA, "testTolerateTimeShiftDuringAddPartitions", 0,
         [INIT, row(ONGOING, 0, wait_ms=-1), row(ONGOING, 0, wait_ms=-1, partitions="a+b")],
         "add_partitions"),
    Case(METADATA, "testTolerateTimeShiftDuringPrepareCommit", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT, wait_ms=-1)], "client_commit"),
    Case(METADATA, "testTolerateTimeShiftDuringPrepareAbort", 0,
         [INIT, BEGIN, row(PREPARE_ABORT, wait_ms=-1)], "client_abort"),
    Case(METADATA, "testTolerateTimeShiftDuringCompleteCommit", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT), row(COMPLETE_COMMIT, wait_ms=-1)], "complete"),
    Case(METADATA, "testTolerateTimeShiftDuringCompleteCommit", 2,
         [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1, wait_ms=-1)], "complete"),
    Case(METADATA, "testTolerateTimeShiftDuringCompleteAbort", 0,
         [INIT, BEGIN, row(PREPARE_ABORT), row(COMPLETE_ABORT, wait_ms=-1)], "complete"),
    Case(METADATA, "testTolerateTimeShiftDuringCompleteAbort", 2,
         [INIT, BEGIN, row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1, wait_ms=-1)], "complete"),
    Case(METADATA, "testFenceProducerAfterEpochsExhausted", 0,
         [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_ABORT, LAST)], "fence"),
    Case(METADATA, "an epoch that overflows", 0,
         [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_ABORT, -32768)], "client_abort",
         "epoch_rule"),
    Case(METADATA, "testRotateProducerId", 0,
         [INIT, row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)], "epoch_exhausted"),
    Case(METADATA, "testEpochBumpOnEndTxn", 2, [INIT, BEGIN, row(PREPARE_COMMIT, 1)], "client_commit"),
    Case(METADATA, "testEpochBumpOnEndTxn", 2, [INIT, BEGIN, *COMMIT2], "complete"),
    Case(METADATA, "testEpochBumpOnEndTxnOverflow", 2,
         [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_COMMIT, LAST),
          row(COMPLETE_COMMIT, 0, **NEW_ID)], "complete"),
    Case(METADATA, "testRotateProducerIdInOngoingState", 0,
         [INIT, BEGIN, row(EMPTY, 0, **NEW_ID)], "init_again", "illegal_transition"),
    Case(METADATA, "testRotateProducerIdInPrepareAbortState", 0,
         [INIT, BEGIN, row(PREPARE_ABORT), row(EMPTY, 0, **NEW_ID)], "init_again",
         "illegal_transition"),
    Case(METADATA, "testRotateProducerIdInPrepareAbortState", 2,
         [INIT, BEGIN, row(PREPARE_ABORT, 1), row(EMPTY, 0, **NEW_ID)], "init_again",
         "illegal_transition"),
    Case(METADATA, "testRotateProducerIdInPrepareCommitState", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT), row(EMPTY, 0, **NEW_ID)], "init_again",
         "illegal_transition"),
    Case(METADATA, "testRotateProducerIdInPrepareCommitState", 2,
         [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(EMPTY, 0, **NEW_ID)], "init_again",
         "illegal_transition"),
    Case(METADATA, "testAttemptedEpochBumpWithNewlyCreatedMetadata", 0, [row(EMPTY, 0)], "init"),
    Case(METADATA, "testEpochBumpWithCurrentEpochProvided", 0,
         [INIT, row(EMPTY, 7), row(EMPTY, 8)], "init_again"),
    Case(METADATA, "testAttemptedEpochBumpWithLastEpoch", 0,
         [INIT, row(EMPTY, 7), row(EMPTY, 7)], "init_retry"),
    Case(METADATA, "testAttemptedEpochBumpWithFencedEpoch", 0,
         [INIT, row(EMPTY, 7), row(EMPTY, 6)], "init_again", "epoch_rule"),
    Case(METADATA, "Dead is never written", 0, [INIT, BEGIN, row(DEAD)], "init_retry",
         "impossible_state_on_disk"),
    Case(METADATA, "PrepareEpochFence is never written", 0, [INIT, BEGIN, row(FENCE)], "init_retry",
         "impossible_state_on_disk"),
]  # fmt: skip

REQUESTS = [
    Case(COORDINATOR, "shouldInitPidWithEpochZeroForNewTransactionalId", 0, [row(EMPTY, 0)], "init"),
    Case(COORDINATOR, "shouldGenerateNewProducerIdIfEpochsExhausted", 0,
         [INIT, row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)], "epoch_exhausted"),
    Case(COORDINATOR, "shouldRespondWithConcurrentTransactionsOnAddPartitionsWhenStateIsPrepareCommit", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT), BEGIN], "add_partitions", "illegal_transition"),
    Case(COORDINATOR, "shouldRespondWithConcurrentTransactionOnAddPartitionsWhenStateIsPrepareAbort", 0,
         [INIT, BEGIN, row(PREPARE_ABORT), BEGIN], "add_partitions", "illegal_transition"),
    Case(COORDINATOR, "shouldRespondWithProducerFencedOnAddPartitionsWhenEpochsAreDifferent", 0,
         [INIT, row(EMPTY, 5), row(ONGOING, 4)], "add_partitions", "epoch_rule"),
    Case(COORDINATOR, "shouldAppendNewMetadataToLogOnAddPartitionsWhenPartitionsAdded", 0,
         [INIT, BEGIN], "add_partitions"),
    Case(COORDINATOR, "shouldRespondWithSuccessOnAddPartitionsWhenStateIsOngoing", 0,
         [INIT, BEGIN, WIDER], "add_partitions"),
    Case(COORDINATOR, "shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteCommit", 0,
         [INIT, BEGIN, *COMMIT, BEGIN], "add_partitions"),
    Case(COORDINATOR, "shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteCommit", 2,
         [INIT, BEGIN, *COMMIT2, row(ONGOING, 1)], "add_partitions"),
    Case(COORDINATOR, "shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteAbort", 0,
         [INIT, BEGIN, *ABORT, BEGIN], "add_partitions"),
    Case(COORDINATOR, "shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteAbort", 2,
         [INIT, BEGIN, *ABORT2, row(ONGOING, 1)], "add_partitions"),
    Case(COORDINATOR, "shouldReplyWithInvalidPidMappingOnEndTxnWhenPidDosentMatchMapped", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT, 0, **NEW_ID)], "client_commit", "epoch_rule"),
    Case(COORDINATOR, "shouldReplyWithInvalidPidMappingOnEndTxnWhenPidDosentMatchMapped", 2,
         [INIT, BEGIN, row(PREPARE_COMMIT, 1, **NEW_ID)], "client_commit", "epoch_rule"),
    Case(COORDINATOR, "shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction", 0,
         [INIT, row(EMPTY, 5), row(ONGOING, 5), row(PREPARE_COMMIT, 4)], "client_commit", "epoch_rule"),
    Case(COORDINATOR, "shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction", 2,
         [INIT, row(EMPTY, 5), row(ONGOING, 5), row(PREPARE_COMMIT, 5)], "client_commit", "epoch_rule"),
    Case(COORDINATOR, "shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteAbortAndResultIsNotAbort",
         0, [INIT, BEGIN, *ABORT, row(PREPARE_COMMIT)], "client_commit", "illegal_transition"),
    Case(COORDINATOR, "shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteCommitAndResultIsNotCommit",
         0, [INIT, BEGIN, *COMMIT, row(PREPARE_ABORT)], "client_abort", "illegal_transition"),
    Case(COORDINATOR, "shouldReturnConcurrentTransactionsOnEndTxnRequestWhenStatusIsPrepareCommit", 0,
         [INIT, BEGIN, *COMMIT], "complete"),
    Case(COORDINATOR, "shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsPrepareAbort", 0,
         [INIT, BEGIN, row(PREPARE_ABORT), row(COMPLETE_COMMIT)], "complete", "illegal_transition"),
    Case(COORDINATOR, "shouldReturnCorrectlyWhenTransactionVersionUpgraded", 0,
         [INIT, BEGIN, *COMMIT], "complete"),
    Case(COORDINATOR, "shouldReturnWhenTransactionVersionDowngraded", 2,
         [INIT, BEGIN, *COMMIT2], "complete"),
    Case(COORDINATOR, "shouldReturnInvalidTxnRequestOnEndTxnV2IfNotEndTxnV2Retry", 2,
         [INIT, BEGIN, *COMMIT2, row(PREPARE_COMMIT, 2)], "client_commit", "illegal_transition"),
    Case(COORDINATOR, "an abort that skips epochs while a commit is pending", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT, 0), row(PREPARE_ABORT, 3)], "client_abort",
         "illegal_transition"),
    Case(COORDINATOR, "shouldNotAbortExpiredTransactionsThatHaveAPendingStateTransition", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT, wait_ms=TIMEOUT_MS + 1), row(COMPLETE_COMMIT)], "complete"),
    Case(COORDINATOR, "shouldGenerateNewProducerIdIfNoStateAndProducerIdAndEpochProvided", 0,
         [row(EMPTY, 0, **NEW_ID)], "init"),
    Case(COORDINATOR, "testFenceProducerWhenMappingExistsWithDifferentProducerId", 0,
         [row(EMPTY, 0, **NEW_ID), row(EMPTY, 1)], "init_again", "epoch_rule"),
    Case(COORDINATOR, "shouldReturnOkOnEndTxnWhenStatusIsCompleteCommitAndResultIsCommit", 0,
         [INIT, BEGIN, *COMMIT, row(COMPLETE_COMMIT)], "repeated_append"),
    Case(COORDINATOR, "shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbort", 0,
         [INIT, BEGIN, *ABORT, row(COMPLETE_ABORT)], "repeated_append"),
    Case(COORDINATOR, "shouldRespondWithErrorsNoneOnAddPartitionWhenNoErrorsAndPartitionsTheSame", 0,
         [INIT, BEGIN, BEGIN], "repeated_append"),
    Case(COORDINATOR, "shouldReturnOkOnEndTxnV2IfEndTxnV2RetryEpochOverflow", 2,
         [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_COMMIT, LAST),
          row(COMPLETE_COMMIT, 0, **NEW_ID)], "complete"),
    Case(COORDINATOR, "shouldAppendPrepareCommitToLogOnEndTxnWhenStatusIsOngoingAndResultIsCommit", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT)], "client_commit"),
    Case(COORDINATOR, "shouldAppendPrepareCommitToLogOnEndTxnWhenStatusIsOngoingAndResultIsCommit", 2,
         [INIT, BEGIN, row(PREPARE_COMMIT, 1)], "client_commit"),
    Case(COORDINATOR, "shouldAppendPrepareAbortToLogOnEndTxnWhenStatusIsOngoingAndResultIsAbort", 0,
         [INIT, BEGIN, row(PREPARE_ABORT)], "client_abort"),
    Case(COORDINATOR, "shouldAppendPrepareAbortToLogOnEndTxnWhenStatusIsOngoingAndResultIsAbort", 2,
         [INIT, BEGIN, row(PREPARE_ABORT, 1)], "client_abort"),
    Case(COORDINATOR, "shouldReturnInvalidEpochOnEndTxnWhenEpochIsLarger", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT, 1)], "client_commit", "epoch_rule"),
    Case(COORDINATOR, "shouldReturnInvalidEpochOnEndTxnWhenEpochIsSmaller", 0,
         [INIT, row(EMPTY, 1), row(ONGOING, 1), row(PREPARE_COMMIT, 0)], "client_commit", "epoch_rule"),
    Case(COORDINATOR, "shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingEmptyTransaction", 0,
         [INIT, row(EMPTY, 1)], "init_again"),
    Case(COORDINATOR, "shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteTransaction", 0,
         [INIT, BEGIN, *ABORT, row(EMPTY, 1)], "init_again"),
    Case(COORDINATOR, "shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteTransaction", 2,
         [INIT, BEGIN, *ABORT2, row(EMPTY, 2, wait_ms=5_000)], "init_again"),
    Case(COORDINATOR, "shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteCommitTransaction",
         0, [INIT, BEGIN, *COMMIT, row(EMPTY, 1)], "init_again"),
    Case(COORDINATOR, "shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteCommitTransaction",
         2, [INIT, BEGIN, *COMMIT2, row(EMPTY, 2)], "init_again"),
    Case(COORDINATOR, "shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareCommitState", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT), row(EMPTY, 1)], "init_again", "illegal_transition"),
    Case(COORDINATOR, "shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareAbortState", 0,
         [INIT, BEGIN, row(PREPARE_ABORT), row(EMPTY, 1)], "init_again", "illegal_transition"),
    Case(COORDINATOR, "shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState", 0,
         [INIT, BEGIN, *FENCED], "complete"),
    Case(COORDINATOR, "shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState", 0,
         [INIT, BEGIN, row(PREPARE_ABORT, 1)], "fence"),
    Case(COORDINATOR, "shouldFailToAbortTransactionOnHandleInitPidWhenProducerEpochIsSmaller", 0,
         [INIT, row(EMPTY, 5), row(ONGOING, 5), row(PREPARE_ABORT, 4)], "client_abort", "epoch_rule"),
    Case(COORDINATOR, "shouldNotRepeatedlyBumpEpochDueToInitPidDuringOngoingTxnIfAppendToLogFails", 0,
         [INIT, BEGIN, row(PREPARE_ABORT, 1), row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)], "complete"),
    Case(COORDINATOR, "shouldUseLastEpochToFenceWhenEpochsAreExhausted", 0,
         [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_ABORT, LAST),
          row(COMPLETE_ABORT, LAST), row(EMPTY, 0, **NEW_ID)], "epoch_exhausted"),
    Case(COORDINATOR, "testInitProducerIdWithNoLastProducerData", 0,
         [INIT, row(EMPTY, 9), row(EMPTY, 10)], "init_again"),
    Case(COORDINATOR, "testInitProducerIdWithCurrentEpochProvided", 0,
         [INIT, row(EMPTY, 10), row(EMPTY, 11)], "init_again"),
    Case(COORDINATOR, "testInitProducerIdStaleCurrentEpochProvided", 0,
         [INIT, row(EMPTY, 10), row(EMPTY, 11), row(EMPTY, 10)], "init_again", "epoch_rule"),
    Case(COORDINATOR, "testRetryInitProducerIdAfterProducerIdRotation", 0,
         [INIT, row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID), row(EMPTY, 0, **NEW_ID)], "init_retry"),
    Case(COORDINATOR, "testInitProducerIdWithInvalidEpochAfterProducerIdRotation", 0,
         [INIT, row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID), row(EMPTY, HIGH)], "init_again", "epoch_rule"),
    Case(COORDINATOR, "shouldAbortExpiredTransactionsInOngoingStateAndBumpEpoch", 0,
         [INIT, BEGIN, row(PREPARE_ABORT, 1, wait_ms=TIMEOUT_MS + 1)], "timeout"),
    Case(COORDINATOR, "shouldNotAcceptSmallerEpochDuringTransactionExpiration", 0,
         [INIT, row(EMPTY, 5), row(ONGOING, 5), row(PREPARE_ABORT, 4, wait_ms=TIMEOUT_MS + 1)],
         "client_abort", "epoch_rule"),
    Case(COORDINATOR, "shouldNotBumpEpochWhenAbortingExpiredTransactionIfAppendToLogFails", 0,
         [INIT, BEGIN, row(PREPARE_ABORT, 1, wait_ms=TIMEOUT_MS + 1), row(PREPARE_ABORT, 1),
          row(COMPLETE_ABORT, 1)], "complete"),
]  # fmt: skip

LOG = [
    Case(MANAGER, "testCompleteTransitionWhenAppendSucceeded", 0, [INIT, BEGIN], "add_partitions"),
    Case(MANAGER, "testAppendFailToCoordinatorNotAvailableError", 0,
         [INIT, BEGIN, BEGIN], "repeated_append"),
    Case(MANAGER, "testPendingStateNotResetOnRetryAppend", 0,
         [INIT, BEGIN, BEGIN], "repeated_append"),
    Case(MANAGER, "testAppendTransactionToLogWhileProducerFenced", 0,
         [INIT, row(EMPTY, 1), row(ONGOING, 0)], "add_partitions", "epoch_rule"),
    Case(MANAGER, "testLoadAndRemoveTransactionsForPartition", 0,
         [INIT, BEGIN, WIDER, row(PREPARE_COMMIT, 0, partitions="a+b"), row(COMPLETE_COMMIT),
          row(TOMBSTONE)], "expiry"),
    Case(MANAGER, "testLoadAndRemoveTransactionsForPartition", 0,
         [INIT, BEGIN, row(ONGOING, 0, partitions="a+b+c"),
          row(PREPARE_ABORT, 0, partitions="a+b+c")], "client_abort"),
    Case(MANAGER, "shouldWriteTxnMarkersForTransactionInPreparedCommitState", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT, leader_epoch=1), row(COMPLETE_COMMIT, leader_epoch=2)],
         "complete"),
    Case(MANAGER, "shouldWriteTxnMarkersForTransactionInPreparedAbortState", 0,
         [INIT, BEGIN, row(PREPARE_ABORT, leader_epoch=1), row(COMPLETE_ABORT, leader_epoch=2)],
         "complete"),
    Case(MANAGER, "shouldRemoveCompleteCommitExpiredTransactionalIds", 0,
         [INIT, BEGIN, *COMMIT, row(TOMBSTONE)], "expiry"),
    Case(MANAGER, "shouldRemoveCompleteAbortExpiredTransactionalIds", 0,
         [INIT, BEGIN, *ABORT, row(TOMBSTONE)], "expiry"),
    Case(MANAGER, "shouldRemoveEmptyExpiredTransactionalIds", 0, [INIT, row(TOMBSTONE)], "expiry"),
    Case(MANAGER, "shouldNotRemoveExpiredTransactionalIdsIfLogAppendFails", 0,
         [INIT, BEGIN, *ABORT, row(TOMBSTONE), row(ONGOING, wait_ms=5_000)], "add_partitions"),
    Case(MANAGER, "shouldOnlyConsiderTransactionsInTheOngoingStateToAbort", 0,
         [INIT, BEGIN, *COMMIT, row(PREPARE_ABORT, 1, wait_ms=TIMEOUT_MS + 1)], "client_abort",
         "illegal_transition"),
    Case(MANAGER, "testTransactionVersionInTransactionManager", 2,
         [INIT, BEGIN, *COMMIT2], "complete"),
    Case(MANAGER, "shouldNotRemoveOngoingTransactionalIds", 0,
         [INIT, BEGIN, row(TOMBSTONE)], "expiry", "illegal_transition"),
    Case(MANAGER, "shouldNotRemovePrepareAbortTransactionalIds", 0,
         [INIT, BEGIN, row(PREPARE_ABORT), row(TOMBSTONE)], "expiry", "illegal_transition"),
    Case(MANAGER, "shouldNotRemovePrepareCommitTransactionalIds", 0,
         [INIT, BEGIN, row(PREPARE_COMMIT), row(TOMBSTONE)], "expiry", "illegal_transition"),
    Case(MANAGER, "testSuccessfulReimmigration", 0,
         [INIT, row(ONGOING, 0, partitions="a+b"), row(PREPARE_COMMIT, 0, partitions="a+b"),
          row(COMPLETE_COMMIT, leader_epoch=1)], "complete"),
]  # fmt: skip
CASES = [*TRANSITIONS, *REQUESTS, *LOG]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.of}.{case.name}-{case.version}")
def test_what_the_coordinator_writes(case: Case) -> None:
    history = replayed(case.records, case.version)
    last = len(case.records) - 1
    assert violations(history) == ([] if case.offence is None else [(last, case.offence)])
    if case.offence is None:
        assert causes(history)[-1] == case.cause
