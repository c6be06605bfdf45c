"""Kafka requests sent exactly as they are told, over one connection: no retries, no state.

kafka-python encodes them; what no client would send (data without AddPartitionsToTxn, a batch
again, an old epoch) is sent from here.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Protocol

from kafka import errors
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

from tests import builders

RETRIABLE = (
    "ConcurrentTransactionsError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "KafkaStorageError",
    "LeaderNotAvailableError",
    "NotControllerError",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderForPartitionError",
    "RequestTimedOutError",
    "UnknownTopicOrPartitionError",
)
PATIENCE_S = 30


class Refused(Exception):
    """The broker's answer is an error; the message is its name."""


class Asking(Protocol):
    """What answers requests: one broker, or whichever broker a request is for."""

    def ask(self, request: Any) -> Any:
        """The answer to one request."""


class Raw:
    """One connection to one broker.

    Args:
        host: The broker's.
        port: The broker's.
        timeout_s: How long an answer may take.
    """

    def __init__(self, host: str, port: int, timeout_s: float = 40) -> None:
        self._socket = socket.create_connection((host, port), timeout_s)
        self._protocol = KafkaProtocol(client_id="raw")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any) -> Any:
        """The answer to one request.

        Raises:
            OSError: the broker is gone.
        """
        self._protocol.send_request(request)
        self._socket.sendall(self._protocol.send_bytes())
        while True:
            received = self._socket.recv(1 << 16)
            if not received:
                raise ConnectionError("the broker closed the connection")
            for _, answer in self._protocol.receive_bytes(received):
                return answer


def check(code: int) -> None:
    """Raises `Refused` when the code of an answer is an error's."""
    if code != 0:
        raise Refused(errors.for_code(code).__name__)


def patiently(action: Any) -> Any:
    """Repeats an action while the broker asks to try again.

    Raises:
        Refused: for any other reason, or after `PATIENCE_S`.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return action()
        except Refused as refused:
            if str(refused) not in RETRIABLE or time.monotonic() > end:
                raise
        time.sleep(0.05)


class RawProducer:
    """A transactional producer made of single requests, for one broker.

    Attributes:
        transactional_id: Its id.
        producer_id: What the coordinator gave; may be overwritten.
        epoch: What the coordinator gave; may be overwritten.
        sequences: (topic, partition) -> next sequence.
        bumps: Whether it speaks transaction.version 2: partitions are added by Produce, and EndTxn
            answers with the next epoch (KIP-890).
    """

    def __init__(
        self, raw: Asking, transactional_id: str, *, timeout_ms: int = 60_000, bumps: bool = False
    ) -> None:
        self.raw, self.transactional_id, self.bumps = raw, transactional_id, bumps
        patiently(self._find)
        answer = patiently(lambda: self._init(timeout_ms))
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences: dict[tuple[str, int], int] = {}

    def add(self, topic: str, *partitions: int) -> None:
        """AddPartitionsToTxn.

        Raises:
            Refused: by the coordinator.
        """
        request = AddPartitionsToTxnRequest[3](
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[(topic, list(partitions))],
        )

        def ask() -> None:
            for one in self.raw.ask(request).results_by_topic_v3_and_below:
                for partition in one.results_by_partition:
                    check(partition.partition_error_code)

        patiently(ask)

    def produce(self, topic: str, partition: int, records: int = 3) -> int:
        """Sends the next batch, whether or not the partition was added.

        Returns:
            Its base offset.

        Raises:
            Refused: by the partition's leader.
        """
        sequence = self.sequences.get((topic, partition), 0)
        offset = patiently(lambda: self.send(topic, partition, self.batch(sequence, records)))
        self.sequences[topic, partition] = sequence + records
        return int(offset)

    def batch(self, sequence: int, records: int = 3) -> bytes:
        """A transactional batch of this producer, of now."""
        return builders.batch(
            0, [builders.Rec(b"k", b"value") for _ in range(records)],
            producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=sequence,
            transactional=True, timestamp_ms=time.time_ns() // 1_000_000,
        )  # fmt: skip

    def send(self, topic: str, partition: int, batch: bytes) -> int:
        """Produce with exactly these bytes; the base offset that the leader gave them.

        Raises:
            Refused: by the partition's leader.
        """
        request = ProduceRequest[12 if self.bumps else 9](
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[(topic, [(partition, batch)])],
        )
        answer = self.raw.ask(request)
        written = answer.responses[0].partition_responses[0]
        check(written.error_code)
        return int(written.base_offset)

    def end(self, *, commits: bool) -> None:
        """EndTxn; with `bumps` the next epoch is taken from the answer.

        Raises:
            Refused: by the coordinator.
        """
        request = EndTxnRequest[5 if self.bumps else 3](
            self.transactional_id, self.producer_id, self.epoch, commits
        )

        def ask() -> Any:
            answer = self.raw.ask(request)
            check(answer.error_code)
            return answer

        answer = patiently(ask)
        if self.bumps:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()

    def _find(self) -> None:
        check(self.raw.ask(FindCoordinatorRequest[2](self.transactional_id, 1)).error_code)

    def _init(self, timeout_ms: int) -> Any:
        answer = self.raw.ask(InitProducerIdRequest[4](self.transactional_id, timeout_ms, -1, -1))
        check(answer.error_code)
        return answer
