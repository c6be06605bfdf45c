"""Rows for facts of Kafka's own tests of the transaction coordinator, and what each kind of row has to hold.

A log begins with the record that the case begins with, as compaction would have left it, or with an id that is new.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pipeline.replay.coordinator_log import IdHistory
from tests.unit.replay.histories import Row, causes, replayed, violations

HIGH, LAST = 32766, 32767
NEW_ID = {"producer_id": 2}
WEEK_MS = 7 * 86_400_000


class Written(NamedTuple):
    """A log of one id that Kafka's coordinator writes.

    Attributes:
        of: Kafka's test class.
        name: Its case; any other name tells what no case does.
        version: transaction.version.
        log: Records of the id.
        causes: Of the records behind the first, or of all when the id is new; None where records alone do not tell.
        facts: What the replay then tells of the id, by the names in `told`.
        is_new: The first record is the first ever.
    """

    of: str
    name: str
    version: int
    log: list[Row]
    causes: str | None
    facts: dict[str, Any] = {}  # noqa: RUF012 - never changed, and a tuple has no class attributes
    is_new: bool = False


class Refused(NamedTuple):
    """A record that Kafka's coordinator does not write behind a log: the request is refused, or has nothing to do.

    Attributes:
        of: Kafka's test class.
        name: Its case; any other name tells what no case does.
        version: transaction.version.
        log: Records of the id; none when it is new.
        record: What would follow had the coordinator taken the request.
        rule: The rule that the record breaks.
    """

    of: str
    name: str
    version: int
    log: list[Row]
    record: Row
    rule: str


def named(case: Written | Refused) -> str:
    """Test id of a row."""
    return f"{case.of}.{case.name}-{case.version}"


def check_written(case: Written) -> None:
    """The log is in order, and its records mean what the case says."""
    history = replayed(case.log, case.version, is_complete=case.is_new)
    assert violations(history) == []
    found = " ".join(causes(history)[0 if case.is_new else 1 :])
    assert case.causes in (found, None)
    end = case.log[-1]
    if end.state is not None:
        of = {
            "producer_id": end.fields.get("producer_id", 1),
            "epoch": end.epoch,
            "state": end.state,
        }
        assert told(history, of) == of
    assert told(history, case.facts) == case.facts


def check_refused(case: Refused) -> None:
    """The log is in order, and the record behind it is the one offence."""
    is_new = not case.log
    if case.log:
        assert violations(replayed(case.log, case.version, is_complete=False)) == []
    history = replayed([*case.log, case.record], case.version, is_complete=is_new)
    assert violations(history) == [(len(case.log), case.rule)]


def told(history: IdHistory, names: dict[str, Any]) -> dict[str, Any]:
    """What the replay says of an id at the end of its log: who owns it, and its last transaction."""
    owner = next((one for one in history.owners if one.is_current), None)
    last = history.transactions[-1] if history.transactions else None
    facts: dict[str, Any] = {
        "is_known": owner is not None,
        "transactions": len(history.transactions),
        "versions": [step.transaction_version for step in history.steps],
    }
    if owner is not None:
        facts |= {
            "producer_id": owner.producer_id, "epoch": owner.producer_epoch, "state": owner.state,
            "timeout_ms": owner.txn_timeout_ms, "start_ms": owner.start_ms,
            "listed": "+".join(name.partition("\x00")[0] for name in owner.partitions),
        }  # fmt: skip
    if last is not None:
        facts |= {
            "outcome": last.outcome, "cause": last.cause, "prepare_epoch": last.prepare_epoch,
            "transaction_state": last.state, "transaction_start_ms": last.start_ms,
            "promised": "+".join(name.partition("\x00")[0] for name, _ in last.added),
            "completed_under": last.complete_leader_epoch,
        }  # fmt: skip
    return {name: facts[name] for name in names}
