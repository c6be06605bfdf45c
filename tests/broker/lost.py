"""Decisions that a coordinator made, acted on and lost.

A coordinator loads its log up to its end, not up to the high watermark (Kafka:
`TransactionStateManager.loadTransactionMetadata`). After a crash it may so write markers for a Prepare* that no other
replica has; when another one leads later, that record is cut off and the transaction is decided anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.config import Config
from pipeline.replay.transaction_state import PREPARE
from tests import pure_audit

Decision = tuple[str, int, int, int]
"""Transactional id, offset, state and epoch of a Prepare*."""


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
