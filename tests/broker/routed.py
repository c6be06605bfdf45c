"""Requests to whichever broker of a cluster they are for."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import ProduceRequest

from tests.broker.broker import HOST, Cluster
from tests.broker.raw import Raw, Refused

ANSWER_S = 15


class Routed:
    """Connections to the brokers of a cluster; leaders and coordinators are looked up when one fails.

    Args:
        cluster: Its brokers may come and go.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connections: dict[int, Raw] = {}
        self._places: dict[tuple[str, object], int] = {}

    def close(self) -> None:
        for each in self._connections.values():
            each.close()
        self._connections.clear()

    def ask(self, request: Any) -> Any:
        """The answer of the leader (Produce) or of the coordinator (all else).

        Raises:
            Refused: nobody answers; it may be tried again.
        """
        if isinstance(request, ProduceRequest):
            topic, ((partition, _),) = request.topic_data[0]
            key: tuple[str, object] = (topic, partition)
            find = partial(_leader, topic=topic, partition=partition)
        else:
            name = _transactional_id(request)
            key, find = ("coordinator", name), partial(_coordinator, transactional_id=name)
        try:
            if key not in self._places:
                self._places[key] = find(self._any())
            answer = self._connection(self._places[key]).ask(request)
        except OSError as error:
            self.forget()
            raise Refused("NotCoordinatorError") from error
        if _is_elsewhere(answer):
            self._places.pop(key, None)
        return answer

    def forget(self) -> None:
        """Looks everything up again: a broker went, and connections with it."""
        self.close()
        self._places.clear()

    def coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates an id.

        Raises:
            Refused: nobody does yet; it may be tried again.
        """
        return _coordinator(self._any(), transactional_id)

    def _any(self) -> Raw:
        for each in self._cluster.brokers:
            if each.is_running and not each.is_paused:
                try:
                    return self._connection(each.node)
                except OSError:
                    continue
        raise ConnectionError("no broker answers")

    def _connection(self, node: int) -> Raw:
        if node not in self._connections:
            port = self._cluster.brokers[node - 1].port
            self._connections[node] = Raw(HOST, port, ANSWER_S)
        return self._connections[node]


def _transactional_id(request: Any) -> str:
    for name in ("transactional_id", "v3_and_below_transactional_id", "key"):
        found = getattr(request, name, None)
        if found:
            return str(found)
    raise TypeError(f"not a request of a transaction: {request}")


def _leader(raw: Raw, topic: str, partition: int) -> int:
    (told,) = raw.ask(MetadataRequest[4](topics=[(topic,)])).topics
    for one in told.partitions:
        if one.partition_index == partition and one.leader_id > 0:
            return int(one.leader_id)
    raise Refused("LeaderNotAvailableError")


def _coordinator(raw: Raw, transactional_id: str) -> int:
    told = raw.ask(FindCoordinatorRequest[2](transactional_id, 1))
    if told.error_code != 0 or told.node_id < 1:
        raise Refused("CoordinatorNotAvailableError")
    return int(told.node_id)


def _is_elsewhere(answer: Any) -> bool:
    """Whether an error says, or may mean, that another broker is asked for."""
    codes = [getattr(answer, "error_code", 0)]
    for topic in getattr(answer, "responses", None) or ():
        codes += [one.error_code for one in topic.partition_responses]
    return any(codes)
