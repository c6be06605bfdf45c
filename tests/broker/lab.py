"""A cluster, what it says of itself, and audits of its copies held against that."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)

from pipeline.config import Config
from pipeline.replay import stability
from tests import pure_audit
from tests.broker.broker import HOST, Cluster
from tests.broker.copying import copy
from tests.broker.questions import Questions
from tests.broker.raw import Raw, RawProducer
from tests.broker.routed import Routed
from tests.differential.replicas import Replica, best_replicas
from tests.score import is_loud

# On one machine with one clock a second is enough; the defaults are for clusters.
GRACE_MS = 1_000
SKEW_MS = 500
COORDINATORS = 4
SETTLED_S = (GRACE_MS + SKEW_MS) / 1000 + 0.5


class Accusation(NamedTuple):
    """What two sides have to agree on."""

    code: str
    class_: str
    topic: str | None
    partition: int | None
    first_offset: int | None


class Copied(NamedTuple):
    """A copy and what was found in it.

    Attributes:
        folder: With `logs/broker-<n>`.
        started_ms: When a live copy was begun; None of stopped brokers.
        accusations: Everything above `info`, and manual aborts.
    """

    folder: Path
    started_ms: int | None
    accusations: set[Accusation]


class Lab:
    """One cluster whose tests each have topics of their own.

    Attributes:
        cluster: It runs.
        expected: Topic -> what an audit has to find there by now.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.expected: dict[str, set[Accusation]] = {}
        self._copies = 0
        self._topics: dict[str, int] = {}
        self._watched: dict[str, int] = {}
        self._raw: Raw | None = None
        self._routed: Routed | None = None
        self._questions: Questions | None = None
        self._traffic: list[RawProducer] = []

    @property
    def ask(self) -> Questions:
        if self._questions is None:
            self._questions = Questions(self.cluster)
        return self._questions

    @property
    def raw(self) -> Raw:
        """A connection to the first broker."""
        if self._raw is None:
            self._raw = Raw(HOST, self.cluster.brokers[0].port)
        return self._raw

    @property
    def routed(self) -> Routed:
        """Connections to whichever broker leads or coordinates."""
        if self._routed is None:
            self._routed = Routed(self.cluster)
        return self._routed

    def topic(self, name: str, partitions: int = 2, **settings: str) -> str:
        """A new topic; audits hold its partitions against what the broker says of them."""
        self.ask.create(name, partitions, **settings)
        self._topics[name] = partitions
        return name

    def placed(self, name: str, nodes: Sequence[int]) -> str:
        """A new topic whose partitions lie on one broker each."""
        self.ask.create_placed(name, nodes)
        self._topics[name] = len(nodes)
        return name

    def watch(self, name: str, partitions: int) -> None:
        """Audits hold these partitions, too, against what the broker says; others make them and write there."""
        self._watched[name] = partitions

    def start(self) -> None:
        self.cluster.start()

    def stop(self) -> None:
        """Stops the brokers; connections are made anew after the next start."""
        self.disconnect()
        self.cluster.stop()

    def kill(self) -> None:
        """Kills the brokers, as a crash does."""
        self.disconnect()
        self.cluster.kill()

    def disconnect(self) -> None:
        for each in (self._raw, self._routed, self._questions):
            if each is not None:
                each.close()
        self._raw = self._routed = self._questions = None

    def settle(self) -> None:
        """Lets time pass that the brokers' clocks can prove: what happened is then old enough."""
        self.traffic()
        time.sleep(SETTLED_S)
        self.traffic()

    def traffic(self) -> None:
        """A transaction over every partition by an id of each coordinator partition.

        Without it nothing that a broker stamped stands behind an event, and no rule about
        something absent may speak of a running broker's files.
        """
        if not self._traffic:
            ids = [f"traffic-{number}" for number in range(COORDINATORS)]
            bumps = self.cluster.bumps
            self._traffic = [RawProducer(self.routed, each, bumps=bumps) for each in ids]
        for each in self._traffic:
            each.raw = self.routed
            for topic, count in self._topics.items():
                if not each.bumps:
                    each.add(topic, *range(count))
                for partition in range(count):
                    each.produce(topic, partition, 1)
            each.end(commits=True)
        for each in self._traffic:
            self.until(each.transactional_id, "CompleteCommit")

    def until(self, transactional_id: str, state: str) -> None:
        """Waits until the coordinator, whoever it is by now, says that an id is in a state."""
        end = time.monotonic() + 60
        while (told := self._state(transactional_id)) != state:
            assert time.monotonic() < end, (transactional_id, told)
            time.sleep(0.05)

    def _state(self, transactional_id: str) -> str:
        """What is told; nothing while brokers do not agree on who coordinates."""
        try:
            return self.ask.state(transactional_id)
        except (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError):
            self.ask.close()
            self._questions = None
            return ""

    def check(self, topic: str, found: Iterable[Accusation] = ()) -> Copied:
        """Copies the running brokers, audits, and compares with expectation and broker.

        Args:
            topic: What is looked at; accusations without a topic count as well.
            found: All that has to be found there, now and in later copies.
        """
        self.expected[topic] = set(found)
        self.settle()
        told = self._told()
        copied = self.copied(is_live=True)
        mine = {one for one in copied.accusations if one.topic in (topic, None)}
        assert mine == self.expected[topic]
        assert self._replayed(copied) == told
        return copied

    def check_stopped(self) -> Copied:
        """Stops the brokers, copies, audits, and compares with the expectation; they stay down."""
        told = self._told()
        self.stop()
        copied = self.copied(is_live=False)
        assert copied.accusations == set().union(*self.expected.values())
        assert self._replayed(copied) == told
        return copied

    def copied(self, *, is_live: bool, config: Config | None = None) -> Copied:
        """A copy and its audit."""
        self._copies += 1
        folder = self.cluster.folder / f"copy-{self._copies}"
        started_ms = copy(self.cluster, folder / "logs")
        return self.audited(folder, started_ms if is_live else None, config)

    def audited(self, folder: Path, started_ms: int | None, config: Config | None = None) -> Copied:
        """The audit of a copy, with `started_ms` as its `copy_started_ms`."""
        config = config or Config(
            copy_started_ms=started_ms,
            marker_grace_ms=GRACE_MS, clock_skew_ms=SKEW_MS, abort_scan_ms=500,
            transaction_state_partitions=COORDINATORS,
        )  # fmt: skip
        rows = pure_audit.accusations(folder / "logs", config)
        loud = [row for row in rows if is_loud(row) or row["code"] == "manual_abort"]
        return Copied(
            folder, started_ms,
            {Accusation(row["code"], row["class"], row["topic"], row["partition"], row["first_offset"])
             for row in loud},
        )  # fmt: skip

    def committed(self, copied: Copied, group: str) -> dict[tuple[str, int], int | None]:
        """What a group had committed, as the files say."""
        found: dict[tuple[str, int], int | None] = {}
        for replica in best_replicas(copied.folder).values():
            if replica.is_offsets:
                for (of, topic, partition), one in replica.committed()[0].materialised.items():
                    if of == group:
                        found[topic, partition] = one.committed_offset
        return found

    def _told(self) -> dict[tuple[str, int], object]:
        """Ends and open transactions of each partition, as the brokers say."""
        return {
            place: (*self.ask.ends(*place), self.ask.open_transactions(*place))
            for place in self._places()
        }

    def _replayed(self, copied: Copied) -> dict[tuple[str, int], object]:
        """The same, as the files say."""
        best = best_replicas(copied.folder)
        return {place: _ends(best.get(place)) for place in self._places()}

    def _places(self) -> list[tuple[str, int]]:
        topics = self._topics | self._watched
        return [(topic, at) for topic, count in topics.items() for at in range(count)]


def _ends(replica: Replica | None) -> tuple[int, int, set[tuple[int, int]]]:
    if replica is None:
        return 0, 0, set()
    runs = replica.replayed().runs
    end = replica.log_end_offset
    started = {(run.producer_id, run.first_offset) for run in runs if run.is_open}
    return stability.last_stable_offset(runs, end, end), end, started
