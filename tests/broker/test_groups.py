"""Offsets in transactions whose group, member or client goes, and what admins do in the middle: nobody is accused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.errors import CoordinatorNotAvailableError
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from tests.broker.conftest import FAULTS, VERSIONS, living
from tests.broker.lab import Lab
from tests.broker.raw import RawProducer, Refused, check, patiently
from tests.broker.test_scenarios import FENCED, client, pinned

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TOPIC = "processed"
GROUPS = ("deleted", "offsets-deleted", "fenced", "died", "classic", "consumer")


@pytest.fixture(
    scope="module",
    params=[VERSIONS[0], *(pytest.param(one, marks=pytest.mark.full) for one in VERSIONS[1:])],
    ids=lambda version: f"kafka-{version}",
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One broker that has a topic; what is expected of it grows with the tests."""
    for one in living(request.param, tmp_path_factory.mktemp("groups") / "lab", FAULTS):
        one.expected[one.topic(TOPIC)] = set()
        _make_coordinators(one)
        yield one


def _make_coordinators(lab: Lab) -> None:
    """Who asks for a group's coordinator makes `__consumer_offsets`; the admin asks once."""
    end = time.monotonic() + 60
    while True:
        try:
            lab.ask.group_offsets("first")
        except CoordinatorNotAvailableError:
            assert time.monotonic() < end
            time.sleep(0.2)
        else:
            return


def add_offsets(producer: RawProducer, group: str) -> None:
    """AddOffsetsToTxn: the coordinator lists the group's partition of `__consumer_offsets`."""
    request = AddOffsetsToTxnRequest[3](
        producer.transactional_id, producer.producer_id, producer.epoch, group
    )
    patiently(lambda: check(producer.raw.ask(request).error_code))


def commit_offset(producer: RawProducer, group: str, offset: int, generation: int = -1) -> None:
    """TxnOffsetCommit of partition 0, in the name of a member of a generation."""
    request = TxnOffsetCommitRequest[3](
        producer.transactional_id, group, producer.producer_id, producer.epoch,
        generation, "" if generation < 0 else "gone", None, [(TOPIC, [(0, offset, -1, None)])],
    )  # fmt: skip

    def ask() -> None:
        for topic in producer.raw.ask(request).topics:
            for partition in topic.partitions:
                check(partition.error_code)

    patiently(ask)


def begin(lab: Lab, name: str, timeout_ms: int = 60_000) -> RawProducer:
    """A transaction with data."""
    producer = RawProducer(lab.raw, f"{name}-id", timeout_ms=timeout_ms)
    producer.add(TOPIC, 0)
    producer.produce(TOPIC, 0)
    return producer


@pytest.mark.parametrize("deletes", ["deleted", "offsets-deleted"])
def test_a_group_goes_while_its_offsets_are_pending(lab: Lab, deletes: str) -> None:
    """DeleteGroups and OffsetDelete, after one commit and before the marker of another."""
    producer = begin(lab, deletes)
    add_offsets(producer, deletes)
    commit_offset(producer, deletes, 1)
    producer.end(commits=True)
    lab.until(producer.transactional_id, "CompleteCommit")
    assert lab.ask.group_offsets(deletes) == {(TOPIC, 0): 1}
    producer.add(TOPIC, 0)
    add_offsets(producer, deletes)
    commit_offset(producer, deletes, 2)
    if deletes == "deleted":
        lab.ask.delete_group(deletes)
    else:
        lab.ask.delete_offset(deletes, TOPIC, 0)
    producer.end(commits=True)
    lab.until(producer.transactional_id, "CompleteCommit")


