"""Kafka Connect with exactly-once source tasks, whose workers come and go: nobody is accused."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import Config
from pipeline.replay.application import application
from tests import pure_audit
from tests.broker import artifacts
from tests.broker.broker import HOST
from tests.broker.conftest import VERSIONS, living
from tests.broker.lab import Copied, Lab
from tests.broker.program import Program, properties
from tests.broker.test_scenarios import consumed_records

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(600)]

CLIENTS = "4.3.1"
GROUP, CONNECTOR, TOPIC = "loaders", "verifiable", "loaded"
PARTITIONS = 3
MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
_INTERNAL = {"config": 1, "offset": 2, "status": 1}


@pytest.fixture(
    params=VERSIONS,
    ids=lambda version: f"kafka-{version}",
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    settings = {"group.min.session.timeout.ms": 3_000}
    for one in living(request.param, tmp_path_factory.mktemp("connect") / "lab", settings):
        one.expected = {one.topic("beside", 1): set()}
        yield one


class Worker(Program):
    """One worker of the cluster, with its REST interface."""

    def __init__(self, lab: Lab, jars: Path, number: int) -> None:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self._rest = f"http://{HOST}:{probe.getsockname()[1]}"
        folder = lab.cluster.folder / f"worker-{number}"
        settings: dict[str, Any] = {
            "bootstrap.servers": lab.cluster.bootstrap, "group.id": GROUP, "listeners": self._rest,
            "exactly.once.source.support": "enabled", "offset.flush.interval.ms": 500,
            "session.timeout.ms": 4_000, "heartbeat.interval.ms": 1_000, "rebalance.timeout.ms": 10_000,
            "scheduled.rebalance.max.delay.ms": 0, "plugin.discovery": "only_scan",
        }  # fmt: skip
        for name in ("key", "value"):
            settings[f"{name}.converter"] = "org.apache.kafka.connect.json.JsonConverter"
            settings[f"{name}.converter.schemas.enable"] = "false"
        for name, partitions in _INTERNAL.items():
            settings[f"{name}.storage.topic"] = f"{GROUP}-{name}"
            settings[f"{name}.storage.replication.factor"] = 1
            if name != "config":
                settings[f"{name}.storage.partitions"] = partitions
        super().__init__(jars, folder, MAIN, properties(folder / "worker.properties", settings))

    def ask(self, path: str, body: object = None, method: str = "GET") -> Any:
        """The answer of the REST interface; None while it gives none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._rest + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"true")
        except (OSError, urllib.error.HTTPError):
            return None


@pytest.fixture
def workers(lab: Lab) -> Iterator[list[Worker]]:
    """Two, neither of which runs yet."""
    try:
        jars = artifacts.clients(CLIENTS)
    except artifacts.NoArtifacts as error:
        pytest.skip(f"no Kafka Connect {CLIENTS}: {error}")
    made = [Worker(lab, jars, number) for number in range(2)]
    yield made
    for each in made:
        each.kill()


def test_workers_come_and_go(lab: Lab, workers: list[Worker]) -> None:
    """Each record is there once, though a worker is killed and tasks are fenced and reconfigured."""
    lab.ask.create(TOPIC, PARTITIONS)
    lab.watch(TOPIC, PARTITIONS)
    first, second = workers
    for each in workers:
        each.start()
    _until(lambda: all(one.ask("/connectors") is not None for one in workers), workers)
    for name, partitions in _INTERNAL.items():
        lab.watch(f"{GROUP}-{name}", partitions)
    _configure(second, tasks=3)
    _until(lambda: _running(second) == 3, workers)
    time.sleep(3)
    _is_clean(lab)
    first.kill()
    _is_clean(lab)
    _until(lambda: _running(second) == 3, workers)
    time.sleep(2)
    _is_clean(lab)
    first.start()
    _until(lambda: first.ask("/connectors") is not None, workers)
    _configure(first, tasks=4)
    _is_clean(lab)
    _until(lambda: _running(first) == 4, workers)
    time.sleep(3)
    _is_clean(lab)
    second.stop()
    _until(lambda: _running(first) == 4, workers)
    time.sleep(2)
    first.ask(f"/connectors/{CONNECTOR}", method="DELETE")
    first.stop()
    _is_there_once(lab)
    copied = lab.check("beside")
    assert copied.accusations == set()
    _tells_its_applications(copied)
    lab.check_stopped()


def _configure(worker: Worker, *, tasks: int) -> None:
    settings = {"connector.class": "VerifiableSource", "tasks.max": tasks, "topic": TOPIC,
                "throughput": 40, "transaction.boundary": "poll"}  # fmt: skip
    _until(
        lambda: worker.ask(f"/connectors/{CONNECTOR}/config", settings, "PUT") is not None, [worker]
    )


def _running(worker: Worker) -> int:
    told = worker.ask(f"/connectors/{CONNECTOR}/status") or {}
    return sum(one["state"] == "RUNNING" for one in told.get("tasks", ()))


def _until(is_so: Callable[[], bool], workers: list[Worker]) -> None:
    end = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < end, [each.output() for each in workers]
        time.sleep(0.5)


def _is_clean(lab: Lab) -> None:
    assert lab.copied(is_live=True).accusations == set()


def _is_there_once(lab: Lab) -> None:
    """Readers of committed records see the numbers of each task without a hole and without a second time."""
    seen: dict[int, list[int]] = defaultdict(list)
    for partition in range(PARTITIONS):
        for one in consumed_records(lab, TOPIC, partition):
            seen[json.loads(one.key() or b"")].append(json.loads(one.value() or b""))
    assert sorted(seen) == [0, 1, 2, 3]
    for numbers in seen.values():
        assert sorted(numbers) == list(range(len(numbers)))


def _tells_its_applications(copied: Copied) -> None:
    read = pure_audit.read(copied.folder / "logs", Config())
    assert read.unreadable == []
    ids = {row["transactional_id"] for rows in read.states.values() for row in rows}
    told = {str(application(one)) for one in ids if not one.startswith("traffic")}
    assert told == {f"{GROUP} (Connect worker)", f"{GROUP}-{CONNECTOR}"}
