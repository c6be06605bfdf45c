"""What a fault planted into the model's cluster says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.property.model_types import Partition

AFTERMATH: list[dict[str, object]] = [{"code": "lso_pinned"}, {"code": "slow_transaction"}]


@dataclass(frozen=True)
class Expected:
    """`must`: one finding with these fields (a list means any of); `may`: what may come along."""

    must: dict[str, object]
    may: list[dict[str, object]] = field(default_factory=lambda: list(AFTERMATH))


def expect(
    code: str,
    name: str | list[str],
    partition: Partition,
    *may: dict[str, object],
    **fields: object,
) -> Expected:
    topic, number = partition.name
    must = {"code": code, "class": name, "topic": topic, "partition": number, **fields}
    return Expected(must, [*AFTERMATH, *may])
