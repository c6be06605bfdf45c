"""Figure 18 of `docs/reliability.md`: a gate that never fails open.

A run in order answers 0. Each of the faults below, in the tables, in the files, in the policy, in Great Expectations or
in the process itself, answers something else, and the summary never says `passed`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobs import __main__ as process
from pipeline import publish, rejudge
from pipeline.gate import checkpoint, frames
from pipeline.spark import session, tables
from tests import stored_output
from tests.stored_output import RUN_ID, Row, Tables, finding

NOW = "2026-11-26T03:00:00Z"


class World(NamedTuple):
    """What a fault may change before the gate runs."""

    root: Path
    rows: Tables
    about: Row
    arguments: list[str]
    patch: pytest.MonkeyPatch


Fault = Callable[[World], Any]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A run in order; what would be written back with Spark is not."""
    monkeypatch.setattr(session, "build", lambda **_: None)
    monkeypatch.setattr(tables, "local", lambda *_: None)
    monkeypatch.setattr(tables, "replace", lambda *_, **__: None)
    monkeypatch.setattr(tables, "replace_rows", lambda *_, **__: None, raising=False)
    arguments = ["gate", "--output", str(tmp_path / "out"), "--now", NOW, "--format", "json"]
    root = tmp_path / "out"
    return World(root, stored_output.tables(), stored_output.summary(), arguments, monkeypatch)


def _answer(world: World, *, written: bool = True) -> int:
    if written:
        stored_output.write(world.root, world.rows, world.about)
    world.patch.setattr(sys, "argv", ["jobs", *world.arguments])
    return process.main()


def test_a_run_in_order_answers_0(world: World) -> None:
    assert _answer(world) == 0
    summary = json.loads((world.root / "runs" / RUN_ID / "summary.json").read_text())
    assert summary["verdict"] == "passed"


def _with_findings(*found: Row) -> Fault:
    return lambda world: world.rows["finding"].extend(found)


def _with_settings(text: str, *, suppressions: str | None = None) -> Fault:
    def fault(world: World) -> None:
        folder = world.root.parent
        (folder / "own.yaml").write_text(text)
        world.arguments.extend(["--conf", str(folder / "own.yaml")])
        if suppressions is not None:
            (folder / "suppressions.yaml").write_text(suppressions)

    return fault


def _suppression(**changed: str) -> str:
    fields = {
        "code": "hanging_transaction",
        "scope": '{topic: "orders"}',
        "reason": "known",
        "owner": "payments",
        "expires": "2027-01-31",
    } | changed
    return "suppressions:\n  - " + "\n    ".join(f"{key}: {value}" for key, value in fields.items())


def _suppressed(*found: Row, **changed: str) -> Fault:
    def fault(world: World) -> None:
        world.rows["finding"].extend(found)
        _with_settings("suppressions: suppressions.yaml\n", suppressions=_suppression(**changed))(
            world
        )

    return fault


def _raises(place: Any, name: str, error: BaseException) -> Fault:
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    return lambda world: world.patch.setattr(place, name, broken)


def _on_disk(pattern: str, spoil: Callable[[Path], Any]) -> Fault:
    """Spoils files after they were written."""

    def fault(world: World) -> None:
        stored_output.write(world.root, world.rows, world.about)
        for file in sorted(world.root.glob(pattern)):
            spoil(file)
        world.arguments.append("written")

    return fault


def _half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _about(**changed: Any) -> Fault:
    return lambda world: world.about.update(changed)


def _unmeasured(world: World) -> None:
    plain = frames.offsets_of

    def without(*given: Any) -> Any:
        frame = plain(*given).astype({"untold": "float"})
        frame.loc[0, "untold"] = float("nan")
        return frame

    world.patch.setattr(frames, "offsets_of", without)


def _no_expectation(world: World) -> None:
    world.patch.setattr(checkpoint, "suites", lambda gate: ())


def _no_result(world: World) -> None:
    class Empty:
        def validate(self, *_: Any, **__: Any) -> Any:
            return self

        def to_json_dict(self) -> dict[str, Any]:
            return {"success": None, "result": {}}

    world.patch.setattr(checkpoint._Runner, "batch", lambda *_: Empty())


def _batches(world: World) -> list[Row]:
    return [row for row in world.rows["entry"] if row["kind"] == "batch"]


