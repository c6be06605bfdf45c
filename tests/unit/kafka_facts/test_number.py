"""How many cases of Kafka's own tests are facts here, each counted once."""

from __future__ import annotations

import re
from collections import Counter
from types import ModuleType

from tests.unit.kafka_facts import test_byte_facts as raw
from tests.unit.kafka_facts import test_cleaner_facts as cleaner
from tests.unit.kafka_facts import test_coordinator_facts as coordinator
from tests.unit.kafka_facts import test_coordinator_log_facts as coordinator_log
from tests.unit.kafka_facts import test_coordinator_metadata_facts as metadata
from tests.unit.kafka_facts import test_coordinator_v2_facts as epochs
from tests.unit.kafka_facts import test_coordinator_value_facts as values
from tests.unit.kafka_facts import test_group_load_facts as classic
from tests.unit.kafka_facts import test_group_offset_facts as offsets
from tests.unit.kafka_facts import test_index_facts as indexes
from tests.unit.kafka_facts import test_log_facts as logs
from tests.unit.kafka_facts import test_producer_state_facts as producers

_CASE = re.compile(r"\w+Test\.([tT]est|should|update|build)\w+")
"""Class and case as Kafka names them; other rows have names in words."""


def test_there_are_enough() -> None:
    rows = {
        "": [
            *producers.STORIES,
            *logs.STORIES,
            *offsets.STORIES,
            *classic.STORIES,
            *coordinator.WRITTEN,
            *coordinator.REFUSED,
            *coordinator_log.WRITTEN,
            *coordinator_log.REFUSED,
            *metadata.WRITTEN,
            *metadata.REFUSED,
            *epochs.WRITTEN,
            *epochs.REFUSED,
            *values.READ,
            *values.UNREADABLE,
            *values.VERSIONS,
            *values.REFUSED,
            *raw.TABLES,
        ],
        "GroupMetadataManagerTest": classic.VALUES,
        "LogCleanerTest": cleaner.CLEANED,
        "TransactionIndexTest": [*indexes.INDEXES, *indexes.TRUNCATED],
        "ProducerStateManagerTest": indexes.BROKEN,
    }
    named = {
        name if "." in (name := fact.name) else f"{getattr(fact, 'of', of)}.{name}"
        for of, facts in rows.items()
        for fact in facts
    }
    cases = {name for name in named if _CASE.fullmatch(name)}
    for module in (cleaner, classic, indexes, logs, metadata, raw, values):
        cases |= set(alone(module))
    print(Counter(name.partition(".")[0] for name in sorted(cases)))
    print(len(cases), "cases,", sum(map(len, rows.values())), "rows")
    assert len(cases) >= 150


def alone(module: ModuleType) -> list[str]:
    """Cases that are told by a test of their own, named in its first words."""
    texts = [
        getattr(module, name).__doc__ or "" for name in dir(module) if name.startswith("test_")
    ]
    return [text[1:].partition("`")[0] for text in texts if _CASE.match(text[1:])]
