"""The values that a column may hold, for columns that have a fixed set of them."""

from __future__ import annotations

from pipeline.replay.coordinator import CAUSES
from schemas.codes import STATE_NAMES, ControlType
from schemas.gold import CERTAINTIES, SEVERITIES, STATUSES

_STATES = tuple(int(state) for state in STATE_NAMES)
_TYPES = tuple(int(one) for one in ControlType)
_VERSIONS = (0, 1, 2)

ACCEPTED: dict[str, dict[str, tuple[int | str, ...]]] = {
    "bronze.batch": {
        "magic": (0, 1, 2),
        "codec": (0, 1, 2, 3, 4),
        "timestamp_type": (0, 1),
    },
    "bronze.txn_state": {"state": _STATES},
    "silver.coordinator_step": {
        "state": _STATES,
        "previous_state": _STATES,
        "transaction_version": _VERSIONS,
        "cause": tuple(CAUSES),
    },
    "silver.transaction": {
        "state": _STATES,
        "outcome": _TYPES,
        "transaction_version": _VERSIONS,
    },
    "silver.owner": {"state": _STATES},
    "silver.transaction_partition": {"state": _STATES, "outcome": _TYPES},
    "gold.finding": {
        "severity": SEVERITIES,
        "certainty": CERTAINTIES,
        "status": STATUSES,
    },
    "gold.run": {"verdict": ("passed", "failed", "unknown")},
}
"""Table -> column -> values; null is judged by the declaration of the column, not here."""