_PARQUET = "gold/finding/*/*.parquet"
FAULTS: dict[str, Fault] = {
    # findings and policy
    "a new critical finding": _with_findings(finding()),
    "an open one": _with_findings(finding(status="open")),
    "one behind a suppression of another topic": _suppressed(finding(topic="other")),
    "one behind a suppression that is past its day": _suppressed(finding(), expires="2026-11-25"),
    "one whose suppression is gone": _with_findings(finding(status="suppressed")),
    "one above a stricter rule only": lambda world: (
        _with_findings(finding(severity="minor", certainty="suspicion"))(world),
        _with_settings(
            "gate: {rules: [{code: 'hanging_*', severity: minor, certainty: suspicion}]}\n"
        )(world),
    ),
    "a required detector that had no input": lambda world: (
        world.about["detectors"].update(offset_race="not attempted: needs x"),
        _with_settings("gate: {require: [offset_race]}\n")(world),
    ),
    "a required detector that does not exist": _with_settings("gate: {require: [no_such]}\n"),
    "an unknown setting": _with_settings("gate: {severty: major}\n"),
    "a suppression without a reason": _suppressed(reason='""'),
    "a suppression of everything": _suppressed(scope="{}"),
    "a suppression that never expires": _suppressed(expires="never"),
    "a suppression of an unknown detector": _suppressed(code="no_such"),
    "suppressions that are not there": _with_settings("suppressions: absent.yaml\n"),
    "a copy that is too old": _with_settings("gate: {max_copy_age_ms: 1000}\n"),
    "a copy of no known age": lambda world: (
        world.about["coverage"].update(last_broker_ms=None),
        _with_settings("gate: {max_copy_age_ms: 1000}\n")(world),
    ),
    # coverage
    "something that could not be judged": _about(could_not_judge=["orders-7 is absent"]),
    "no Kafka files": _about(could_not_judge=["no Kafka log files were found"]),
    # tables
    "a batch is lost": lambda world: world.rows["entry"].remove(_batches(world)[0]),
    "a null in a key": lambda world: _batches(world)[0].update(position=None),
    "bytes of nobody": lambda world: world.rows["segment"][0].update(size_bytes=201),
    "an unknown status": _with_findings(finding(status="ignored")),
    # files
    "no output": lambda world: world.arguments.append("written"),
    "no run of that name": lambda world: world.arguments.extend(["--run-id", "absent"]),
    "a file is gone": _on_disk("silver/coordinator/*/*.parquet", Path.unlink),
    "a file is cut": _on_disk("bronze/entry/*/*/*.parquet", _half),
    "a file of findings is gone": lambda world: (
        _with_findings(finding())(world),
        _on_disk(_PARQUET, Path.unlink)(world),
    ),
    "a table's log is no JSON": _on_disk(
        "silver/*/_delta_log/*.json", lambda file: file.write_text("{")
    ),
    "a table's log is gone": _on_disk("bronze/entry/_delta_log/*.json", Path.unlink),
    "the log of an old run is gone": _on_disk(
        "silver/replica/_delta_log/*.json",
        lambda file: file.rename(file.with_name("00000000000000000009.json")).write_text("{}"),
    ),
    "a summary that is no JSON": lambda world: world.patch.setattr(
        stored_output.json, "dumps", lambda *_, **__: "{"
    ),
    # Great Expectations
    "no context": _raises(checkpoint.gx, "get_context", RuntimeError("no context")),
    "a frame that crashes": _raises(frames, "keys", KeyError("doubles")),
    "counts that crash": _raises(checkpoint, "profile", MemoryError()),
    "a value that was not measured": _unmeasured,
    "a result without success": _no_result,
    "no expectation at all": _no_expectation,
    # the process
    "junit.xml cannot be written": _raises(
        publish, "junit", OSError(28, "No space left on device")
    ),
    "the page cannot be written": _raises(publish, "page_files", OSError(28, "No space left")),
    "summary.json cannot be written": _raises(publish, "write_json", OSError(30, "Read-only")),
    "a library ends the process with 0": _raises(rejudge, "conclude", SystemExit(0)),
    "somebody interrupts": _raises(checkpoint, "judge", KeyboardInterrupt()),
    "recursion": _raises(checkpoint, "judge", RecursionError()),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_never_answers_0(world: World, name: str) -> None:
    FAULTS[name](world)
    written = "written" not in world.arguments
    world.arguments[:] = [one for one in world.arguments if one != "written"]
    assert _answer(world, written=written) in (1, 2, 3, 4)
    summary = world.root / "runs" / RUN_ID / "summary.json"
    if summary.exists():
        assert json.loads(summary.read_text())["verdict"] != "passed"


def test_there_are_at_least_thirty() -> None:
    assert len(FAULTS) >= 30
