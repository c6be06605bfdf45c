"""How many facts of Kafka's own tests there are; each names its class and case."""

from __future__ import annotations

from tests.unit.kafka_facts import test_cleaner_facts as cleaner
from tests.unit.kafka_facts import test_coordinator_facts as coordinator
from tests.unit.kafka_facts import test_group_offset_facts as offsets
from tests.unit.kafka_facts import test_producer_state_facts as producers


def test_there_are_enough() -> None:
    by_class = {
        "ProducerStateManagerTest": [*producers.REFUSALS, *producers.HELD],
        "Transaction*Test": coordinator.CASES,
        "GroupMetadataManagerTest": offsets.OLD_COORDINATOR,
        "OffsetMetadataManagerTest": offsets.NEW_COORDINATOR,
        "LogCleanerTest": cleaner.CLEANED,
        "TransactionIndexTest": [*cleaner.INDEXES, *cleaner.INTERLEAVED],
    }
    counts = {name: len(rows) for name, rows in by_class.items()}
    print(counts)
    assert sum(counts.values()) >= 150
