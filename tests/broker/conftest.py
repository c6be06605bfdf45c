"""Brokers for the tests of this folder, one version after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.artifacts import NoArtifacts
from tests.broker.broker import Cluster

pytest.register_assert_rewrite("tests.broker.lab")

from tests.broker.lab import Lab  # noqa: E402  (only now are its asserts told in full)

VERSIONS = os.environ.get("BROKER_VERSIONS", "4.3.1 3.9.1").split()
FAULTS = {
    # As all brokers before 3.6 were: it lets the faults of those into the log of a newer one.
    "transaction.partition.verification.enable": "false",
    "producer.id.expiration.check.interval.ms": 300,
}


def living(version: str, folder: Path, settings: Mapping[str, Any], **beside: int) -> Iterator[Lab]:
    """Brokers that run until the fixture ends; the test is skipped when they cannot be had.

    Args:
        version: Of Kafka.
        folder: A new one.
        settings: Of every broker.
        **beside: Nodes, disks, transaction_version of `Cluster`.
    """
    try:
        cluster = Cluster(version, folder, settings=settings, **beside)
    except NoArtifacts as error:
        pytest.skip(f"no Kafka {version}: {error}")
    made = Lab(cluster)
    try:
        cluster.start()
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: f"kafka-{version}")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One broker of a version, without the check that each batch belongs to a transaction."""
    yield from living(request.param, tmp_path_factory.mktemp("broker") / "lab", FAULTS)
