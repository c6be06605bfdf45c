"""Classes of findings by detector: severity, certainty and meaning, for the pages of `docs/detectors`."""

from __future__ import annotations

from typing import NamedTuple


class Class(NamedTuple):
    """One class of a detector.

    Attributes:
        name: as in the column `class`.
        severity: what a finding of it gets; several when the circumstances decide.
        certainty: likewise.
        meaning: one line.
    """

    name: str
    severity: str
    certainty: str
    meaning: str


def _same(severity: str, certainty: str, **meanings: str) -> tuple[Class, ...]:
    return tuple(Class(name, severity, certainty, text) for name, text in meanings.items())


CLASSES: dict[str, tuple[Class, ...]] = {
    "hanging_transaction": (
        *_same(
            "critical",
            "proven",
            orphan_producer="no transactional id holds the producer id",
            not_in_transaction="the owner lists other partitions, or its transaction is complete",
            epoch_mismatch="the owner moved on to a later epoch",
            prepare_stuck="the coordinator decided, its marker never came",
            past_deadline="the coordinator was alive long past the deadline and did not abort",
        ),
        Class(
            "snapshot_only",
            "critical, or info",
            "proven",
            "no batch is left, no coordinator owns it; only the producer snapshot holds it open; info "
            "where not every coordinator partition was read",
        ),
        Class(
            "owner_not_copied",
            "info, or major",
            "consistent_with",
            "the owner's coordinator partition is not in the copy; major once markers behind the "
            "run show it open for longer than any transaction may be",
        ),
    ),
    "duplicate_batch": _same(
        "critical",
        "proven",
        exact="first and last sequence are the same",
        overlap="the ranges intersect",
    ),
    "zombie_write": _same(
        "critical",
        "proven",
        epoch_regressed="data below an epoch already seen for the producer in the partition",
        after_fence="a run of the old epoch that no transaction of its epoch can own",
        stale_coordinator="a marker whose coordinator epoch goes back",
    ),
    "write_outside_transaction": (
        *_same(
            "critical",
            "proven",
            partition_not_added="the partition was never added to the transaction",
            after_completion="data behind the marker, and no new transaction was begun",
        ),
        Class(
            "swallowed",
            "major",
            "suspicion",
            "the producer's next transaction ended late data; LogAppendTime topics only",
        ),
    ),
    "marker_audit": (
        *_same(
            "critical",
            "proven",
            torn="one transaction ended both ways: COMMIT in one partition, ABORT in another",
            wrong_outcome="the marker contradicts the decision",
        ),
        *_same(
            "major",
            "proven",
            missing="declared complete, and a listed partition has no marker",
            unexpected="a COMMIT without any coordinator transaction",
            wrong_epoch="the marker's epoch is not the decided one",
        ),
        Class(
            "early_completion",
            "major",
            "consistent_with",
            "the partition's first marker came after the transaction was declared complete",
        ),
        Class("duplicate", "info", "proven", "the marker was sent again: legal"),
        Class(
            "other_clock",
            "info",
            "consistent_with",
            "markers not judged: the brokers' clocks differ by more than clock_skew_ms",
        ),
        Class(
            "ambiguous", "info", "consistent_with", "markers not judged: each fits two transactions"
        ),
    ),
    "coordinator_state": _same(
        "major",
        "proven",
        illegal_transition="a state that may not follow the one before",
        partition_set_shrank="a listed partition disappeared before the end",
        epoch_rule="an epoch or producer id that may not follow",
        impossible_state_on_disk="a state that is never written",
        wrong_partition="the id's hash belongs to another partition",
        producer_id_shared="two transactional ids hold one producer id",
        timeout_changed="the timeout changed outside InitProducerId",
        prepare_with_all_markers="all markers are there, and Complete* never came",
        double_epoch_bump="the epoch was raised twice (KAFKA-19367)",
    ),
    "committed_offset": (
        Class(
            "regressed",
            "minor, or info",
            "proven",
            "a commit below the one it replaces; info when it is a plain one",
        ),
        Class(
            "blocked",
            "critical, or info",
            "proven",
            "offsets wait for the end of a transaction; info while that is legally open",
        ),
        Class("mixed", "info", "proven", "plain and transactional commits take turns"),
        Class("beyond_end", "minor", "proven", "committed past the end of every replica"),
    ),
    "offset_race": (
        Class("window", "info", "proven", "how soon commits followed the previous marker"),
        *_same(
            "major",
            "consistent_with",
            bypass="a commit stamped before that marker",
            early_completion="offsets whose marker came after the transaction was declared complete",
        ),
        Class(
            "regression",
            "info",
            "consistent_with",
            "a lower commit and a new generation behind a commit that stood in a window",
        ),
        Class(
            "healed", "info", "suspicion", "the same, under a leader that had read the log again"
        ),
    ),
    "content_duplicate": (
        Class(
            "resent",
            "major, or minor",
            "consistent_with",
            "equal CreateTime, other producer id or epoch; minor where a producer has no id",
        ),
        Class("repeated", "major", "suspicion", "twice by two sessions, at two times"),
    ),
    "sequence_gap": (
        Class(
            "lost",
            "major, or info",
            "proven",
            "sequence numbers are missing; info for the first batch in a partition (consistent_with)",
        ),
        Class("reset", "info", "proven", "sequences start anew at another number"),
    ),
    "replica_divergence": (
        *_same(
            "critical",
            "proven",
            same_offset_other_bytes="one offset, other bytes or another leader epoch",
            lost_tail="the replica of the newer leader epoch lacks an acknowledged tail",
        ),
        Class("uncommitted_tail", "info", "proven", "the difference was never acknowledged"),
        Class(
            "other_incarnation",
            "info",
            "consistent_with",
            "without topic ids: perhaps left of a deleted topic of the same name",
        ),
    ),
    "damaged_log": (
        *_same(
            "major",
            "proven",
            crc="a batch whose checksum is wrong",
            unreadable="bytes that are no batch, or a file that cannot be read",
        ),
        *_same(
            "info, or major",
            "proven",
            torn_tail="the last batch is cut; info in the newest segment",
            zero_tail="zeroes at the end; info in the newest segment",
            gap_between_segments="a segment is missing between two others; info in a copy taken "
            "from a running broker",
        ),
        Class("segment_overlap", "info", "proven", "its offsets lie in the segment before it"),
        *_same(
            "major, or info",
            "proven",
            index_mismatch="an entry of .index is no batch; info where the broker ran or crashed",
            snapshot_mismatch="a producer's state differs from the batches before it; likewise",
            leader_epoch_mismatch="the log begins an epoch that the file does not; likewise",
        ),
        Class(
            "timeindex_mismatch",
            "minor, or info",
            "proven",
            "an entry of .timeindex is not its batch's time; likewise",
        ),
    ),
    "lso_pinned": (
        Class(
            "pinned",
            "critical, or major, or info",
            "proven",
            "the oldest open transaction of a partition; as severe as its own finding",
        ),
    ),
    "slow_transaction": _same(
        "minor",
        "proven",
        long_running="open for long before they were ended",
        slow_markers="long from the decision to Complete*",
        near_timeout="ended shortly before the coordinator would have aborted them",
    ),
    "fencing_storm": _same(
        "minor",
        "proven",
        storm="many InitProducerId of one id in a short time",
        epoch_burn="the producer epochs will be used up soon",
        id_reuse_race="instances of one id abort each other's transactions",
    ),
    "id_hygiene": _same(
        "minor",
        "proven",
        unbounded_ids="ever-new ids, most of them used once",
        idle_expired="ids that expired and came back",
        timeout_above_max="timeouts above the brokers' maximum",
        interleaved_producers="two producer ids of one id wrote in turn",
    ),
    "visibility": _same(
        "critical",
        "proven",
        aborted_exposed="an aborted transaction that .txnindex does not list",
        committed_hidden="a committed transaction that .txnindex lists as aborted",
        index_wrong="an entry of .txnindex with another beginning or without its marker",
    ),
    "version_inferred": _same(
        "info",
        "proven",
        transaction_version="which transaction.version the transactions have",
        broker_version="a lower bound of all brokers' version, or of one that led a partition",
        group_coordinator="the group coordinator of KIP-848 wrote offsets",
    ),
    "manual_abort": _same("info", "proven", manual_abort="an operator's abort"),
}
