"""Nothing is found in copies of a cluster that lives as clusters do.

BROKER_SOAK_SECONDS: how long it lives, 120 when not given; 600 is a long look.
BROKER_SOAK_SEED: repeats the choices of a run (not its timing); each run prints its own.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.config import Config
from tests import pure_audit
from tests.broker import life
from tests.broker.conftest import VERSIONS, living
from tests.broker.copying import copy
from tests.broker.lab import Lab
from tests.broker.lost import (
    Decision,
    decisions,
    is_lost_decision,
    is_skipped_marker,
    skipped_markers,
)
from tests.broker.raw import RawProducer, Refused
from tests.broker.routed import Routed
from tests.differential.replicas import best_replicas
from tests.score import is_loud

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1800)]

SECONDS = int(os.environ.get("BROKER_SOAK_SECONDS", "120"))
COPIES = 12
SETTINGS = {"log.cleaner.backoff.ms": 500, "leader.imbalance.check.interval.seconds": 5}
Copy = tuple[Path, int | None]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    yield from living(VERSIONS[0], tmp_path_factory.mktemp("soak") / "lab", SETTINGS, nodes=3)


class Copier(threading.Thread):
    """Copies everything at random moments."""

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._lab = lab
        begins = time.monotonic()
        self._moments = [begins + chance.random() * SECONDS for _ in range(COPIES)]
        self.copies: list[Copy] = []

    def run(self) -> None:
        for number, moment in enumerate(sorted(self._moments)):
            time.sleep(max(0.0, moment - time.monotonic()))
            folder = self._lab.cluster.folder / f"copy-{number}"
            self.copies.append((folder, copy(self._lab.cluster, folder / "logs")))


def disturb(lab: Lab, chance: random.Random, number: int) -> str:
    """One thing that operators and accidents do."""
    (what,) = chance.choices(["kill", "stop", "crash", "topic"], [4, 2, 1, 4])
    if what == "topic":
        _short_lived(lab, f"short-{number}", chance)
        return what
    broker = chance.choice(lab.cluster.brokers)
    lab.disconnect()
    {"kill": broker.kill, "stop": broker.stop, "crash": lab.kill}[what]()
    if what == "crash":
        copy(lab.cluster, lab.cluster.folder / f"crashed-{number}")
    time.sleep(chance.random() * 3)
    lab.start()
    return what


def _short_lived(lab: Lab, topic: str, chance: random.Random) -> None:
    """A topic that is deleted, some times in the middle of a transaction."""
    lab.ask.create(topic, 2)
    routed = Routed(lab.cluster)
    try:
        bumps = not lab.cluster.version.startswith("3.")
        producer = RawProducer(routed, topic, timeout_ms=life.TIMEOUT_MS, bumps=bumps)
        for name in (topic, life.TOPICS[0]):
            if not bumps:
                producer.add(name, 0)
            producer.produce(name, 0)
        if chance.random() < 0.5:
            producer.end(commits=True)
        lab.ask.delete(topic)
        producer.end(commits=True)
    except Refused:
        pass  # of a transaction that was ended already, or of a partition that is gone
    finally:
        routed.close()


def test_a_living_cluster_is_accused_of_nothing(lab: Lab) -> None:
    seed = int(os.environ.get("BROKER_SOAK_SEED", random.randrange(1 << 32)))
    print(f"BROKER_SOAK_SEED={seed} BROKER_SOAK_SECONDS={SECONDS}")
    chance = random.Random(seed)
    lab.topic(life.TOPICS[0], life.PARTITIONS)
    lab.topic(life.TOPICS[1], life.PARTITIONS, **life.COMPACTED)
    workers = life.workers(lab.cluster, seed)
    copier = Copier(lab, chance)
    did: Counter[str] = Counter()
    end = time.monotonic() + SECONDS
    for each in (*workers, copier):
        each.start()
    while time.monotonic() < end:
        time.sleep(chance.random() * 4)
        did[disturb(lab, chance, did.total())] += 1
        if did.total() == 1:
            for topic in ("__transaction_state", "__consumer_offsets"):
                lab.ask.configure_topic(topic, **life.COMPACTED)
    life.finish(workers, copier)
    lab.stop()
    last = lab.cluster.folder / "copy-stopped"
    copy(lab.cluster, last / "logs")
    for each in workers:
        did += each.did
    print(dict(did))
    assert min(did["commit"], did["abort"]) > 0
    _judge([*copier.copies, (last, None)])


def _judge(copies: list[Copy]) -> None:
    """No copy accuses anybody but who lost a decision or skipped a marker, and none lacks what an earlier one had."""
    before: dict[tuple[str, int], set[tuple[int, int, int]]] = {}
    crashed = copies[0][0].parent.glob("crashed-*/broker-*")
    skipped = skipped_markers(copies[0][0].parent)
    held: set[Decision] = set().union(*map(decisions, crashed))
    for folder, started_ms in copies:
        config = Config(copy_started_ms=started_ms, abort_scan_ms=500)
        loud = [row for row in pure_audit.accusations(folder / "logs", config) if is_loud(row)]
        held |= set().union(*map(decisions, (folder / "logs").glob("broker-*")))
        lost = [row for row in loud if is_lost_decision(row, folder / "logs", held)]
        lost += [row for row in loud if is_skipped_marker(row, skipped)]
        assert [row for row in loud if row not in lost] == [], (folder, started_ms)
        for replica in best_replicas(folder).values():
            if replica.place[0] != life.TOPICS[0]:
                continue
            batches = {(one.base_offset, one.last_offset, one.crc) for one in replica.batches}
            assert before.get(replica.place, set()) <= batches, (folder, replica.place)
            sure = replica.high_watermark or 0
            before[replica.place] = {one for one in batches if one[1] < sure}
        print(
            folder.name,
            f"tells {len(lost)} lost decisions and markers and nothing else:",
            sum(map(len, before.values())),
            "batches are certain",
        )
