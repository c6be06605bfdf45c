"""The sanitiser: nothing that a sink could act on goes through."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text import counted, nearest, plural, redact, sanitise


def test_numbers_have_the_word_that_fits() -> None:
    assert [counted(one, "batch", "batches") for one in (0, 1, 2, 1_000)] == [
        "0 batches", "1 batch", "2 batches", "1,000 batches",
    ]  # fmt: skip
    assert [plural(one, "id") for one in (0, 1, 2)] == ["ids", "id", "ids"]


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("payments-tx-7", "payments-tx-7"),
        ("größe 東京", "größe 東京"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"),
        ("a\x9bb", "a\\xc2\\x9bb"),
        ("a\u202eb", "a\\xe2\\x80\\xaeb"),
        ("a\u2028b", "a\\xe2\\x80\\xa8b"),
        ("a\ud800b", "a\\xed\\xa0\\x80b"),
        ("", ""),
        ("C:\\x41", "C:\\x41"),
    ],
)
def test_shows_what_it_was(given_text: str, shown: str) -> None:
    assert sanitise(given_text) == shown


@given(st.text(st.characters(codec=None)))
def test_lets_only_printable_text_through_and_is_stable(text: str) -> None:
    shown = sanitise(text)
    shown.encode("utf-8")
    assert all(
        unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for c in shown
    )
    assert sanitise(shown) == shown


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("s3://key:secret@bucket/path", "s3://***@bucket/path"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("spark.hadoop.fs.s3a.secret.key=abc/def", "spark.hadoop.fs.s3a.secret.key=***"),
        ("s3://b/p?token=abc&x=1", "s3://b/p?token=***&x=1"),
        ("--input=/copies/1", "--input=/copies/1"),
    ],
)
def test_redacts_secrets(given_text: str, shown: str) -> None:
    assert redact(given_text) == shown


def test_suggests_only_what_is_near() -> None:
    assert nearest("adit", ["audit", "doctor"]) == " (did you mean 'audit'?)"
    assert nearest("zzzzz", ["audit", "doctor"]) == ""
