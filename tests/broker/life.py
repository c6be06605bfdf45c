"""Random life on a cluster: what clients and operators do, and nothing that Kafka forbids."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer as Consuming
from confluent_kafka import KafkaException, Producer, TopicPartition

from tests.broker.broker import Cluster
from tests.broker.raw import Asking, RawProducer, Refused
from tests.broker.routed import Routed

TIMEOUT_MS = 5_000
TOPICS = ("life-plain", "life-compacted")
PARTITIONS = 3
GROUP = "life-group"
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_ms": "3000"}
"""Settings of a topic that the cleaner never leaves alone."""


class Worker(threading.Thread, ABC):
    """One client after the other with the same transactional id, until it is told to end.

    Attributes:
        did: What it did, by name, and how often.
        failure: What no client should see.
    """

    def __init__(self, cluster: Cluster, number: int, seed: int) -> None:
        super().__init__(name=f"worker-{number}", daemon=True)
        self.cluster, self.number = cluster, number
        self.random = random.Random(seed + number)
        self.did: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._ends = threading.Event()

    def end(self) -> None:
        self._ends.set()

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                self._client()
        except BaseException as error:
            self.failure = error
            raise

    @abstractmethod
    def _client(self) -> None:
        """The life of one instance, which ends by choice or because the broker refused it."""

    def _transactions(self, one: Callable[[str], None]) -> None:
        """Some transactions; the last may be left open, as by a client that died."""
        for _ in range(self.random.randint(1, 25)):
            if self._ends.is_set():
                return
            (fate,) = self.random.choices(["commit", "abort", "die"], [80, 16, 4])
            one(fate)
            self.did[fate] += 1
            if fate == "die":
                time.sleep(self.random.choice([0, 0, TIMEOUT_MS / 1000 * 1.5]))
                return
            time.sleep(self.random.random() * 0.1)

    def _place(self) -> tuple[str, int]:
        return self.random.choice(TOPICS), self.random.randrange(PARTITIONS)

    def _key(self) -> str:
        return f"key-{self.random.randrange(20)}"


class LibrdkafkaWorker(Worker):
    """With a client of version 1 of the protocol, and offsets of a group."""

    def _client(self) -> None:
        producer = Producer({
            "bootstrap.servers": self.cluster.bootstrap, "transactional.id": self.name,
            "transaction.timeout.ms": TIMEOUT_MS, "linger.ms": 2, "log_level": 0,
        })  # fmt: skip
        group = Consuming({"bootstrap.servers": self.cluster.bootstrap, "group.id": GROUP,
                           "log_level": 0})  # fmt: skip
        try:
            producer.init_transactions(60)
            self._transactions(lambda fate: self._one(producer, group, fate))
        except KafkaException:
            self.did["refused"] += 1
        finally:
            group.close()
            producer.purge()

    def _one(self, producer: Producer, group: Consuming, fate: str) -> None:
        producer.begin_transaction()
        for _ in range(self.random.randint(1, 8)):
            topic, partition = self._place()
            producer.produce(topic, b"v" * self.random.randint(0, 600), self._key(), partition)
        if self.random.random() < 0.4:
            committed = TopicPartition(TOPICS[0], self.number % PARTITIONS, self.did["commit"])
            producer.send_offsets_to_transaction([committed], group.consumer_group_metadata(), 20)
        if fate == "commit":
            producer.commit_transaction(30)
        elif fate == "abort":
            producer.abort_transaction(30)
        else:
            producer.flush(10)


class RawWorker(Worker):
    """With single requests; from 4.0 on those of KIP-890, where each transaction has its own epoch."""

    def _client(self) -> None:
        routed = Routed(self.cluster)
        try:
            producer = self._instance(routed)
            self._transactions(lambda fate: self._one(producer, fate))
            if self.random.random() < 0.3:
                self._fence(producer)
        except Refused:
            self.did["refused"] += 1
        finally:
            routed.close()

    def _one(self, producer: RawProducer, fate: str) -> None:
        for _ in range(self.random.randint(1, 5)):
            self._write(producer)
        if fate != "die":
            producer.end(commits=fate == "commit")

    def _fence(self, old: RawProducer) -> None:
        """Another instance begins while this one writes, and goes on writing."""
        self._write(old)
        self._instance(old.raw)
        self.did["fence"] += 1
        self._write(old)
        old.end(commits=True)

    def _instance(self, asking: Asking) -> RawProducer:
        return RawProducer(asking, self.name, timeout_ms=TIMEOUT_MS, bumps=self.cluster.bumps)

    def _write(self, producer: RawProducer) -> None:
        topic, partition = self._place()
        if not producer.bumps:
            producer.add(topic, partition)
        producer.produce(topic, partition, self.random.randint(1, 4))


def workers(cluster: Cluster, seed: int) -> list[Worker]:
    """Four clients, two of either kind."""
    kinds = (LibrdkafkaWorker, RawWorker)
    return [kinds[number % 2](cluster, number, seed) for number in range(4)]


def finish(living: Sequence[Worker], *beside: threading.Thread) -> None:
    """Ends the clients, and waits for them, for what runs beside them, and until what was left open is timed out."""
    for each in living:
        each.end()
    for thread in (*living, *beside):
        thread.join(120)
    assert [each.failure for each in living if each.failure] == []
    time.sleep(TIMEOUT_MS / 1000 + 5)
