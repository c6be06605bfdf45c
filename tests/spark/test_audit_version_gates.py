"""Through Spark: what names a defect is told of brokers that may have it, and not where its fix is given or proven."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.plant import PLANTS, plant
from tests.recordings import recording
from tests.score import matches
from tests.spark.audited import audited, found, laid_out
from tests.unit.detect.test_version_gates import RACES, proven, proven_leader

pytestmark = pytest.mark.spark


def _races(spark: SparkSession, logs: dict[str, Path], root: Path, **settings: str) -> set[str]:
    tree = laid_out(logs, root / "in")
    findings = found(audited(spark, tree, root / "out", **settings))
    return {str(one["class"]) for one in findings if one["code"] == "offset_race"}


def test_races_of_old_brokers_and_of_new_ones(spark: SparkSession, tmp_path: Path) -> None:
    logs, twins, wanted = {}, {}, set()
    for name in RACES:
        source = recording(PLANTS[name].recording) / "logs"
        planted = plant(name, source, tmp_path / name)
        logs[name], wanted = tmp_path / name, wanted | {planted.must["class"]}
        twins[name] = proven(logs[name], tmp_path / f"proven-{name}")
    assert _races(spark, logs, tmp_path / "old") == {*wanted, "window"}
    assert _races(spark, twins, tmp_path / "proven") == set()
    some = _races(spark, logs, tmp_path / "given-some", kafka_version="3.9.1")
    assert some == {"early_completion"}
    assert _races(spark, logs, tmp_path / "given", kafka_version="4.0.0") == set()
    one_broker = {
        name: proven_leader(logs[name], tmp_path / f"led-{name}", is_same=name != "bypass")
        for name in ("bypass", "early_answer", "race_regression")
    }
    assert _races(spark, one_broker, tmp_path / "led") == {"bypass", "window"}


@pytest.mark.parametrize(
    ("version", "told_as"), [("4.0.0", "double_epoch_bump"), ("4.0.1", "epoch_rule")]
)
def test_a_double_bump(spark: SparkSession, version: str, told_as: str, tmp_path: Path) -> None:
    name = "double_epoch_bump"
    planted = plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "in")
    findings = found(audited(spark, tmp_path / "in", tmp_path / "out", kafka_version=version))
    bumps = [one for one in findings if matches(one, planted.must)]
    assert {one["class"] for one in bumps} == {told_as}
    assert all(("KAFKA-19367" in str(one["advice"])) == (version == "4.0.0") for one in bumps)


@pytest.mark.parametrize("is_proven", [False, True])
def test_advice_names_what_the_brokers_may_have(
    spark: SparkSession, is_proven: bool, tmp_path: Path
) -> None:
    name = "prepare_stuck"
    planted = plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "in")
    logs = proven(tmp_path / "in", tmp_path / "proven") if is_proven else tmp_path / "in"
    findings = found(audited(spark, logs, tmp_path / "out"))
    advice = [str(one["advice"]) for one in findings if matches(one, planted.must)]
    assert advice
    assert all(("KAFKA-9777" in one) != is_proven for one in advice)
