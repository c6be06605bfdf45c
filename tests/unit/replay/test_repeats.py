"""Which records of one content were probably written twice: an offender and its innocent twins."""

from __future__ import annotations

import pytest

from pipeline.replay.repeats import Written, repeats, statements

A, A_BUMPED, B, NO_ID = (7, 0, 0), (7, 1, 0), (8, 0, 0), (-1, -1, 0)
IN_TXN, NEXT_TXN = (7, 0, 1), (7, 1, 1)
Row = tuple[int, tuple[int, int, int], int | None]


def found(*rows: Row) -> list[tuple[str, int, int]]:
    """(label, earlier offset, later offset) of records (batch offset, session, CreateTime)."""
    written = [
        Written(batch, number, *session, create_ms)
        for number, (batch, session, create_ms) in enumerate(rows)
    ]
    return [(one.label, one.earlier.offset, one.later.offset) for one in repeats(written)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, A, 5), (1, A_BUMPED, 5)], [("resent", 0, 1)]),
        ([(0, A, 5), (1, B, 5)], [("resent", 0, 1)]),
        ([(0, NO_ID, 5), (1, NO_ID, 5)], [("resent", 0, 1)]),
        ([(0, NO_ID, 5), (1, A, 5)], [("resent", 0, 1)]),
        ([(0, A, 5), (1, A_BUMPED, 5), (2, B, 5)], [("resent", 0, 1), ("resent", 0, 2)]),
        ([(0, A, 1), (1, A, 5), (2, B, 5)], [("resent", 1, 2)]),
        ([(0, A, 5), (1, B, 9)], [("repeated", 0, 1)]),
        ([(0, A, None), (1, B, None)], [("repeated", 0, 1)]),
    ],
)
def test_probably_written_twice(rows: list[Row], expected: list[tuple[str, int, int]]) -> None:
    assert found(*rows) == expected


@pytest.mark.parametrize(
    "rows",
    [
        [(0, A, 5)],
        [(0, A, 5), (1, A, 5)],  # the application said it twice: its session has its own numbers
        [(0, A, 5), (1, A, 9)],
        [(0, NO_ID, 5), (0, NO_ID, 5)],  # one batch, so one request
        [(0, NO_ID, 5), (1, NO_ID, 9)],
        [(0, A, 5), (1, NO_ID, 9)],
        [(0, A, 5), (1, B, 9), (2, A_BUMPED, 12)],  # a constant
        [(0, A, None), (1, B, None), (2, B, None)],
        [
            (0, IN_TXN, 5),
            (1, NEXT_TXN, 9),
        ],  # transaction.version 2: the next transaction, no other session
        [(0, IN_TXN, 5), (1, NEXT_TXN, 5)],
    ],
)
def test_innocent(rows: list[Row]) -> None:
    assert found(*rows) == []


def test_one_statement_a_batch() -> None:
    written = [Written(0, 0, *A, 5), Written(4, 4, *A_BUMPED, 5)]
    more = [Written(0, 1, *A, 6), Written(4, 5, *A_BUMPED, 6)]
    said = list(statements(0, "t", 1, [*repeats(written), *repeats(more)]))
    assert [(one.label, one.first_offset, one.last_offset) for one in said] == [("resent", 4, 5)]
    assert said[0].title.startswith("2 records of the batch at offset 4 of t-1")
    assert [place.offset for place in said[0].places] == [0, 4]
    assert (said[0].severity, said[0].certainty) == ("major", "consistent_with")
