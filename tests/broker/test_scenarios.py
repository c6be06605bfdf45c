"""What happens on a live broker, what it says of it, and what an audit of its files says."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.broker.lab import Accusation, Lab
from tests.broker.raw import RawProducer, Refused

pytestmark = [pytest.mark.broker, pytest.mark.slow]

FENCED = r"InvalidProducerEpochError|ProducerFencedError"


def accused(code: str, class_: str, topic: str, partition: int, offset: int) -> Accusation:
    return Accusation(code, class_, topic, partition, offset)


def pinned(topic: str, partition: int, offset: int, why: str) -> list[Accusation]:
    """A hanging transaction that read_committed consumers wait at."""
    return [
        accused("hanging_transaction", why, topic, partition, offset),
        accused("lso_pinned", "pinned", topic, partition, offset),
    ]


def client(lab: Lab, transactional_id: str, **settings: object) -> Producer:
    """A transactional producer of librdkafka."""
    producer = Producer(
        {
            "bootstrap.servers": lab.cluster.bootstrap,
            "transactional.id": transactional_id,
            "log_level": 0,
            **settings,
        }
    )
    producer.init_transactions(30)
    return producer


def consumed(lab: Lab, topic: str, partition: int) -> list[int]:
    """Offsets that a read_committed consumer gets."""
    return [
        offset
        for message in consumed_records(lab, topic, partition)
        if (offset := message.offset()) is not None
    ]


def consumed_records(lab: Lab, topic: str, partition: int) -> list[Message]:
    """What a read_committed consumer gets."""
    consumer = Consumer(
        {"bootstrap.servers": lab.cluster.bootstrap, "group.id": f"{topic}-reader",
         "isolation.level": "read_committed", "enable.auto.commit": False,
         "enable.partition.eof": True}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        return list(_until_end(consumer))
    finally:
        consumer.close()


def _until_end(consumer: Consumer) -> Iterator[Message]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is not None and message.error():
            return
        if message is not None:
            yield message


def test_commits_and_aborts(lab: Lab) -> None:
    """Consume, process, produce: nothing to find, and all that the broker says is in the files."""
    topic, group = lab.topic("clean"), "clean-group"
    producer = client(lab, "clean-processor")
    consumer = Consumer({"bootstrap.servers": lab.cluster.bootstrap, "group.id": group})
    for number, commits in enumerate((True, False, True, True, False)):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, f"value {number}", partition=partition)
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, number + 1)], consumer.consumer_group_metadata(), 30
        )
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    consumer.close()
    lab.until("clean-processor", "CompleteAbort")
    assert lab.ask.group_offsets(group) == {(topic, 0): 4}
    assert len(consumed(lab, topic, 0)) == 3
    copied = lab.check(topic)
    assert lab.committed(copied, group) == {(topic, 0): 4}


def test_data_outside_any_transaction_hangs(lab: Lab) -> None:
    """KIP-890's first case: Produce without AddPartitionsToTxn, and a producer nobody knows."""
    topic = lab.topic("hanging")
    late = RawProducer(lab.raw, f"{topic}-late")
    late.add(topic, 0)
    late.produce(topic, 0)
    late.end(commits=True)
    lab.until(late.transactional_id, "CompleteCommit")
    not_listed = late.produce(topic, 1)
    unknown = RawProducer(lab.raw, f"{topic}-unknown")
    unknown.producer_id = 424_242
    orphan = unknown.produce(topic, 0)
    told = {(one.topic, one.partition, one.start_offset) for one in lab.ask.find_hanging()}
    assert told == {(topic, 1, not_listed), (topic, 0, orphan)}
    outside = accused("write_outside_transaction", "partition_not_added", topic, 1, not_listed)
    lab.check(
        topic,
        [
            *pinned(topic, 1, not_listed, "not_in_transaction"),
            *pinned(topic, 0, orphan, "orphan_producer"),
            outside,
        ],
    )
    aborts = [
        f"kafka-transactions.sh --bootstrap-server <host:port> abort --topic {topic} "
        f"--partition {partition} --start-offset {offset}"
        for partition, offset in ((1, not_listed), (0, orphan))
    ]
    markers = [lab.ask.ends(topic, partition).read_uncommitted for partition in (1, 0)]
    for line in aborts:
        lab.ask.run_line(line)
    assert lab.ask.find_hanging() == set()
    by_hand = [
        accused("manual_abort", "manual_abort", topic, partition, offset)
        for partition, offset in ((1, markers[0]), (0, markers[1]))
    ]
    lab.check(topic, [*by_hand, outside])


