"""Log directories in S3, against a local server; what cannot be used ends with one clear line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pipeline.errors import UsageError
from pipeline.report.completeness import gaps
from pipeline.spark.files import opened
from pipeline.spark.plan import plan
from pipeline.spark.read_file import read_task
from pipeline.spark.tasks import tasks_of
from tests import pure_audit, s3_server
from tests.recordings import recording
from tests.unit.test_archives import what

moto_settings = pytest.importorskip("moto.settings")
KEY, SECRET = "testing", "s3cr3t-never-shown"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Address of a server on loopback, started and stopped here."""
    with s3_server.endpoint() as address:
        yield address


@pytest.fixture(scope="module")
def bucket(endpoint: str) -> str:
    """The address of a recording in a bucket."""
    return s3_server.bucket(endpoint, KEY, SECRET)


def test_a_bucket_gives_the_findings_of_its_tree(bucket: str) -> None:
    logs = recording("06") / "logs"
    assert what(pure_audit.accusations(bucket)) == what(pure_audit.accusations(logs))


def test_a_bucket_is_looked_over_like_its_tree(bucket: str) -> None:
    logs = recording("06") / "logs"
    assert gaps(bucket) == gaps(str(logs)) == []


def test_names_and_roots_hold_no_secret(bucket: str) -> None:
    planned = plan([bucket])
    assert planned.replicas
    shown = [*planned.roots, *(one.name for one in planned.files)]
    shown += [text for one in planned.log_dirs for text in (one.name, one.path)]
    shown += [text for one in planned.replicas for text in (one.name, one.log_dir_path)]
    assert not [text for text in shown if SECRET in text or KEY in text]
    assert planned.fingerprint() == plan([bucket]).fingerprint()


def test_reads_are_ranged(bucket: str) -> None:
    largest = max(plan([bucket]).files, key=lambda one: one.size)
    with opened(largest.path) as file:
        assert file.size == largest.size
        assert file.read_at(10, 5) == file.read_at(0, 100)[10:15]
        assert file.read_at(largest.size - 3, 100) == file.read_at(0, largest.size)[-3:]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://{login}missing/x?{options}", "no such bucket or folder"),
        ("s3://{login}copies/nothing-here?{options}", "no such bucket or folder"),
        ("s3://{login}copies/night?endpoint_override=127.0.0.1:1&scheme=http", "does not answer"),
        ("ftp://{login}host/x", "ftp:// cannot be read here"),
        ("s3://{login}copies/night?unknown_option=1", "cannot be read here"),
    ],
)
def test_what_cannot_be_used(bucket: str, endpoint: str, address: str, message: str) -> None:
    given = address.format(login=f"{KEY}:{SECRET}@", options=s3_server.options(endpoint))
    with pytest.raises(UsageError, match=message) as raised:
        plan([given])
    assert SECRET not in str(raised.value)
    assert raised.value.exit_code == 2


@pytest.fixture
def guarded(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same server, checking who asks from the first request on."""
    guard(monkeypatch)
    return endpoint


def guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moto_settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)


@pytest.mark.parametrize("key", [KEY, "AKIA0000000000NOBODY"])
def test_bad_credentials_end_with_one_clear_line(bucket: str, guarded: str, key: str) -> None:
    with pytest.raises(UsageError, match="access was refused: check credentials") as raised:
        plan([f"s3://{key}:{SECRET}@copies/night?{s3_server.options(guarded)}"])
    said = str(raised.value)
    assert SECRET not in said
    assert key not in said
    assert "\n" not in said
    assert raised.value.exit_code == 2


def test_bad_credentials_of_the_environment(
    bucket: str, guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0000000000NOBODY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with pytest.raises(UsageError, match="access was refused") as raised:
        plan([f"s3://copies/night?{s3_server.options(guarded)}"])
    assert SECRET not in str(raised.value)
    assert "NOBODY" not in str(raised.value)


def test_rights_that_end_while_files_are_read(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing went well, then a token expired: each file is a row that says so, and no exception."""
    planned = plan([bucket])
    guard(monkeypatch)
    task = next(task for task in tasks_of(planned) if task.kind == "log" and task.size)
    rows = [
        json.loads(text)
        for part in read_task(task)
        if part.column(0)[0].as_py() == "unreadable"
        for text in part.column("detail").to_pylist()
    ]
    assert [row["reason"] for row in rows] == ["io"]
    assert SECRET not in str(rows)
    assert KEY not in str(rows)
