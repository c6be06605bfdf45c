"""Where the JVM puts temporary files, and what is said when there is no place for them."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

from pipeline.errors import AuditError
from pipeline.spark import session

FLAGS = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def _own_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "delta-spark.jar"
    jar.touch()
    monkeypatch.setenv(session.JARS_VARIABLE, str(jar))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_the_jvm_puts_temporary_files_where_tmpdir_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a place"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    settings = session._start_settings((), is_local=True, input_bytes=0, java_flags=())
    assert f"-Djava.io.tmpdir={place}" in shlex.split(settings[FLAGS])


def test_no_place_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    with pytest.raises(AuditError, match=r"No usable temporary directory .*TMPDIR") as raised:
        session._start_settings((), is_local=True, input_bytes=0, java_flags=())
    assert raised.value.exit_code == 4
    assert "\n" not in str(raised.value)


def test_too_little_room_is_said_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    usage = shutil.disk_usage(tmp_path)._replace(free=8 << 10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(
        AuditError, match=r"no room for temporary files: .* has 8 KiB left"
    ) as raised:
        session._start_settings((), is_local=True, input_bytes=0, java_flags=())
    assert raised.value.exit_code == 4