def test_a_run_of_an_older_epoch_hangs_unseen(lab: Lab) -> None:
    """`find-hanging` asks whether the id's transaction lists the partition, not with which epoch."""
    topic = lab.topic("blind")
    old = RawProducer(lab.raw, f"{topic}-id")
    old.add(topic, 0)
    old.produce(topic, 0)
    old.end(commits=True)
    lab.until(old.transactional_id, "CompleteCommit")
    new = RawProducer(lab.raw, old.transactional_id, timeout_ms=600_000)
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 1)
    zombie = old.produce(topic, 0)
    new.add(topic, 0, 1)
    new.produce(topic, 1)
    assert lab.ask.open_transactions(topic, 0) == {(old.producer_id, zombie)}
    assert [one for one in lab.ask.find_hanging() if one.topic == topic] == []
    fenced = accused("zombie_write", "after_fence", topic, 0, zombie)
    lab.check(topic, [*pinned(topic, 0, zombie, "epoch_mismatch"), fenced])
    new.end(commits=True)
    lab.until(new.transactional_id, "CompleteCommit")
    assert zombie in consumed(lab, topic, 0)
    lab.check(topic, [fenced])


def test_a_fenced_producer_is_refused(lab: Lab) -> None:
    topic = lab.topic("fenced")
    old = RawProducer(lab.raw, f"{topic}-id")
    old.add(topic, 0)
    old.produce(topic, 0)
    new = client(lab, old.transactional_id)
    with pytest.raises(Refused, match=FENCED):
        old.send(topic, 0, old.batch(3))
    with pytest.raises(Refused, match=FENCED):
        old.end(commits=True)
    new.begin_transaction()
    new.produce(topic, "value", partition=0)
    new.commit_transaction(30)
    lab.until(old.transactional_id, "CompleteCommit")
    assert len(consumed(lab, topic, 0)) == 1
    lab.check(topic)


def test_a_silent_producer_is_timed_out(lab: Lab) -> None:
    topic = lab.topic("silent")
    silent = client(lab, f"{topic}-id", **{"transaction.timeout.ms": 1000})
    silent.begin_transaction()
    silent.produce(topic, "value", partition=0)
    silent.flush(30)
    lab.until(f"{topic}-id", "CompleteAbort")
    lab.check(topic)
    with pytest.raises(KafkaException):
        silent.commit_transaction(30)


def test_a_batch_that_comes_again(lab: Lab) -> None:
    """Once the broker forgot a producer, it takes a retry of what it has for new."""
    topic = lab.topic("again")
    producer = RawProducer(lab.raw, f"{topic}-id")
    producer.add(topic, 0)
    batch = producer.batch(0)
    first = producer.send(topic, 0, batch)
    assert producer.send(topic, 0, batch) == first
    producer.end(commits=True)
    lab.until(producer.transactional_id, "CompleteCommit")
    lab.ask.configure(producer_id_expiration_ms="600")
    try:
        time.sleep(2)
    finally:
        lab.ask.configure(producer_id_expiration_ms="86400000")
    producer.add(topic, 0)
    again = producer.send(topic, 0, batch)
    assert again > first
    producer.end(commits=True)
    lab.until(producer.transactional_id, "CompleteCommit")
    lab.check(topic, [accused("duplicate_batch", "exact", topic, 0, again)])


def test_a_killed_broker_comes_back(lab: Lab) -> None:
    """A crash leaves a transaction open; it goes on where it was."""
    topic = lab.topic("killed")
    done, going = (RawProducer(lab.raw, f"{topic}-{name}") for name in ("done", "going"))
    for each in (done, going):
        each.add(topic, 0, 1)
        each.produce(topic, 0)
    done.end(commits=True)
    lab.kill()
    crashed = lab.copied(is_live=False)
    assert {one for one in crashed.accusations if one.topic in (topic, None)} == set()
    lab.start()
    going.raw = lab.raw
    going.produce(topic, 1)
    going.end(commits=True)
    lab.until(going.transactional_id, "CompleteCommit")
    lab.check(topic)


def test_an_operator_aborts_a_live_transaction(lab: Lab) -> None:
    """The broker takes the abort, the next write and the commit: one transaction, both outcomes."""
    topic = lab.topic("torn")
    producer = RawProducer(lab.raw, f"{topic}-id")
    producer.add(topic, 0, 1)
    first, other = producer.produce(topic, 0), producer.produce(topic, 1)
    by_hand = lab.ask.ends(topic, 0).read_uncommitted
    lab.ask.run_line(
        "kafka-transactions.sh --bootstrap-server <host:port> abort "
        f"--topic {topic} --partition 0 --start-offset {first}"
    )
    later = producer.produce(topic, 0)
    producer.end(commits=True)
    lab.until(producer.transactional_id, "CompleteCommit")
    assert consumed(lab, topic, 0) == [later, later + 1, later + 2]
    assert consumed(lab, topic, 1) == [other, other + 1, other + 2]
    lab.check(topic, [accused("marker_audit", "torn", topic, 0, by_hand)])


def test_after_a_stop(lab: Lab) -> None:
    """The same verdicts from files of one instant."""
    lab.check_stopped()
