"""Kafka Streams under exactly_once_v2, instances that come and go, both group protocols: nobody is accused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from pipeline.config import Config
from pipeline.replay.application import application
from tests import pure_audit
from tests.broker import artifacts
from tests.broker.conftest import VERSIONS, living
from tests.broker.lab import Copied, Lab
from tests.broker.program import Program, properties
from tests.broker.test_scenarios import consumed_records

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

CLIENTS = "4.3.1"
APPLICATION = "word-count"
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
STORE = f"{APPLICATION}-KSTREAM-AGGREGATE-STATE-STORE-0000000003"
PARTITIONS = 3
MAIN = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
SESSIONS = {
    "group.min.session.timeout.ms": 3_000,
    "group.streams.min.session.timeout.ms": 6_000,
    "group.streams.session.timeout.ms": 6_000,
}


@pytest.fixture(
    params=[
        (VERSIONS[0], "classic"),
        pytest.param((VERSIONS[0], "streams"), marks=pytest.mark.full),
        *(pytest.param((one, "classic"), marks=pytest.mark.full) for one in VERSIONS[1:]),
    ],
    ids=lambda case: f"kafka-{case[0]}-{case[1]}",
)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    chosen: tuple[str, str] = request.param
    return chosen


@pytest.fixture
def lab(case: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    for one in living(case[0], tmp_path_factory.mktemp("streams") / "lab", SESSIONS):
        one.expected = {one.topic("beside", 1): set()}
        yield one


@pytest.fixture
def instances(lab: Lab, case: tuple[str, str]) -> Iterator[list[Program]]:
    """Three, none of which runs yet."""
    try:
        jars = artifacts.clients(CLIENTS)
    except artifacts.NoArtifacts as error:
        pytest.skip(f"no Kafka Streams {CLIENTS}: {error}")
    made = []
    for number in range(3):
        folder = lab.cluster.folder / f"instance-{number}"
        settings = {
            "application.id": APPLICATION, "bootstrap.servers": lab.cluster.bootstrap,
            "processing.guarantee": "exactly_once_v2", "commit.interval.ms": 100,
            "num.stream.threads": 2, "state.dir": folder / "state", "group.protocol": case[1],
        }  # fmt: skip
        if case[1] == "classic":
            settings["session.timeout.ms"] = 4_000
        made.append(
            Program(jars, folder, MAIN, properties(folder / "streams.properties", settings))
        )
    yield made
    for each in made:
        each.kill()


def test_instances_come_and_go(lab: Lab, instances: list[Program], case: tuple[str, str]) -> None:
    """Each word is counted once, though one instance is killed, one leaves and one joins in the middle."""
    for topic in (INPUT, OUTPUT):
        lab.ask.create(topic, PARTITIONS)
        lab.watch(topic, PARTITIONS)
    first, second, third = instances
    words = _Words(lab)
    first.start()
    second.start()
    words.until_counted(40)
    lab.watch(f"{STORE}-changelog", PARTITIONS)
    lab.watch(f"{STORE}-repartition", PARTITIONS)
    _is_clean(lab)
    third.start()
    words.send(40)
    _is_clean(lab)
    first.kill()
    words.send(40)
    _is_clean(lab)
    words.until_counted(40)
    first.start()
    words.send(40)
    second.stop()
    _is_clean(lab)
    words.until_counted(40)
    copied = lab.check("beside")
    assert copied.accusations == set()
    assert lab.committed(copied, APPLICATION) == lab.ask.group_offsets(APPLICATION)
    _tells_its_groups(copied, case[1])
    for each in instances:
        each.stop()
    lab.settle()
    assert lab.copied(is_live=True).accusations == set()
    lab.check_stopped()


class _Words:
    """Lines of text for the application, and whether it counted them."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._sent = 0
        self._producer = Producer(
            {"bootstrap.servers": lab.cluster.bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )

    def send(self, lines: int) -> None:
        for number in range(lines):
            self._producer.produce(INPUT, f"once word-{number % 7}", partition=number % PARTITIONS)
            self._producer.flush(10)
            time.sleep(0.02)
        self._sent += lines

    def until_counted(self, lines: int) -> None:
        """Sends more, and waits until what readers of committed records see is the number of all."""
        self.send(lines)
        end = time.monotonic() + 90
        while (seen := self._counted()) != self._sent:
            assert seen < self._sent, "a line was counted twice"
            assert time.monotonic() < end, (seen, self._sent)
            time.sleep(1)

    def _counted(self) -> int:
        counts = [
            int.from_bytes(one.value() or b"", "big")
            for partition in range(PARTITIONS)
            for one in consumed_records(self._lab, OUTPUT, partition)
            if one.key() == b"once"
        ]
        assert counts == list(range(1, len(counts) + 1)), "a count came twice, or was left out"
        return len(counts)


def _is_clean(lab: Lab) -> None:
    assert lab.copied(is_live=True).accusations == set()


def _tells_its_groups(copied: Copied, protocol: str) -> None:
    """Records of the newer groups are told by their type; none is damage."""
    read = pure_audit.read(copied.folder / "logs", Config())
    assert read.unreadable == []
    mine = {row["record_type"] for row in read.groups if row["group_id"] == APPLICATION}
    assert (2 in mine, 17 in mine) == (protocol == "classic", protocol == "streams")
    ids = {row["transactional_id"] for rows in read.states.values() for row in rows}
    known = {str(application(one)) for one in ids if not one.startswith("traffic")}
    assert known == {f"{APPLICATION} (Kafka Streams v2)"}
