"""Coordinators and leaders that go between Prepare* and Complete*, under each transaction.version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from kafka.protocol.admin import AlterPartitionReassignmentsRequest
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest

from pipeline.config import Config
from pipeline.replay.transaction_state import PREPARE
from tests import pure_audit
from tests.broker.broker import HOST, Broker
from tests.broker.conftest import VERSIONS, living
from tests.broker.lab import COORDINATORS, Accusation, Copied, Lab
from tests.broker.lost import skipped_markers
from tests.broker.raw import Raw, RawProducer, Refused, check, patiently
from tests.broker.test_scenarios import accused, consumed, pinned

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

NODES = (1, 2, 3)
AWAY = 3
"""The broker that goes; it has no coordinator, so that a decision never waits for it."""
KEPT, ALONE = "kept", "alone"
FENCED_S = 20
"""After that a killed broker leads nothing any more."""
LAST_EPOCH = 32_766
STANDS = r"ConcurrentTransactions|InvalidTxnState"


@pytest.fixture(
    scope="module",
    params=[
        (VERSIONS[0], 2),
        *(pytest.param((VERSIONS[0], level), marks=pytest.mark.full) for level in (1, 0)),
        *(pytest.param((one, None), marks=pytest.mark.full) for one in VERSIONS[1:]),
    ],
    ids=lambda level: f"kafka-{level[0]}-transaction.version-{level[1]}",
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three brokers, a topic on all of them, one with a partition on each; coordinators on two."""
    version, level = request.param
    beside = {"nodes": len(NODES)} | ({} if level is None else {"transaction_version": level})
    folder = tmp_path_factory.mktemp("prepared") / "lab"
    for one in living(version, folder, {"transaction.state.log.min.isr": 1}, **beside):
        one.expected = {one.topic(KEPT, 1): set(), one.placed(ALONE, NODES): set()}
        one.traffic()
        _lead(one, 1, 2)
        _until_led(one)
        one.disconnect()
        yield one


def _lead(lab: Lab, *nodes: int) -> None:
    """Moves all coordinators to these brokers, by one of them: the admin may ask one that stands still."""
    moved = [(at, list(nodes)) for at in range(COORDINATORS)]
    request = AlterPartitionReassignmentsRequest[0](10_000, [("__transaction_state", moved)])

    def ask() -> None:
        answer = raw.ask(request)
        check(answer.error_code)
        for partition in answer.responses[0].partitions:
            check(partition.error_code)

    with Raw(HOST, lab.cluster.brokers[nodes[0] - 1].port) as raw:
        patiently(ask)


def _until_led(lab: Lab) -> None:
    _until(lambda: not lab.ask.reassigning())


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


class Prepared(NamedTuple):
    """A transaction that is decided, and cannot be completed while a leader is away.

    Attributes:
        client: It has the answer to its EndTxn.
        end: That request.
        coordinator: The broker that decided.
        other: The one that can take over.
        away: The leader that gets no marker.
    """

    client: RawProducer
    end: Any
    coordinator: Broker
    other: Broker
    away: Broker


def _producer(lab: Lab, name: str) -> RawProducer:
    return RawProducer(lab.routed, name, bumps=lab.cluster.bumps)


def _write(client: RawProducer) -> None:
    for topic, partition in ((KEPT, 0), *((ALONE, node - 1) for node in NODES)):
        if not client.bumps:
            client.add(topic, partition)
        client.produce(topic, partition)


def _end_request(client: RawProducer, *, commits: bool) -> Any:
    version = 5 if client.bumps else 3
    return EndTxnRequest[version](
        client.transactional_id, client.producer_id, client.epoch, commits
    )


def _prepared(
    lab: Lab, client: RawProducer, go: Callable[[Broker], None], *, commits: bool
) -> Prepared:
    name = client.transactional_id
    _write(client)
    request = _end_request(client, commits=commits)
    led = lab.routed.coordinator(name)
    (other,) = {1, 2} - {led}
    coordinator, taking, away = (lab.cluster.brokers[node - 1] for node in (led, other, AWAY))
    go(away)
    lab.disconnect()
    client.raw = lab.routed
    client.end(commits=commits)
    return Prepared(client, request, coordinator, taking, away)


def _is_refused(lab: Lab, one: Prepared) -> None:
    """While Prepare* stands nobody gets on: not the client again, not the other way, not another process."""
    name = one.client.transactional_id
    for request in (one.end, _other_way(one.end), InitProducerIdRequest[4](name, 60_000, -1, -1)):
        with pytest.raises(Refused, match=STANDS):
            check(lab.routed.ask(request).error_code)


def _other_way(end: Any) -> Any:
    return EndTxnRequest[end.version](
        end.transactional_id, end.producer_id, end.producer_epoch, not end.committed
    )


def _is_clean(lab: Lab) -> None:
    assert lab.copied(is_live=True).accusations == set().union(*lab.expected.values())


def _goes_on(lab: Lab, name: str) -> None:
    """Another process takes the id over, once the transaction is complete."""
    lab.disconnect()
    client = _producer(lab, name)
    _write(client)
    client.end(commits=True)
    lab.until(name, "CompleteCommit")


