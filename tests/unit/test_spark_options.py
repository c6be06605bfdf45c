"""What the user says behind --spark wins, and what cannot work is refused before a JVM starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.spark import options


@pytest.mark.parametrize(
    ("given", "master"),
    [
        ([], "local[*]"),
        (["--master", "spark://h:7077"], "spark://h:7077"),
        (["--master=local[1]", "--conf", "spark.master=yarn"], "local[1]"),
        (["--conf", "spark.master=yarn"], "yarn"),
        (["--conf=spark.master=yarn"], "yarn"),
    ],
)
def test_finds_the_master(given: list[str], master: str) -> None:
    assert options.master_of(given) == master


def test_reads_the_defaults_file_that_spark_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\nspark.driver.memory  3g\nspark.master=yarn\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert options.is_set("spark.driver.memory", [])
    assert options.master_of([]) == "yarn"
    assert options.master_of(["--master", "local"]) == "local"
    assert not options.is_set("spark.driver.extraJavaOptions", [])


@pytest.mark.parametrize(
    "given",
    [
        ["--deploy-mode", "cluster"],
        ["--deploy-mode=cluster"],
        ["--conf", "spark.submit.deployMode=cluster"],
        ["--version"],
        ["--help"],
        ["program.py"],
    ],
)
def test_refuses_what_cannot_work(given: list[str]) -> None:
    with pytest.raises(UsageError):
        options.check(given)


def test_accepts_the_rest() -> None:
    options.check(["--master", "spark://h:7077", "--deploy-mode", "client", "--conf", "a=b"])


def test_adds_the_delta_jars_to_the_users() -> None:
    assert options.with_jars(["--jars", "a.jar", "--conf", "x=y"], "d.jar") == [
        "--jars",
        "a.jar,d.jar",
        "--conf",
        "x=y",
    ]
    assert options.with_jars(["--jars=a.jar"], "d.jar") == ["--jars=a.jar,d.jar"]
    assert options.with_jars(["--jars", "a.jar"], None) == ["--jars", "a.jar"]
