"""Decisions that a coordinator lost, and markers that it did not send: what brokers do wrong when they crash.

A coordinator loads its log up to its end, not up to the high watermark (Kafka:
`TransactionStateManager.loadTransactionMetadata`). After a crash it may so write markers for a Prepare* that no other
replica has; when another one leads later, that record is cut off and the transaction is decided anew.

From 4.3.0 on it takes a partition that has no leader for a deleted one: it skips its marker and declares the
transaction complete (KAFKA-20734).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pipeline.config import Config
from pipeline.replay.transaction_state import PREPARE
from tests import pure_audit

Decision = tuple[str, int, int, int]
"""Transactional id, offset, state and epoch of a Prepare*."""
Skipped = tuple[str, str, int]
"""Transactional id, topic and partition of a marker that was not sent."""
_SKIPPED = re.compile(
    r"leader endpoint for partitions (.+?) while trying to send transaction markers for (\S+?), these partitions"
)
_PARTITION = re.compile(r"([\w.-]+)-(\d+)")


def decisions(broker: Path) -> set[Decision]:
    """Prepare* records in the log of one broker, whoever else has them."""
    replayed = pure_audit.replayed(pure_audit.read(broker, Config()))
    return {
        (row["transactional_id"], row["offset"], row["state"], row["producer_epoch"])
        for row in replayed.steps
        if row["state"] in PREPARE
    }


def is_lost_decision(finding: dict[str, Any], copy: Path, evidence: set[Decision]) -> bool:
    """Whether a marker without its decision is a decision that was there before and is not any more."""
    if (finding["code"], finding["class"]) != ("marker_audit", "wrong_outcome"):
        return False
    steps = pure_audit.replayed(pure_audit.read(copy, Config())).steps
    mine = {
        row["offset"]: (row["state"], row["producer_epoch"])
        for row in steps
        if row["transactional_id"] == finding["transactional_id"]
    }
    return any(
        name == finding["transactional_id"] and mine.get(offset, held) != held
        for name, offset, *rest in evidence
        for held in [tuple(rest)]
    )


def skipped_markers(cluster: Path) -> set[Skipped]:
    """What the brokers' own output says of markers that were not sent, to deleted partitions as well."""
    said = "".join(file.read_text(errors="replace") for file in cluster.glob("broker-*/output.txt"))
    return {
        (transactional_id, topic, int(number))
        for partitions, transactional_id in _SKIPPED.findall(said)
        for topic, number in _PARTITION.findall(partitions)
    }


def is_skipped_marker(finding: dict[str, Any], skipped: set[Skipped]) -> bool:
    """Whether a finding tells of a transaction whose marker a broker said to have skipped."""
    tells = (
        finding["code"] in ("hanging_transaction", "lso_pinned") or finding["class"] == "missing"
    )
    mine = (finding["transactional_id"], finding["topic"], finding["partition"])
    return tells and mine in skipped