@pytest.mark.parametrize("commits", [True, False])
def test_the_coordinator_moves(lab: Lab, commits: bool) -> None:
    """The leader gets the marker of the old coordinator and of the new one."""
    _move(lab, _producer(lab, f"moved-{commits}"), commits=commits)
    lab.check(ALONE)


def _move(lab: Lab, client: RawProducer, *, commits: bool) -> None:
    name = client.transactional_id
    one = _prepared(lab, client, Broker.pause, commits=commits)
    _is_refused(lab, one)
    _is_clean(lab)
    _lead(lab, one.other.node)
    _until(lambda: _coordinates(lab, name, one.other))
    _is_clean(lab)
    one.away.resume()
    lab.disconnect()
    lab.until(name, "CompleteCommit" if commits else "CompleteAbort")
    _is_clean(lab)
    _lead(lab, 1, 2)
    _until_led(lab)
    _goes_on(lab, name)


def test_the_coordinator_is_killed(lab: Lab) -> None:
    """The one that takes over loads Prepare* and completes."""
    one = _prepared(lab, _producer(lab, "killed"), Broker.pause, commits=True)
    _is_refused(lab, one)
    one.coordinator.kill()
    lab.disconnect()
    _is_clean(lab)
    one.away.resume()
    _until(lambda: _coordinates(lab, "killed", one.other))
    _is_clean(lab)
    one.coordinator.launch()  # a partition is on it alone, and gets another marker
    lab.cluster.wait()
    lab.until("killed", "CompleteCommit")
    _is_clean(lab)
    _goes_on(lab, "killed")
    lab.check(ALONE)


def _coordinates(lab: Lab, name: str, broker: Broker) -> bool:
    try:
        return lab.routed.coordinator(name) == broker.node
    except (Refused, OSError):
        lab.disconnect()
        return False


@pytest.mark.parametrize("commits", [True, False])
def test_the_answer_is_lost(lab: Lab, commits: bool) -> None:
    """The client asks for the same end once more; under version 2 with the epoch that this very end raised."""
    name = f"lost-{commits}"
    client = _producer(lab, name)
    _write(client)
    end = _end_request(client, commits=commits)
    check(lab.routed.ask(end).error_code)
    lab.until(name, "CompleteCommit" if commits else "CompleteAbort")
    client.end(commits=commits)
    with pytest.raises(Refused, match=STANDS):
        check(lab.routed.ask(_other_way(end)).error_code)
    _write(client)
    client.end(commits=True)
    if client.bumps:
        client.end(
            commits=False
        )  # nothing was written: from version 2 on this is a transaction, too
    _goes_on(lab, name)
    lab.check(ALONE)


@pytest.mark.full
def test_the_coordinator_moves_at_the_last_epoch(lab: Lab) -> None:
    """Prepare* stands with an epoch that no client ever has, and the next transaction is another producer id's."""
    client = _producer(lab, "last")
    begun = client.producer_id
    request = InitProducerIdRequest[4](client.transactional_id, 60_000, -1, -1)

    def fence() -> None:
        answer = lab.routed.ask(request)
        check(answer.error_code)
        client.epoch = answer.producer_epoch

    while client.epoch < LAST_EPOCH:
        patiently(fence)
    _move(lab, client, commits=True)
    assert (client.producer_id != begun) == client.bumps
    lab.check(ALONE)


def test_a_partition_without_a_leader(lab: Lab) -> None:
    """Some versions skip its marker and declare the transaction complete (KAFKA-20734); others wait for it."""
    name = "skipped"
    one = _prepared(lab, _producer(lab, name), Broker.kill, commits=True)
    time.sleep(FENCED_S)
    standing = lab.copied(is_live=True)
    lost = _lost(standing, name)
    assert standing.accusations == set(lost)
    assert ((name, ALONE, AWAY - 1) in skipped_markers(lab.cluster.folder)) == bool(lost)
    one.away.launch()
    lab.cluster.wait()
    lab.disconnect()
    lab.until(name, "CompleteCommit")
    hanging = [each for each in lab.ask.find_hanging() if each.topic == ALONE]
    assert len(hanging) == len(lost)
    lab.check(
        ALONE,
        [
            *lost,
            *(
                each
                for one in hanging
                for each in pinned(ALONE, one.partition, one.start_offset, "not_in_transaction")
            ),
        ],
    )
    _goes_on(lab, name)
    assert lab.ask.find_hanging() == set()
    shown = consumed(lab, ALONE, AWAY - 1)
    assert all(each.start_offset in shown for each in hanging)
    lab.check(ALONE, lost)


def _lost(copied: Copied, name: str) -> list[Accusation]:
    """What is said of a transaction that was declared complete; nothing while its Prepare* stands."""
    steps = pure_audit.replayed(pure_audit.read(copied.folder / "logs", Config())).steps
    mine = [step for step in steps if step["transactional_id"] == name]
    if mine[-1]["state"] in PREPARE:
        return []
    return [accused("marker_audit", "missing", ALONE, AWAY - 1, mine[-2]["offset"])]


def test_after_a_stop(lab: Lab) -> None:
    lab.check_stopped()
