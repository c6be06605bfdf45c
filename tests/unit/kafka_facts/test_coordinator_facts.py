"""Facts of Kafka's `TransactionCoordinatorTest`: what requests make the coordinator write, and what it refuses.

A refusal leaves nothing in a log; its fact is that the record which the request asked for is an offence there.
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
    DEAD,
    EMPTY,
    FENCE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    START_MS,
    TIMEOUT_MS,
    TOMBSTONE,
    row,
)

OF = "TransactionCoordinatorTest"
BOTH = (0, 2)
COMMIT, ABORT = 1, 0
WAITED = {"wait_ms": 2_000}
LATE = {"wait_ms": TIMEOUT_MS + 1}
NEW_TIMEOUT = {"txn_timeout_ms": 10}
UNDER_0 = {"value_version": 0, "client_transaction_version": None}

INITIALISED = [
    Written(OF, "shouldInitPidWithEpochZeroForNewTransactionalId", 0,
            [row(EMPTY, 0)], "init", {"epoch": 0}, is_new=True),
    Written(OF, "shouldGenerateNewProducerIdIfNoStateAndProducerIdAndEpochProvided", 0,
            [row(EMPTY, 1), row(TOMBSTONE), row(EMPTY, 0, **NEW_ID)], "expiry init"),
    Written(OF, "shouldGenerateNewProducerIdIfEpochsExhausted", 0,
            [row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)], "epoch_exhausted"),
    Written(OF, "shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingEmptyTransaction", 0,
            [row(EMPTY, 1), row(EMPTY, 2, **NEW_TIMEOUT)], "init_again", {"timeout_ms": 10}),
    *(
        Written(OF, name, version, [row(state, 1), row(EMPTY, 2, **NEW_TIMEOUT)], "init_again",
                {"producer_id": 1, "timeout_ms": 10})
        for version in BOTH
        for name, state in (
            ("shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteTransaction",
             COMPLETE_ABORT),
            ("shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteCommitTransaction",
             COMPLETE_COMMIT),
        )
    ),
    Written(OF, "testInitProducerIdWithCurrentEpochProvided", 0,
            [row(EMPTY, 10), row(EMPTY, 11), row(EMPTY, 11)], "init_again init_retry"),
    Written(OF, "testRetryInitProducerIdAfterProducerIdRotation", 0,
            [row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID), row(EMPTY, 0, **NEW_ID)],
            "epoch_exhausted init_retry"),
    Written(OF, "shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState", 0,
            [row(ONGOING, 1), row(PREPARE_ABORT, 2)], "fence",
            {"outcome": ABORT, "prepare_epoch": 2}),
    Written(OF, "shouldNotRepeatedlyBumpEpochDueToInitPidDuringOngoingTxnIfAppendToLogFails", 0,
            [row(ONGOING, 1), row(PREPARE_ABORT, 2), row(PREPARE_ABORT, 2, **WAITED),
             row(PREPARE_ABORT, 2, **WAITED)],
            "fence repeated_append repeated_append",
            {"transactions": 1, "outcome": ABORT, "prepare_epoch": 2}),
    Written(OF, "shouldUseLastEpochToFenceWhenEpochsAreExhausted", 0,
            [row(ONGOING, HIGH), row(PREPARE_ABORT, LAST)], "fence", {"prepare_epoch": LAST}),
]  # fmt: skip

ADDED = [
    Written(OF, "shouldAppendNewMetadataToLogOnAddPartitionsWhenPartitionsAdded", 0,
            [row(EMPTY, 1), row(ONGOING, 1)], "add_partitions", {"listed": "a"}),
    Written(OF, "shouldRespondWithSuccessOnAddPartitionsWhenStateIsOngoing", 0,
            [row(ONGOING, 1, partitions=""), row(ONGOING, 1)], "add_partitions",
            {"transactions": 1, "promised": "a"}),
    *(
        Written(OF, name, version, [row(state, 1), row(ONGOING, 1)], "add_partitions",
                {"listed": "a"})
        for version in BOTH
        for name, state in (
            ("shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteCommit", COMPLETE_COMMIT),
            ("shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteAbort", COMPLETE_ABORT),
        )
    ),
    Written(OF, "partitions that are listed already are no step", 0,
            [row(ONGOING, 1), row(ONGOING, 1)], "repeated_append", {"transactions": 1}),
    Written(OF, "testDescribeTransactions", 0, [row(EMPTY, 1), row(ONGOING, 1)], "add_partitions",
            {"producer_id": 1, "epoch": 1, "state": ONGOING, "timeout_ms": TIMEOUT_MS,
             "start_ms": START_MS + 20, "listed": "a"}),
    Written(OF, "testDescribeTransactionsWithExpiringTransactionalId", 0,
            [row(EMPTY, 1), row(TOMBSTONE)], "expiry", {"is_known": False}),
]  # fmt: skip

ENDED = [
    *(
        Written(OF, name, version, [row(ONGOING, 1), row(state, 1 + version // 2)], cause,
                {"outcome": outcome, "prepare_epoch": 1 + version // 2})
        for version in BOTH
        for name, state, cause, outcome in (
            ("shouldAppendPrepareCommitToLogOnEndTxnWhenStatusIsOngoingAndResultIsCommit",
             PREPARE_COMMIT, "client_commit", COMMIT),
            ("shouldAppendPrepareAbortToLogOnEndTxnWhenStatusIsOngoingAndResultIsAbort",
             PREPARE_ABORT, "client_abort", ABORT),
        )
    ),
    Written(OF, "shouldReturnWhenTransactionVersionDowngraded", 2,
            [row(ONGOING, 1), row(PREPARE_COMMIT, 2), row(COMPLETE_COMMIT, 2, **UNDER_0)],
            "client_commit complete", {"prepare_epoch": 2, "epoch": 2, "versions": [2, 2, 0]}),
    Written(OF, "shouldReturnCorrectlyWhenTransactionVersionUpgraded", 0,
            [row(ONGOING, 1), row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1, value_version=1)],
            "client_commit complete", {"prepare_epoch": 1, "epoch": 1, "versions": [0, 0, 1]}),
    Written(OF, "shouldReturnOkOnEndTxnV2IfEndTxnV2RetryEpochOverflow", 2,
            [row(PREPARE_COMMIT, LAST, next_producer_id=2), row(COMPLETE_COMMIT, 0, **NEW_ID)],
            "complete", {"producer_id": 2, "epoch": 0}),
    Written(OF, "shouldAbortExpiredTransactionsInOngoingStateAndBumpEpoch", 0,
            [row(EMPTY, 1), row(ONGOING, 1), row(PREPARE_ABORT, 2, **LATE)],
            "add_partitions timeout", {"listed": "a", "start_ms": START_MS + 20}),
    Written(OF, "shouldNotAbortExpiredTransactionsThatHaveAPendingStateTransition", 0,
            [row(EMPTY, 1), row(ONGOING, 1), row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1, **LATE)],
            "add_partitions client_commit complete", {"outcome": COMMIT, "epoch": 1}),
    Written(OF, "shouldNotBumpEpochWhenAbortingExpiredTransactionIfAppendToLogFails", 0,
            [row(EMPTY, 1), row(ONGOING, 1), row(PREPARE_ABORT, 2, **LATE),
             row(PREPARE_ABORT, 2, wait_ms=10_000)],
            "add_partitions timeout repeated_append", {"prepare_epoch": 2, "transactions": 1}),
]  # fmt: skip

REFUSED = [
    Refused(OF, "shouldRespondWithInvalidPidMappingOnAddPartitionsToTransactionWhenTransactionalIdNotPresent",
            0, [], row(ONGOING, 1), "illegal_transition"),
    *(
        Refused(OF, name, 2, [row(state, 0)], row(ONGOING, 0), "illegal_transition")
        for name, state in (
            ("shouldRespondWithConcurrentTransactionsOnAddPartitionsWhenStateIsPrepareCommit",
             PREPARE_COMMIT),
            ("shouldRespondWithConcurrentTransactionOnAddPartitionsWhenStateIsPrepareAbort",
             PREPARE_ABORT),
        )
    ),
    Refused(OF, "shouldRespondWithProducerFencedOnAddPartitionsWhenEpochsAreDifferent", 2,
            [row(PREPARE_COMMIT, 10)], row(ONGOING, 0), "illegal_transition"),
    Refused(OF, "another epoch is refused in any state", 2,
            [row(COMPLETE_COMMIT, 10)], row(ONGOING, 0), "epoch_rule"),
    *(
        Refused(OF, "shouldReplyWithInvalidPidMappingOnEndTxnWhenTxnIdDoesntExist", version,
                [], row(PREPARE_COMMIT, 0), "illegal_transition")
        for version in BOTH
    ),
    *(
        Refused(OF, "shouldReplyWithInvalidPidMappingOnEndTxnWhenPidDosentMatchMapped", version,
                [row(ONGOING, 0, producer_id=10)], row(PREPARE_COMMIT, version // 2, producer_id=0),
                "epoch_rule")
        for version in BOTH
    ),
    *(
        Refused(OF, "shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction", version,
                [row(ONGOING, 1)], row(PREPARE_COMMIT, version // 2), "epoch_rule")
        for version in BOTH
    ),
    *(
        Refused(OF, name, version, [row(complete, 1)], row(prepare, 1),
                "epoch_rule" if (prepare, version) == (PREPARE_ABORT, 2) else "illegal_transition")
        for version in BOTH
        for name, complete, prepare in (
            ("shouldReturnOkOnEndTxnWhenStatusIsCompleteCommitAndResultIsCommit",
             COMPLETE_COMMIT, PREPARE_COMMIT),
            ("shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbort",
             COMPLETE_ABORT, PREPARE_ABORT),
            ("shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteAbortAndResultIsNotAbort",
             COMPLETE_ABORT, PREPARE_COMMIT),
            ("shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteCommitAndResultIsNotCommit",
             COMPLETE_COMMIT, PREPARE_ABORT),
        )
    ),
    *(
        Refused(OF, "shouldReturnInvalidTxnRequestOnEndTxnV2IfNotEndTxnV2Retry", 2,
                [row(state, 1)], row(PREPARE_COMMIT, 2), "illegal_transition")
        for state in (PREPARE_COMMIT, COMPLETE_COMMIT)
    ),
    *(
        Refused(OF, name, version, [row(COMPLETE_COMMIT, held)], row(PREPARE_COMMIT, asked + version // 2),
                "illegal_transition")
        for version in BOTH
        for name, held, asked in (
            ("shouldReturnInvalidEpochOnEndTxnWhenEpochIsLarger", 1, 2),
            ("shouldReturnInvalidEpochOnEndTxnWhenEpochIsSmaller", 2, 1 - version // 2),
        )
    ),
    *(
        Refused(OF, "an end under a larger or smaller epoch", version,
                [row(ONGOING, 2)], row(PREPARE_COMMIT, asked + version // 2), "epoch_rule")
        for version in BOTH
        for asked in (1, 3)
    ),
    Refused(OF, "abort decided, commit completed", 0,
            [row(PREPARE_ABORT, 1)], row(COMPLETE_COMMIT, 1), "illegal_transition"),
    Refused(OF, "an abort that skips epochs while a commit is pending", 0,
            [row(PREPARE_COMMIT, 0)], row(PREPARE_ABORT, 3), "illegal_transition"),
    Refused(OF, "the epoch of a decision under version 0 stays after the upgrade", 0,
            [row(ONGOING, 1), row(PREPARE_COMMIT, 1)], row(COMPLETE_COMMIT, 2, value_version=1),
            "epoch_rule"),
    *(
        Refused(OF, name, 2, [row(state, 0)], row(EMPTY, 1), "illegal_transition")
        for name, state in (
            ("shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareCommitState",
             PREPARE_COMMIT),
            ("shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareAbortState",
             PREPARE_ABORT),
        )
    ),
    Refused(OF, "shouldNotBumpEpochWithPendingTransaction", 0,
            [row(ONGOING, 1), row(PREPARE_COMMIT, 1)], row(EMPTY, 2), "illegal_transition"),
    Refused(OF, "shouldFailToAbortTransactionOnHandleInitPidWhenProducerEpochIsSmaller", 0,
            [row(ONGOING, 3)], row(PREPARE_ABORT, 2), "epoch_rule"),
    Refused(OF, "shouldNotAcceptSmallerEpochDuringTransactionExpiration", 0,
            [row(EMPTY, 3), row(ONGOING, 3)], row(PREPARE_ABORT, 2, **LATE), "epoch_rule"),
    Refused(OF, "testFenceProducerWhenMappingExistsWithDifferentProducerId", 0,
            [row(EMPTY, 1, **NEW_ID)], row(EMPTY, 2), "epoch_rule"),
    Refused(OF, "testInitProducerIdWithInvalidEpochAfterProducerIdRotation", 0,
            [row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)], row(EMPTY, HIGH), "epoch_rule"),
    Refused(OF, "an instance that goes on under the epoch that was replaced", 0,
            [row(EMPTY, 10), row(EMPTY, 11)], row(EMPTY, 10), "epoch_rule"),
    *(
        Refused(OF, "what is never written", 0, [row(ONGOING)], row(state), "impossible_state_on_disk")
        for state in (DEAD, FENCE)
    ),
]  # fmt: skip
WRITTEN = [*INITIALISED, *ADDED, *ENDED]


@pytest.mark.parametrize("case", WRITTEN, ids=named)
def test_what_the_coordinator_writes(case: Written) -> None:
    check_written(case)


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_what_the_coordinator_refuses(case: Refused) -> None:
    check_refused(case)
