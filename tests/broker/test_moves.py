"""Partitions move under clients, between disks and brokers: nobody is accused, what hangs is found."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.broker import life
from tests.broker.conftest import FAULTS, VERSIONS, living
from tests.broker.copying import copy
from tests.broker.lab import Accusation, Lab
from tests.broker.raw import RawProducer

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 12
"""How long partitions move to and fro."""
PLACES = [
    *((topic, partition) for topic in life.TOPICS for partition in range(life.PARTITIONS)),
    *((f"__{name}", at) for name in ("transaction_state", "consumer_offsets") for at in range(4)),
    ("hangs", 0),
]
Move = Callable[[random.Random], None]


@pytest.fixture(
    params=[VERSIONS[0], *(pytest.param(one, marks=pytest.mark.full) for one in VERSIONS[1:])],
    ids=lambda version: f"kafka-{version}",
)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def disks(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    yield from living(version, tmp_path_factory.mktemp("disks") / "lab", FAULTS, disks=2)


@pytest.fixture
def brokers(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    yield from living(version, tmp_path_factory.mktemp("nodes") / "lab", FAULTS, nodes=3)


def test_between_disks(disks: Lab) -> None:
    """AlterReplicaLogDirs; a move that waits for its quota leaves `-future` directories in the copy."""
    (broker,) = disks.cluster.brokers

    def move(chance: random.Random) -> None:
        places = [place for place in PLACES if chance.random() < 0.5]
        chosen = {place: chance.choice(list(broker.disks.values())) for place in places}
        disks.ask.move_to_disks(chosen, broker.node)

    def slow_down(rate: int) -> None:
        disks.ask.configure(replica_alter_log_dirs_io_max_bytes_per_second=str(rate))

    def is_moving() -> bool:
        return any(any(one.glob("*-future")) for one in broker.disks.values())

    found = _hang(disks)
    _live(disks, move, found, halfway=lambda: slow_down(2_000))
    assert is_moving()
    slow_down(1 << 30)
    _until(lambda: not is_moving())
    disks.settle()
    assert disks.copied(is_live=True).accusations == set(found)
    disks.stop()
    assert disks.copied(is_live=False).accusations == set(found)


@pytest.mark.full
def test_between_brokers(brokers: Lab) -> None:
    """AlterPartitionReassignments; some are called off while the new replica still reads."""
    taken: list[str | None] = []

    def move(chance: random.Random) -> None:
        places = [place for place in PLACES if chance.random() < 0.4]
        brokers.ask.reassign({place: chance.sample([1, 2, 3], 2) for place in places})
        time.sleep(chance.random() * 0.5)
        if going := sorted(brokers.ask.reassigning()):
            some = chance.sample(going, (len(going) + 1) // 2)
            taken.extend(brokers.ask.reassign(dict.fromkeys(some)))

    found = _hang(brokers)
    for topic in life.TOPICS:
        brokers.ask.configure_topic(topic, follower_replication_throttled_replicas="*")
    brokers.ask.configure(follower_replication_throttled_rate="5000")
    _live(brokers, move, found)
    assert None in taken
    brokers.ask.configure(follower_replication_throttled_rate=str(1 << 30))
    _until(lambda: not brokers.ask.reassigning())
    brokers.disconnect()  # the admin asks the coordinators that it found once
    brokers.check("hangs", found)
    brokers.check_stopped()


def _hang(lab: Lab) -> list[Accusation]:
    """Topics, and a batch of a producer that no coordinator knows."""
    lab.topic(life.TOPICS[0], life.PARTITIONS)
    lab.topic(life.TOPICS[1], life.PARTITIONS, **life.COMPACTED)
    topic = lab.topic("hangs", 1)
    orphan = RawProducer(lab.routed, "orphan")
    orphan.producer_id = 424_242
    offset = orphan.produce(topic, 0)
    lab.settle()
    return [
        Accusation("hanging_transaction", "orphan_producer", topic, 0, offset),
        Accusation("lso_pinned", "pinned", topic, 0, offset),
    ]


def _live(
    lab: Lab, move: Move, found: list[Accusation], halfway: Callable[[], None] = lambda: None
) -> None:
    """Clients write and partitions move; copies in one pass, and in two of which the second removes nothing."""
    workers = life.workers(lab.cluster, SECONDS)
    copier = _Copier(lab)
    for each in (*workers, copier):
        each.start()
    chance = random.Random(SECONDS)
    for before in (lambda: None, halfway):
        before()
        end = time.monotonic() + SECONDS / 2
        while time.monotonic() < end:
            move(chance)
            time.sleep(chance.random() * 1.5)
    life.finish(workers, copier)
    assert min(sum(each.did["commit"] for each in workers), len(copier.copies)) > 0
    for number, started_ms in copier.copies:
        copied = lab.audited(lab.cluster.folder / number, started_ms)
        assert copied.accusations == set(found), number


class _Copier(threading.Thread):
    def __init__(self, lab: Lab) -> None:
        super().__init__(daemon=True)
        self._lab = lab
        self.copies: list[tuple[str, int]] = []

    def run(self) -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for passes in (1, 2):
                name = f"moving-{time.monotonic_ns()}-{passes}"
                folder = self._lab.cluster.folder / name
                started_ms = copy(self._lab.cluster, folder / "logs")
                if passes > 1:
                    time.sleep(2)
                    copy(self._lab.cluster, folder / "logs")
                self.copies.append((name, started_ms))
            time.sleep(1)


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)
