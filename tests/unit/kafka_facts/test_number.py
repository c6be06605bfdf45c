"""How many cases of Kafka's own tests are facts here, each counted once."""

from __future__ import annotations

from tests.unit.kafka_facts import test_cleaner_facts as cleaner
from tests.unit.kafka_facts import test_coordinator_facts as coordinator
from tests.unit.kafka_facts import test_group_offset_facts as offsets
from tests.unit.kafka_facts import test_producer_state_facts as producers


def test_there_are_enough() -> None:
    rows = {
        "ProducerStateManagerTest": [*producers.REFUSALS, *producers.HELD],
        "": [*coordinator.CASES],
        "GroupMetadataManagerTest": offsets.OLD_COORDINATOR,
        "OffsetMetadataManagerTest": offsets.NEW_COORDINATOR,
        "LogCleanerTest": cleaner.CLEANED,
        "TransactionIndexTest": [*cleaner.INDEXES, *cleaner.INTERLEAVED],
    }
    cases = set()
    for of, facts in rows.items():
        for fact in facts:
            name = fact.name if "." in fact.name else f"{getattr(fact, 'of', of)}.{fact.name}"
            if name.partition(".")[2].startswith(("test", "should")):
                cases.add(name)
    print(len(cases), "cases,", sum(map(len, rows.values())), "facts")
    assert len(cases) >= 150
