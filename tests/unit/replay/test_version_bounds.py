"""What formats prove of which broker, and what a proof frees of which suspicion."""

from __future__ import annotations

import pytest

from docs.classes import CLASSES
from pipeline.replay import version_bounds
from pipeline.replay.version_bounds import FIXES, NAMES_PREVIOUS_ID, Evidence, is_fixed, parsed
from pipeline.spark import version_inputs
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

NOW = 1_795_000_000_000
BUMP = ("coordinator_state", "double_epoch_bump")


def _evidence(topic: str, value_version: int, leader_epoch: int = 0, offset: int = 9) -> Evidence:
    return Evidence(0, topic, 1, leader_epoch, value_version, offset, NOW + offset)


def _said(*found: Evidence) -> list[tuple[str, str]]:
    said = version_inputs.statements({}, found)
    return [(one.label, one.title) for one in said]


@pytest.mark.parametrize(
    ("defect", "fixed", "unfixed"),
    [
        (BUMP, "4.0.1", "4.0.0"),
        (("offset_race", "window"), "3.9.1", "3.9.0"),
        (("offset_race", "bypass"), "4.0", "3.9"),
        (("offset_race", "early_completion"), "4.0.0", "3.9.2"),
    ],
)
def test_a_version_frees_of_what_it_has_fixed(
    defect: tuple[str, str], fixed: str, unfixed: str
) -> None:
    assert is_fixed(*defect, parsed(fixed))
    assert not is_fixed(*defect, parsed(unfixed))
    assert not is_fixed(*defect, parsed(None))
    assert not is_fixed("coordinator_state", "epoch_rule", parsed(fixed))


def test_every_class_that_names_a_defect_knows_its_fix() -> None:
    names = {(code, one.name): one.meaning for code, every in CLASSES.items() for one in every}
    assert set(FIXES) <= set(names)
    assert {place for place, meaning in names.items() if "KAFKA-" in meaning} <= set(FIXES)


def test_a_commit_of_version_4_proves_the_one_broker_that_wrote_it() -> None:
    found = [_evidence(OFFSETS_TOPIC, 4, leader_epoch=5), _evidence(OFFSETS_TOPIC, 3, 6)]
    assert version_bounds.of_all(found) == {}
    leaders = version_bounds.of_leaders(found)
    assert {leader[3]: bound.version for leader, bound in leaders.items()} == {5: (4, 1), 6: (2, 1)}
    assert ("broker_version", "a broker is of Kafka 4.1 or later") in _said(*found)


def test_a_transaction_version_proves_every_broker() -> None:
    assert _said(_evidence(TXN_TOPIC, 1)) == [
        ("broker_version", "brokers are of Kafka 4.0 or later")
    ]
    assert _said(_evidence(TXN_TOPIC, 0)) == []
    assert _said(_evidence(TXN_TOPIC, NAMES_PREVIOUS_ID)) == [
        ("broker_version", "brokers are of Kafka 4.0 or later"),
        ("broker_version", "a broker is of Kafka 4.3 or later"),
    ]


def test_of_equal_proofs_the_first_counts() -> None:
    found = [_evidence(TXN_TOPIC, 1, offset=7), _evidence(TXN_TOPIC, 1, leader_epoch=1, offset=3)]
    assert version_bounds.of_all(found)[0].evidence.offset == 3


@pytest.mark.parametrize(
    ("topic", "value_version", "leader_epochs"),
    [
        (TXN_TOPIC, NAMES_PREVIOUS_ID, [3]),
        (TXN_TOPIC, 1, []),
        (OFFSETS_TOPIC, 4, []),
    ],
)
def test_only_a_coordinator_that_shows_the_fix_is_free_of_the_defect(
    topic: str, value_version: int, leader_epochs: list[int]
) -> None:
    """Its neighbours may still be 4.0.0, and so may whoever led the partition before or after it."""
    found = [
        _evidence(topic, value_version, 3),
        _evidence(TXN_TOPIC, 1, 2),
        _evidence(TXN_TOPIC, 1, 4),
    ]
    fixed = version_inputs.fixed_leaders(found, TXN_TOPIC, BUMP)
    assert fixed == [(0, 1, epoch) for epoch in leader_epochs]
