"""What a ticket holds beside a dump: words of a person are nothing, what another tool printed is no clean bill."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.spark.text_input import sections
from pipeline.spark.trust import TEXT_REASONS

DUMPS = Path(__file__).parents[1] / "dumps"
PROSE = "Hi, our consumers hang since Monday.\n$ kafka-transactions.sh --bootstrap-server b:9092 find-hanging\n"
TABLE = (
    "Topic\tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\tLastTimestamp\n"
)


@pytest.mark.parametrize(
    ("beside", "reasons"),
    [
        ("", []),
        (PROSE, []),
        ((DUMPS / "24-real-hanging-894436.txt").read_text(encoding="utf-8"), ["other_tool"]),
        (PROSE + TABLE + "orders\t0\t7\t0\t0\t12\t1681914675233\n", ["other_tool"]),
    ],
)
@pytest.mark.parametrize("is_before", [True, False])
def test_a_clean_dump_beside(
    beside: str, reasons: list[str], is_before: bool, tmp_path: Path
) -> None:
    dump = (DUMPS / "08-txnstate-abort-data.txt").read_text(encoding="utf-8")
    ticket = tmp_path / "ticket.txt"
    ticket.write_text(f"{beside}\n{dump}" if is_before else f"{dump}\n{beside}", encoding="utf-8")
    held = sections(str(ticket), ticket.stat().st_size)
    assert held is not None
    assert [one.partition for one in held.dumps] == ["transaction-topic-0"]
    assert [reason for reason, _ in held.doubts] == reasons
    assert set(reasons) <= set(TEXT_REASONS)
