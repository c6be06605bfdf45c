"""A standalone cluster: one master, one worker, code and JARs sent to the executors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from pipeline.report.expectation import mismatches
from tests.recordings import recording

ROOT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"


@contextmanager
def _daemon(folder: Path, ready: str, *command: str) -> Iterator[str]:
    """A process of Spark's own, stopped by its id; gives what its log says when it is ready."""
    log = folder / f"{command[0].rpartition('.')[2]}.log"
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "SPARK_CONF_DIR")
    }
    environment |= {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *command],
            cwd=folder,
            env=environment,
            stdout=sink,
            stderr=sink,
        )
    try:
        until = time.monotonic() + 60
        while not (found := re.search(ready, log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster on the loopback interface."""
    with ExitStack() as stack:
        ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        address = stack.enter_context(
            _daemon(tmp_path, r"spark://127\.0\.0\.1:\d+", f"{DEPLOY}.master.Master", *ports)
        )
        size = ("--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
        worker = _daemon(
            tmp_path, "registered with master", f"{DEPLOY}.worker.Worker", *ports, *size, address
        )
        stack.enter_context(worker)
        yield address


@pytest.mark.spark
@pytest.mark.slow
def test_audits_on_a_standalone_cluster(master: str, tmp_path: Path, launcher: Path) -> None:
    sample = recording("06")
    output = tmp_path / "out"
    command = [
        str(launcher),
        "--input",
        str(sample / "logs"),
        "--output",
        str(output),
        "--format",
        "json",
        "--spark",
        "--master",
        master,
        "--conf",
        "spark.executor.memory=512m",
        "--conf",
        "spark.sql.shuffle.partitions=2",
    ]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    lines = (output / "runs" / summary["run_id"] / "findings.jsonl").read_text().splitlines()
    expected = json.loads((sample / "expect.json").read_text())
    assert mismatches((json.loads(line) for line in lines), expected) == []
    ran = [path for path in (tmp_path / "work").glob("app-*/*/stderr") if path.stat().st_size]
    assert ran, "no executor of the worker did anything"
    assert list((tmp_path / "work").glob("app-*/*/audit-code.zip")), (
        "the executors did not get the code"
    )
