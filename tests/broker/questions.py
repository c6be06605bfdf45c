"""What a live broker says of itself: over the wire, and by Kafka's own `kafka-transactions`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer.offsets import IsolationLevel, OffsetSpec

from tests.broker.broker import Cluster, run_tool

_TOOL = "org.apache.kafka.tools.TransactionsCommand"
SCRIPT = "kafka-transactions.sh"


class Hanging(NamedTuple):
    """A row of `kafka-transactions find-hanging`."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    start_offset: int


class Ends(NamedTuple):
    """How far consumers can read a partition."""

    read_committed: int
    read_uncommitted: int


class Questions:
    """An admin's connection to a cluster.

    Args:
        cluster: One that runs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)

    def close(self) -> None:
        self._admin.close()

    def create(self, topic: str, partitions: int = 2, **settings: str) -> None:
        """Makes a topic, on all brokers."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        options = {
            "num_partitions": partitions,
            "replication_factor": len(self._cluster.brokers),
            "configs": named,
        }
        self._admin.create_topics({topic: options}, wait_for_metadata=True)

    def create_placed(self, topic: str, nodes: Sequence[int]) -> None:
        """Makes a topic with a partition of one replica on each of these brokers."""
        options = {"assignments": {at: [node] for at, node in enumerate(nodes)},
                   "configs": {"min.insync.replicas": "1"}}  # fmt: skip
        self._admin.create_topics({topic: options}, wait_for_metadata=True)

    def configure(self, **settings: str) -> None:
        """Sets dynamic settings of all brokers, those that they do not list among theirs too."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        nodes = [str(each.node) for each in self._cluster.brokers]
        self._admin.alter_configs(
            [ConfigResource(ConfigResourceType.BROKER, node, named) for node in nodes],
            raise_on_unknown=False,
        )

    def configure_topic(self, topic: str, **settings: str) -> None:
        """Sets the settings of a topic, an internal one too."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, named)])

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def move_to_disks(self, disks: Mapping[tuple[str, int], Path], node: int) -> None:
        """AlterReplicaLogDirs (KIP-113): (topic, partition) -> log directory; of partitions that are there."""
        asked = {(*place, node): str(disk) for place, disk in disks.items()}
        self._admin.alter_replica_log_dirs(asked)

    def reassign(self, replicas: Mapping[tuple[str, int], list[int] | None]) -> list[str | None]:
        """AlterPartitionReassignments (KIP-455); None cancels the one that goes on.

        Returns:
            The error of each partition, None where it was taken.
        """
        asked = {TopicPartition(*place): nodes for place, nodes in replicas.items()}
        told = self._admin.alter_partition_reassignments(asked)
        return [None if error is None else error.__name__ for error in told.values()]

    def reassigning(self) -> set[tuple[str, int]]:
        """Partitions whose replicas are moving."""
        return {(one.topic, one.partition) for one in self._admin.list_partition_reassignments()}

    def delete_group(self, group: str) -> None:
        """DeleteGroups."""
        self._admin.delete_groups([group])

    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        """OffsetDelete."""
        self._admin.delete_group_offsets(group, [TopicPartition(topic, partition)])

    def delete_records(self, topic: str, partition: int) -> None:
        """DeleteRecords up to the high watermark."""
        self._admin.delete_records({TopicPartition(topic, partition): -1})

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        self._admin.create_partitions({topic: partitions})

    def ends(self, topic: str, partition: int) -> Ends:
        """Last stable offset and high watermark."""
        place = TopicPartition(topic, partition)
        found = [
            self._admin.list_partition_offsets({place: OffsetSpec.LATEST}, isolation_level=level)
            for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        ]
        return Ends(*(answer[place].offset for answer in found))

    def open_transactions(self, topic: str, partition: int) -> set[tuple[int, int]]:
        """Producer id and first offset of each, as the partition's leader holds them."""
        place = TopicPartition(topic, partition)
        held = self._admin.describe_producers([place])[place].active_producers
        return {
            (one.producer_id, one.current_transaction_start_offset)
            for one in held
            if one.current_transaction_start_offset >= 0
        }

    def state(self, transactional_id: str) -> str:
        """The coordinator's: Ongoing, CompleteAbort, ..."""
        told = self._admin.describe_transactions([transactional_id])[transactional_id]
        return str(told.state.value)

    def group_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """What a group has committed."""
        told = self._admin.list_group_offsets({group: None})[group]
        return {(place.topic, place.partition): one.offset for place, one in told.items()}

    def find_hanging(self) -> set[Hanging]:
        """`kafka-transactions find-hanging` on each broker, whatever the age."""
        found = set()
        for each in self._cluster.brokers:
            table = self._run(
                ["find-hanging", "--broker-id", str(each.node), "--max-transaction-timeout", "0"]
            )
            for line in table.splitlines()[1:]:
                topic, partition, producer_id, epoch, _, start, *_ = line.split()
                found.add(Hanging(topic, int(partition), int(producer_id), int(epoch), int(start)))
        return found

    def run_line(self, line: str) -> str:
        """Runs a line as an operator would paste it, `<host:port>` filled in."""
        name, *arguments = shlex.split(line.replace("<host:port>", self._cluster.bootstrap))
        assert name == SCRIPT, line
        assert arguments[:2] == ["--bootstrap-server", self._cluster.bootstrap], line
        return self._run(arguments[2:])

    def _run(self, arguments: list[str]) -> str:
        done = run_tool(
            self._cluster.jars, _TOOL, ["--bootstrap-server", self._cluster.bootstrap, *arguments]
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
