"""Names as they are in life: from the bytes to findings, the terminal and `findings.jsonl`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.findings import finding_id
from pipeline.report import terminal
from pipeline.report.files import finding_lines, write_together
from pipeline.spark.plan import plan
from pipeline.text import sanitise
from tests import pure_audit
from tests.builders import ONGOING, Rec, batch, offset_key, offset_value, txn_entry, txn_value
from tests.stored_output import finding, summary

TOPICS = ["orders", "a.b_c-d.e-0", "-", "__x.y__", "t" * 249, "1-2-3", "o.v1-cleanup-compact"]
IDS = [
    "plain", "with 'quotes' and \"more\"", "line\nbreak\r\n", "emoji \U0001f600 \u2603", "\x1b[31mred\x1b[0m\x07",
    "<script>alert(1)</script>", "a,b::c=d key: x payload: y", "\u202etxt.exe", "$(rm -rf ~); `id`",
    "x" * 32_000, "", "-1", "\u0000nul", "[bold red]markup[/]", "../../etc/passwd",
]  # fmt: skip
NAME = f"{0:020d}.log"


def tree(root: Path, topic: str, name: str) -> Path:
    """An open transaction of that id in that topic, and a commit of a group with that id."""
    for folder, data in (
        (f"{topic}-3", batch(0, 2, producer_id=7, base_sequence=0, transactional=True)),
        ("__transaction_state-0", txn_entry(0, name, txn_value(
            ONGOING, producer_id=7, partitions=[(topic, 3)], start_ms=1))),
        ("__consumer_offsets-0", batch(0, [Rec(offset_key(name, topic, 3), offset_value(5))])),
    ):  # fmt: skip
        (root / folder).mkdir(parents=True)
        (root / folder / NAME).write_bytes(data)
    return root


@pytest.mark.parametrize("name", IDS, ids=range(len(IDS)))
@pytest.mark.parametrize("topic", TOPICS, ids=range(len(TOPICS)))
def test_from_bytes_to_people(tmp_path: Path, topic: str, name: str) -> None:
    root = tree(tmp_path / "in", topic, name)
    found = pure_audit.replayed(pure_audit.read(root, pure_audit.Config()))
    assert {one.topic for one in found.read.plan.replicas} >= {topic}
    (step,) = found.steps
    assert step["transactional_id"] == name
    (run,) = [row for row in found.runs if row["topic"] == topic]
    assert (run["partition"], run["producer_id"]) == (3, 7)
    (commit,) = [row for rows in found.read.commits.values() for row in rows]
    assert (commit["group_id"], commit["topic"], commit["partition"]) == (name, topic, 3)

    ids = {"topic": topic, "transactional_id": name, "group_id": name}
    row = finding(**ids)
    row |= {"finding_id": finding_id(row)} | {key: sanitise(text) for key, text in ids.items()}
    write_together(tmp_path, {"findings.jsonl": finding_lines([row])})
    (line,) = (tmp_path / "findings.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["transactional_id"] == sanitise(name)
    stream = io.StringIO()
    result: Any = SimpleNamespace(summary=summary(), examples=[row], output_dir="out/runs/r1")
    terminal.render(result, terminal.console(stream))
    assert "\x1b" not in stream.getvalue()
    assert "\u202e" not in stream.getvalue()


def test_a_topic_of_249_characters(tmp_path: Path) -> None:
    """A file system holds 255 bytes: topic, dash and partition fit, with a suffix they do not."""
    (tmp_path / f"{'t' * 249}-12345").mkdir()
    (tmp_path / f"{'t' * 249}-12345" / NAME).write_bytes(batch(0, 1))
    (replica,) = plan([str(tmp_path)]).replicas
    assert (len(replica.topic), replica.partition, replica.suffix) == (249, 12345, "")
