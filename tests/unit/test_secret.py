"""The key of pseudonyms comes from outside and is not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import secret
from pipeline.config import load
from pipeline.errors import ConfigError

LONG = "a key that is long enough"


def test_the_environment_goes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(secret.VARIABLE, raising=False)
    file = tmp_path / "key"
    file.write_text(f"{LONG}\n")
    assert secret.read(None) is None
    assert secret.read(str(file)) == LONG.encode()
    monkeypatch.setenv(secret.VARIABLE, f"other {LONG}")
    assert secret.read(str(file)) == f"other {LONG}".encode()
    assert secret.fresh() != secret.fresh()


def test_a_bad_key_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(secret.VARIABLE, "short-one")
    with pytest.raises(ConfigError, match="16 characters") as refused:
        load(None, {"redact": True})
    assert "short-one" not in str(refused.value)
    assert not load(None, {}).redact
    monkeypatch.delenv(secret.VARIABLE)
    with pytest.raises(ConfigError, match="no such file"):
        load(None, {"redact": True, "redact_key_file": str(tmp_path / "none")})


def test_the_key_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    one, other = (tmp_path / name for name in "ab")
    for file in (one, other):
        file.write_text(LONG + file.name)
    prints = {
        load(None, {"redact": True, "redact_key_file": str(file)}).fingerprint()
        for file in (one, other)
    }
    assert len(prints) == 1
