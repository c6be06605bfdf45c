"""Configuration: every mistake is one line with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.config import Config, load
from pipeline.config_sections import parse_time
from pipeline.errors import ConfigError

BUNDLED = Path(__file__).resolve().parents[2] / "conf" / "audit.yaml"


def test_bundled_file_says_the_defaults() -> None:
    assert load(str(BUNDLED), {}) == Config()


def test_bundled_file_explains_every_setting() -> None:
    text = BUNDLED.read_text()
    of_the_command_line = {"inputs", "output", "stage", "run_id", "now_ms"}
    for name in set(Config.model_fields) - of_the_command_line:
        assert f"\n{name}:" in text, name


def test_the_command_line_goes_before_the_file() -> None:
    config = load(
        str(BUNDLED), {"keep_runs": 3, "selection.topics": "orders*", "inputs": ("a", "b")}
    )
    assert (config.keep_runs, config.selection.topics, config.inputs) == (3, "orders*", ("a", "b"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keep_run: 3\n", ":1: unknown setting keep_run (did you mean 'keep_runs'?)"),
        (
            "\ngate:\n  severty: major\n",
            ":3: unknown setting gate.severty (did you mean 'severity'?)",
        ),
        ("clock_skew_ms: lots\n", ":1: clock_skew_ms: "),
        ("keep_runs: true\n", ":1: keep_runs: "),
        ("keep_runs: 0\n", ":1: keep_runs: "),
        ("keep_runs: 1\nkeep_runs: 2\n", ":2: keep_runs is set twice, first in line 1"),
        ("as_of_ms: 2026-11-26 02:10:00\n", ":1: as_of_ms: a time needs an offset or Z"),
        ("as_of_ms: yesterday\n", ":1: as_of_ms: not a time"),
        ("gate: &a\n  severity: major\nselection: *a\n", ":3: aliases are not allowed"),
        ("- a\n- b\n", "a mapping of settings is expected"),
        ("a: [\n", ":2: "),
        ("? [1, 2]\n: 3\n", ""),
        ("gate: 7\n", ":1: gate: a mapping of settings is expected"),
        (
            "redact: !!python/object/apply:os.system ['true']\n",
            ":1: could not determine a constructor",
        ),
    ],
)
def test_names_the_mistake_and_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(str(file), {})
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("keep_runs", 0, "--keep-runs: Input should be greater than or equal to 1"),
        ("kafka_version", "abc", "--kafka-version: no version of Kafka; write it as 3.9.1"),
        ("run_id", "../x", "--run-id: letters, digits,"),
    ],
)
def test_an_option_is_named_and_no_line_of_the_file_that_it_replaces(
    name: str, value: object, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        load(str(BUNDLED), {name: value})
    assert str(error.value).startswith(message)


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(str(tmp_path / "none.yaml"), {})
    large = tmp_path / "large.yaml"
    large.write_text("# " + "x" * (1 << 20))
    with pytest.raises(ConfigError, match="larger than"):
        load(str(large), {})
    deep = tmp_path / "deep.yaml"
    deep.write_text("[" * 20_000)
    with pytest.raises(ConfigError):
        load(str(deep), {})


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load(str(tmp_path / "empty.yaml"), {}) == Config()


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:00.250+01:00", 250),
        ("1969-12-31T23:59:59Z", -1000),
    ],
)
def test_reads_times(text: str, milliseconds: int) -> None:
    assert parse_time(text) == milliseconds


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", "x\n", "a" * 81])
def test_a_run_id_names_a_folder_and_nothing_else(run_id: str) -> None:
    with pytest.raises(ConfigError):
        load(None, {"run_id": run_id})


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({"inputs": ("elsewhere",)}, True),
        ({"output": "elsewhere", "run_id": "a", "keep_runs": 7, "now_ms": 5}, True),
        ({"clock_skew_ms": 7}, False),
        ({"as_of_ms": 7}, False),
        ({"gate.severity": "minor"}, False),
        ({"selection.topics": "a*"}, False),
    ],
)
def test_the_fingerprint_is_of_what_influences_results(
    changed: dict[str, Any], is_same: bool
) -> None:
    assert (load(None, changed).fingerprint() == Config().fingerprint()) is is_same


def test_the_bundled_file_holds_all_settings_but_those_of_one_run() -> None:
    """README names these five."""
    held = set(yaml.safe_load(BUNDLED.read_text(encoding="utf-8")))
    assert set(Config.model_fields) - held == {"inputs", "output", "run_id", "now_ms", "stage"}
