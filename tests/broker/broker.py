"""Real Kafka brokers (KRaft) on loopback, each a JVM of its own, ended by its process only."""

from __future__ import annotations

import base64
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from tests.broker import artifacts
from tests.broker.raw import Raw

HOST = "127.0.0.1"
START_SECONDS = 90
STOP_SECONDS = 30
_JVM = (
    "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.coordinator.transaction.TransactionMarkerChannelManager=info",
)  # fmt: skip
_SETTINGS: dict[str, Any] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.index.size.max.bytes": 65536,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "log.cleaner.dedupe.buffer.size": 4 << 20,
    "log.initial.task.delay.ms": 500,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
}


class Broker:
    """One node; made by `Cluster`.

    Attributes:
        node: Its id, from 1.
        jars: Of the Kafka that it runs; others take effect when it starts again.
        port: Where clients reach it, the same after every start.
        folder: Its own: settings, output of the JVM, log directories.
        disks: The log directories, by the name that each gets in a copy: one, `.`, or `disk-<n>`.
        is_paused: Whether it stands still: connections to it are taken, and never answered.
    """

    def __init__(self, cluster: Cluster, node: int) -> None:
        self.cluster, self.node = cluster, node
        self.jars = cluster.jars
        self.folder = cluster.folder / f"broker-{node}"
        names = ["."] if cluster.disks == 1 else [f"disk-{n + 1}" for n in range(cluster.disks)]
        self.disks = {name: self.folder / "data" / name for name in names}
        self.port, self.controller_port = _free_port(), _free_port()
        self.is_paused = False
        self._process: subprocess.Popen[bytes] | None = None
        self.folder.mkdir(parents=True)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def format(self) -> None:
        """Writes the settings and formats the log directory."""
        self._properties().write_text(
            "".join(f"{name}={value}\n" for name, value in self._settings().items())
        )
        command = ["format", "-t", self.cluster.cluster_id, "-c", str(self._properties())]
        if self.cluster.transaction_version is not None:
            command += ["--feature", f"transaction.version={self.cluster.transaction_version}"]
        done = run_tool(self.jars, "kafka.tools.StorageTool", command)
        if done.returncode != 0:
            raise RuntimeError(f"storage was not formatted: {done.stdout}{done.stderr}")

    def launch(self) -> None:
        """Starts the JVM; `Cluster.wait` waits for it."""
        with (self.folder / "output.txt").open("ab") as sink:
            self._process = subprocess.Popen(
                [artifacts.java_path(), *_JVM, "-cp", str(self.jars / "*"), "kafka.Kafka",
                 str(self._properties())],
                stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=self.folder,
            )  # fmt: skip

    def stop(self) -> None:
        """Asks it to end (SIGTERM) and waits: what it knows is on disk then."""
        self.ask_to_end()
        self.wait_for_end()

    def ask_to_end(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def wait_for_end(self) -> None:
        """Waits; the last ones of a cluster may wait for a controller for ever and are killed."""
        if self._process is None:
            return
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"broker {self.node} did not stop within {STOP_SECONDS} seconds: killed")
            self.kill()

    def kill(self) -> None:
        """Ends it at once (SIGKILL), as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.is_paused = False

    def pause(self) -> None:
        """Stands still (SIGSTOP), as behind a long pause of its collector or of its virtual machine."""
        self._signal(signal.SIGSTOP, is_paused=True)

    def resume(self) -> None:
        """Goes on (SIGCONT), with what was sent to it meanwhile."""
        self._signal(signal.SIGCONT, is_paused=False)

    def _signal(self, number: signal.Signals, *, is_paused: bool) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self.is_paused = is_paused

    def output(self) -> str:
        """The end of what the JVM wrote."""
        path = self.folder / "output.txt"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _settings(self) -> Mapping[str, Any]:
        nodes = self.cluster.brokers
        replicas = len(nodes)
        return {
            **_SETTINGS,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(replicas, 2),
            "default.replication.factor": replicas,
            "min.insync.replicas": min(replicas, 2),
            **self.cluster.settings,
            "node.id": self.node,
            "log.dirs": ",".join(map(str, self.disks.values())),
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.quorum.voters": ",".join(
                f"{each.node}@{HOST}:{each.controller_port}" for each in nodes
            ),
        }


class Cluster:
    """Brokers of one version that know each other.

    Args:
        version: Of Kafka.
        folder: A new one, for everything that they write.
        nodes: How many.
        disks: Log directories of each.
        transaction_version: Level of the feature to format with; None: the version's own.
        settings: Of every broker, beside the small ones that all tests use.

    Raises:
        artifacts.NoArtifacts: the JARs cannot be had.
    """

    def __init__(
        self,
        version: str,
        folder: Path,
        *,
        nodes: int = 1,
        disks: int = 1,
        transaction_version: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.version, self.folder, self.disks = version, folder, disks
        self.transaction_version = transaction_version
        self.settings = dict(settings or {})
        self.jars = artifacts.jars(version)
        # A first letter of the base64 text that is a dash would read as an option.
        self.cluster_id = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        self.brokers: list[Broker] = []
        self.brokers += [Broker(self, node + 1) for node in range(nodes)]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{each.port}" for each in self.brokers)

    @property
    def bumps(self) -> bool:
        """Whether each transaction has an epoch of its own (transaction.version 2, KIP-890)."""
        if self.transaction_version is None:
            return not self.version.startswith("3.")
        return self.transaction_version == 2

    def start(self) -> None:
        """Starts every broker that does not run, formatted when it is new, and waits for all."""
        for each in self.brokers:
            if not (each.folder / "data").exists():
                each.format()
            if not each.is_running:
                each.launch()
        self.wait()

    def wait(self) -> None:
        """Until every running broker knows every other.

        Raises:
            RuntimeError: one ended, or they took longer than `START_SECONDS`.
        """
        running = [each for each in self.brokers if each.is_running]
        end = time.monotonic() + START_SECONDS
        for each in running:
            while not _knows(each.port, len(running)):
                if not each.is_running or time.monotonic() > end:
                    raise RuntimeError(f"broker {each.node} did not start:\n{each.output()}")
                time.sleep(0.1)

    def stop(self) -> None:
        """Stops all of them at once: without a controller the last one cannot."""
        for each in self.brokers:
            each.ask_to_end()
        for each in self.brokers:
            each.wait_for_end()

    def kill(self) -> None:
        """Ends all of them at once."""
        for each in self.brokers:
            each.kill()


def run_tool(jars: Path, main: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the main class of one of Kafka's command line tools to its end."""
    command = [artifacts.java_path(), "-Xmx128m", *_JVM[1:], "-cp", str(jars / "*"), main]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _knows(port: int, nodes: int) -> bool:
    try:
        with Raw(HOST, port, timeout_s=5) as raw:
            return len(raw.ask(MetadataRequest[4](topics=[])).brokers) >= nodes
    except OSError:
        return False
