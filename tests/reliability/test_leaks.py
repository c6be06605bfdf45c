"""Figure 8: secrets of addresses, settings and the environment are in nothing that a run leaves, at any log level.

Audits of a bucket with everything in Spark's log that it can write (the levels above write less), and with Spark's
event log on and uncompressed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import secret
from tests import s3_server

ROOT = Path(__file__).resolve().parents[2]
KEY, SECRET = "AKIAINADDRESS0001", "Zq7SecretOfTheAddress"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIAINENVIRON0002",
    "AWS_SECRET_ACCESS_KEY": "Xw8SecretOfTheEnvironment",
    "AWS_SESSION_TOKEN": "Tk9TokenOfTheEnvironment",
    secret.VARIABLE: "Rk4KeyOfThePseudonymsOfThisRun0123456789",
}
SETTINGS = {
    "spark.hadoop.fs.s3a.secret.key": "Cf5SecretOfASetting",
    "spark.hadoop.fs.s3a.session.token": "Ct6TokenOfASetting",
    "spark.ssl.keyPassword": "Pw6PasswordOfASetting",
}
SECRETS = (KEY, SECRET, *ENVIRONMENT.values(), *SETTINGS.values())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A recording in a bucket of a server on loopback."""
    with s3_server.endpoint() as endpoint:
        yield s3_server.bucket(endpoint, KEY, SECRET)


def audit(folder: Path, address: str, level: str, *more: str) -> int:
    """One audit with everything that it leaves in a folder; its exit code."""
    for name in ("events", "temp"):
        (folder / name).mkdir(parents=True)
    settings = SETTINGS | {
        "spark.log.level": level,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "jobs", "--input", address, *more,
         "--output", str(folder / "output"), "--spark", *confs],
        env={**os.environ, **ENVIRONMENT, "TMPDIR": str(folder / "temp"), "PYTHONPATH": str(ROOT)},
        capture_output=True, check=False,
    )  # fmt: skip
    (folder / "stdout").write_bytes(done.stdout)
    (folder / "stderr").write_bytes(done.stderr)
    return done.returncode


def leaks(folder: Path) -> list[str]:
    """Where secrets are, each with what stands before it."""
    found, size = [], 0
    files = [one for one in folder.rglob("*") if one.is_file()]
    for file in files:
        try:
            data = file.read_bytes()
        except FileNotFoundError:  # the JVM removes its temporary files when it ends
            continue
        size += len(data)
        if file.suffix == ".parquet":
            data += repr(pq.ParquetFile(file).read().to_pylist()).encode()
        for one in SECRETS:
            at = data.find(one.encode())
            if at >= 0:
                found.append(
                    f"{one} in {file.relative_to(folder)}: {data[max(at - 200, 0) : at]!r}"
                )
    print(f"{len(files)} files, {size} bytes, {len(SECRETS)} secrets: {len(found)} found")
    return found


@pytest.mark.parametrize("one", SECRETS)
def test_a_secret_that_is_there_is_found(tmp_path: Path, one: str) -> None:
    """In a text, and in a table whose bytes hold it only compressed."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "spark.log").write_text(f"key={one}\n")
    halves = [one[: len(one) // 2], one[len(one) // 2 :]]
    file = tmp_path / "part.parquet"
    pq.write_table(
        pa.table({"text": [*halves, one] * 9}),
        file,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )
    assert one.encode() not in file.read_bytes()
    assert len(leaks(tmp_path)) == 2


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("level", ["DEBUG", "TRACE"])
def test_no_secret_in_anything_that_a_run_leaves(tmp_path: Path, address: str, level: str) -> None:
    code = audit(tmp_path, address, level)
    assert code in (1, 3), (tmp_path / "stderr").read_text()
    assert any((tmp_path / "events").iterdir())
    assert leaks(tmp_path) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.full
def test_no_secret_when_reading_fails(tmp_path: Path, address: str) -> None:
    """Storage that does not answer, and a setting that is unknown."""
    nowhere = address.replace("endpoint_override=127.0.0.1:", "endpoint_override=127.0.0.1:1&x=")
    assert audit(tmp_path, nowhere, "TRACE") == 2
    assert leaks(tmp_path) == []
