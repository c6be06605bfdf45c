"""From a hanging transaction to our advice, run as it is written, to an audit that sees it done."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import FAULTS, VERSIONS, living
from tests.broker.lab import COORDINATORS, GRACE_MS, SKEW_MS, Lab
from tests.broker.questions import Hanging
from tests.broker.raw import RawProducer

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.spark]

LAUNCHER = Path(__file__).resolve().parents[2] / "spark-submit.sh"
ABORT = re.compile(r"kafka-transactions\.sh --bootstrap-server <host:port> abort [^(]*")
SETTINGS = {
    "marker_grace_ms": GRACE_MS,
    "clock_skew_ms": SKEW_MS,
    "abort_scan_ms": 500,
    "transaction_state_partitions": COORDINATORS,
}
Finding = dict[str, Any]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    yield from living(VERSIONS[0], tmp_path_factory.mktemp("advice") / "lab", FAULTS)


def audited(folder: Path, copy: Path, started_ms: int | None, status: int) -> list[Finding]:
    """Findings of `./spark-submit.sh` over a copy."""
    conf = folder / "audit.yaml"
    conf.write_text("".join(f"{name}: {value}\n" for name, value in SETTINGS.items()))
    command = [str(LAUNCHER), "--input", str(copy / "logs"), "--output", str(folder / "audit"),
               "--conf", str(conf)]  # fmt: skip
    if started_ms is not None:
        started = datetime.fromtimestamp(started_ms / 1000, UTC)
        command += ["--copy-started", started.isoformat(timespec="milliseconds")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    newest = max((folder / "audit" / "runs").iterdir())
    return [json.loads(line) for line in (newest / "findings.jsonl").read_text().splitlines()]


def hanging(findings: list[Finding], status: str) -> dict[Hanging, Finding]:
    return {
        Hanging(
            one["topic"], one["partition"], one["producer_id"], one["producer_epoch"],
            one["first_offset"],
        ): one
        for one in findings
        if one["code"] == "hanging_transaction" and one["status"] == status
    }  # fmt: skip


def test_what_the_broker_finds_is_found_and_our_advice_ends_it(lab: Lab, tmp_path: Path) -> None:
    topic = lab.topic("orders")
    late = RawProducer(lab.raw, "orders-writer")
    late.add(topic, 0)
    late.produce(topic, 0)
    late.end(commits=True)
    lab.until(late.transactional_id, "CompleteCommit")
    late.produce(topic, 1)
    unknown = RawProducer(lab.raw, "orders-unknown")
    unknown.producer_id = 424_242
    unknown.produce(topic, 0)
    lab.settle()

    told = lab.ask.find_hanging()
    live = lab.copied(is_live=True)
    found = hanging(audited(tmp_path, live.folder, live.started_ms, status=1), "new")
    assert set(found) == told
    assert {one["class"] for one in found.values()} == {"not_in_transaction", "orphan_producer"}
    assert {one["certainty"] for one in found.values()} == {"proven"}

    for one in found.values():
        line, _ = ABORT.findall(one["advice"])  # the second is for brokers older than these
        lab.ask.run_line(line.strip())
    assert lab.ask.find_hanging() == set()
    lab.stop()
    stopped = lab.copied(is_live=False)
    after = audited(tmp_path, stopped.folder, None, status=1)
    assert hanging(after, "new") == hanging(after, "open") == {}
    assert set(hanging(after, "resolved")) == told
    by_hand = [one for one in after if one["code"] == "manual_abort"]
    assert {(one["severity"], one["topic"], one["partition"]) for one in by_hand} == {
        ("info", topic, 0), ("info", topic, 1),
    }  # fmt: skip
