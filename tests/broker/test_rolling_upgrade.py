"""A cluster that is upgraded a broker at a time while clients write: nobody is accused, a proof holds where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.replay import version_bounds
from pipeline.replay.version_bounds import Version
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC
from tests import pure_audit, pure_health
from tests.broker import artifacts, life
from tests.broker.broker import run_tool
from tests.broker.conftest import living
from tests.broker.copying import copy
from tests.broker.lab import Lab
from tests.score import is_loud

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

OLD, NEW = "3.9.1", "4.3.1"
COMMITS = 8
"""Of each client between two steps: some of them commit offsets."""


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    settings = {"leader.imbalance.check.interval.seconds": 1}
    yield from living(OLD, tmp_path_factory.mktemp("upgrade") / "lab", settings, nodes=3)


def test_a_proof_of_a_version_holds_for_the_leader_that_gave_it(lab: Lab) -> None:
    try:
        newer = artifacts.jars(NEW)
    except artifacts.NoArtifacts as error:
        pytest.skip(f"no Kafka {NEW}: {error}")
    for topic in life.TOPICS:
        lab.topic(topic, life.PARTITIONS)
    kinds = (life.LibrdkafkaWorker, life.RawWorker, life.LibrdkafkaWorker)
    workers = [kind(lab.cluster, number, number) for number, kind in enumerate(kinds)]
    for each in workers:
        each.start()
    _live(workers)
    for broker in lab.cluster.brokers:
        lab.disconnect()
        broker.stop()
        broker.jars = newer
        lab.start()
        _live(workers)
    mixed, last = lab.cluster.folder / "mixed", lab.cluster.folder / "last"
    started_ms = copy(lab.cluster, mixed / "logs")
    raised_ms = time.time_ns() // 1_000_000
    _raise_features(lab, newer)
    _live(workers)
    life.finish(workers)
    lab.stop()
    copy(lab.cluster, last / "logs")

    before, after = _formats(mixed), _formats(last)
    assert version_bounds.of_all(before) == {}
    assert _versions(before, TXN_TOPIC) == set()
    assert _versions(before, OFFSETS_TOPIC) == {(2, 1), (4, 1)}
    (proof,) = version_bounds.of_all(after).values()
    assert proof.version == (4, 0)
    assert (proof.evidence.timestamp_ms or 0) >= raised_ms
    assert (4, 3) in _versions(after, TXN_TOPIC)
    for folder, at in ((mixed, started_ms), (last, None)):
        config = Config(copy_started_ms=at, abort_scan_ms=500)
        assert [
            row for row in pure_audit.accusations(folder / "logs", config) if is_loud(row)
        ] == []


def _live(workers: Sequence[life.Worker]) -> None:
    """Until each client has committed some more."""
    wanted = [each.did["commit"] + COMMITS for each in workers]
    end = time.monotonic() + 60
    while any(each.did["commit"] < count for each, count in zip(workers, wanted, strict=True)):
        assert time.monotonic() < end, [each.failure for each in workers]
        time.sleep(0.1)


def _raise_features(lab: Lab, jars: Path) -> None:
    """metadata.version and transaction.version of the new release, as after every rolling upgrade."""
    command = ["--bootstrap-server", lab.cluster.bootstrap, "upgrade", "--release-version", NEW[:3]]
    done = run_tool(jars, "org.apache.kafka.tools.FeatureCommand", command)
    assert done.returncode == 0, done.stdout + done.stderr


def _formats(folder: Path) -> list[version_bounds.Evidence]:
    read = pure_audit.read(folder / "logs", Config())
    return pure_health.formats(pure_audit.replayed(read))


def _versions(formats: list[version_bounds.Evidence], topic: str) -> set[Version]:
    """Lower bounds of the leaders of an internal topic."""
    leaders = version_bounds.of_leaders(formats)
    return {bound.version for (_, led, _, _), bound in leaders.items() if led == topic}
