"""Share groups (KIP-932) beside transactions: their records are read, and nobody is accused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from pipeline.config import Config
from tests import pure_audit
from tests.broker.broker import run_tool
from tests.broker.conftest import VERSIONS, living
from tests.broker.lab import Copied, Lab
from tests.broker.program import Program
from tests.broker.test_scenarios import client

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC, GROUP, BESIDE = "shared", "sharers", "beside-group"
STATE_TOPIC, STATE_PARTITIONS = "__share_group_state", 3
MAIN = "org.apache.kafka.tools.VerifiableShareConsumer"
RECORDS = 60
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": STATE_PARTITIONS,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.share.min.session.timeout.ms": 6_000,
    "group.share.session.timeout.ms": 6_000,
    "group.share.record.lock.duration.ms": 15_000,
}


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if VERSIONS[0].startswith("3."):
        pytest.skip("share groups came with 4.0")
    for one in living(VERSIONS[0], tmp_path_factory.mktemp("share") / "lab", SETTINGS):
        one.expected = {one.topic(TOPIC, 2): set()}
        yield one


@pytest.fixture
def sharers(lab: Lab) -> Iterator[list[Program]]:
    """Two members of the share group, neither of which runs yet."""
    arguments = ["--bootstrap-server", lab.cluster.bootstrap, "--topic", TOPIC, "--group-id", GROUP,
                 "--offset-reset-strategy", "earliest", "--verbose"]  # fmt: skip
    made = [
        Program(lab.cluster.jars, lab.cluster.folder / f"sharer-{number}", MAIN, *arguments)
        for number in range(2)
    ]
    yield made
    for each in made:
        each.kill()


def test_members_come_and_go(lab: Lab, sharers: list[Program]) -> None:
    """What is aborted is not shared; one member is killed; another group commits offsets in transactions."""
    first, second = sharers
    _write(lab, 0)
    first.start()
    second.start()
    _until(lambda: _shared(sharers) >= RECORDS // 4, sharers)
    assert lab.copied(is_live=True).accusations == set()
    first.kill()
    _write(lab, RECORDS)
    assert lab.copied(is_live=True).accusations == set()
    first.start()
    _until(lambda: _shared(sharers) >= RECORDS, sharers)
    copied = lab.check(TOPIC)
    assert copied.accusations == set()
    _tells_its_records(copied)
    assert lab.committed(copied, BESIDE) == lab.ask.group_offsets(BESIDE)
    for each in sharers:
        each.stop()
    command = ["--bootstrap-server", lab.cluster.bootstrap, "--delete", "--group", GROUP]
    done = run_tool(
        lab.cluster.jars, "org.apache.kafka.tools.consumer.group.ShareGroupCommand", command
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lab.check(TOPIC)
    lab.check_stopped()


def _write(lab: Lab, start: int) -> None:
    """Records in transactions, a third of them aborted, with offsets of another group."""
    producer = client(lab, "writer")
    group = Consumer({"bootstrap.servers": lab.cluster.bootstrap, "group.id": BESIDE})
    for number in range(start, start + RECORDS):
        producer.begin_transaction()
        producer.produce(TOPIC, f"value {number}", partition=number % 2)
        producer.send_offsets_to_transaction(
            [TopicPartition(TOPIC, number % 2, number)], group.consumer_group_metadata(), 30
        )
        (producer.abort_transaction if number % 3 == 0 else producer.commit_transaction)(30)
    group.close()


def _shared(sharers: list[Program]) -> int:
    """Records that members got, as they say."""
    count = 0
    for each in sharers:
        for line in (each.folder / "output.txt").read_text().splitlines():
            if line.startswith("{"):
                told = json.loads(line)
                count += told["count"] if told["name"] == "records_consumed" else 0
    return count


def _until(is_so: Callable[[], bool], sharers: list[Program]) -> None:
    end = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < end, [each.output() for each in sharers]
        time.sleep(0.5)


def _tells_its_records(copied: Copied) -> None:
    """Group records by their type; the state topic holds records of no producer."""
    read = pure_audit.read(copied.folder / "logs", Config())
    assert read.unreadable == []
    mine = {row["record_type"] for row in read.groups if row["group_id"] == GROUP}
    assert mine >= {10, 11, 12, 13, 14, 15}
    assert {one.topic for one in read.facts} >= {STATE_TOPIC, TOPIC}