def test_a_member_of_an_old_generation_is_refused(lab: Lab) -> None:
    producer = begin(lab, "fenced")
    add_offsets(producer, "fenced")
    with pytest.raises(Refused, match=r"IllegalGeneration|UnknownMember"):
        commit_offset(producer, "fenced", 7, generation=3)
    producer.end(commits=False)
    lab.until(producer.transactional_id, "CompleteAbort")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_was_fenced_out(lab: Lab, protocol: str) -> None:
    """The group went on to another member; the first one's commit is refused, its transaction aborted."""
    if protocol == "consumer" and lab.cluster.version.startswith("3."):
        pytest.skip("KIP-848 came with 4.0")
    first = _member(lab, protocol)
    old = first.consumer_group_metadata()
    first.close()
    second = _member(lab, protocol)
    producer = client(lab, f"{protocol}-id")
    producer.begin_transaction()
    producer.produce(TOPIC, "value", partition=1)
    committed = [TopicPartition(TOPIC, 1, 5)]
    with pytest.raises(KafkaException):
        producer.send_offsets_to_transaction(committed, old, 30)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(TOPIC, "value", partition=1)
    producer.send_offsets_to_transaction(committed, second.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    second.close()
    lab.until(f"{protocol}-id", "CompleteCommit")


def _member(lab: Lab, protocol: str) -> Consumer:
    """A member of the group with the protocol's name, once it owns something."""
    settings = {"bootstrap.servers": lab.cluster.bootstrap, "group.id": protocol, "group.protocol": protocol,
                "enable.auto.commit": False}  # fmt: skip
    member = Consumer(settings)
    member.subscribe([TOPIC])
    assert _owns(member, 1)
    return member


def _owns(member: Consumer, partitions: int) -> bool:
    """Whether a member is given so many partitions within a minute."""
    end = time.monotonic() + 60
    while len(member.assignment()) < partitions and time.monotonic() < end:
        member.poll(0.2)
    return len(member.assignment()) >= partitions


def test_a_client_dies_before_it_commits_offsets(lab: Lab) -> None:
    """A marker in `__consumer_offsets` that ends nothing."""
    producer = begin(lab, "died", timeout_ms=1_000)
    add_offsets(producer, "died")
    lab.until(producer.transactional_id, "CompleteAbort")


def test_another_process_takes_the_id_over(lab: Lab) -> None:
    """Pending offsets of the first are aborted, those of the second count."""
    old = begin(lab, "taken")
    add_offsets(old, "fenced")
    commit_offset(old, "fenced", 8)
    new = begin(lab, "taken")
    with pytest.raises(Refused, match=FENCED):
        commit_offset(old, "fenced", 9)
    add_offsets(new, "fenced")
    commit_offset(new, "fenced", 10)
    new.end(commits=True)
    lab.until(new.transactional_id, "CompleteCommit")


def test_an_admin_fences_many(lab: Lab) -> None:
    """`Admin.fenceProducers`: InitProducerId with a timeout of 1 ms, for each id (KIP-618)."""
    tasks = [begin(lab, f"connect-{number}") for number in range(5)]
    for task in tasks:
        request = InitProducerIdRequest[4](task.transactional_id, 1, -1, -1)
        patiently(lambda request=request: check(lab.raw.ask(request).error_code))
    for task in tasks:
        with pytest.raises(Refused, match=FENCED):
            task.end(commits=True)
        lab.until(task.transactional_id, "Empty")


def test_records_go_in_the_middle_of_a_transaction(lab: Lab) -> None:
    """DeleteRecords of what it wrote so far; the topic gets a partition, and the transaction writes to that too."""
    producer = begin(lab, "cut")
    lab.ask.delete_records(TOPIC, 0)
    producer.produce(TOPIC, 0)
    lab.ask.grow(TOPIC, 3)
    producer.add(TOPIC, 2)
    producer.produce(TOPIC, 2)
    producer.end(commits=True)
    lab.until(producer.transactional_id, "CompleteCommit")


def test_what_hangs_is_found_beside(lab: Lab) -> None:
    """A producer that nobody knows; and the files tell the offsets of each group as the broker does."""
    topic = lab.topic("hangs", 1)
    orphan = RawProducer(lab.raw, "orphan")
    orphan.producer_id = 424_242
    offset = orphan.produce(topic, 0)
    found = pinned(topic, 0, offset, "orphan_producer")
    assert {one.start_offset for one in lab.ask.find_hanging() if one.topic == topic} == {offset}
    copied = lab.check(topic, found)
    assert copied.accusations == set(found)
    for group in GROUPS:
        assert lab.committed(copied, group) == lab.ask.group_offsets(group), group


def test_after_a_stop(lab: Lab) -> None:
    lab.check_stopped()
