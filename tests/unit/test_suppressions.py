"""Suppressions and thresholds: what they take, what is reported, what is a mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config import Config, load
from pipeline.config_sections import Gate, Rule
from pipeline.errors import ConfigError
from pipeline.gate.policy import is_failing, suppress
from pipeline.suppressions import Scope, Suppression
from pipeline.suppressions import load as load_suppressions
from tests.stored_output import finding

DAY = 86_400_000
NOW = 20_800 * DAY
CODES = ("hanging_transaction", "zombie_write")


def _one(
    scope: dict[str, Any] | None = None, *, code: str = "hanging_transaction", days: int = 1
) -> Suppression:
    return Suppression.model_construct(
        code=code, scope=Scope.model_validate(scope or {"topic": "*"}), reason="r", owner="o",
        expires_ms=NOW + days * DAY, line=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "fits"),
    [
        ({"topic": "ord*"}, True),
        ({"topic": "Ord*"}, False),
        ({"class": "orphan_producer"}, True),
        ({"class": "past_deadline"}, False),
        ({"topic": "orders", "partition": 0}, True),
        ({"topic": "orders", "partition": 1}, False),
        ({"transactional_id": "payments-?"}, True),
        ({"transactional_id": "refunds-*"}, False),
        ({"group_id": "g*"}, False),
        ({"producer_id": 7}, True),
        ({"producer_id": 8}, False),
        ({"finding_id": finding()["finding_id"][:12]}, True),
        ({"finding_id": "0" * 12}, False),
    ],
)
def test_everything_in_the_scope_has_to_fit(scope: dict[str, Any], fits: bool) -> None:
    found, said = suppress([finding()], [_one(scope)], NOW)
    assert (found[0]["status"] == "suppressed") is fits
    assert said[0]["state"] == ("used" if fits else "unused")


def test_another_detector_is_not_taken() -> None:
    found, _ = suppress([finding(code="zombie_write")], [_one()], NOW)
    assert found[0]["status"] == "new"


def test_the_first_that_holds_takes_it_and_the_others_are_shadowed() -> None:
    given = [_one(days=-1), _one(), _one({"topic": "orders"}), _one({"topic": "x"})]
    found, said = suppress([finding(), finding(first_offset=9)], given, NOW)
    assert [one["status"] for one in found] == ["suppressed", "suppressed"]
    assert [one["state"] for one in said] == ["expired", "used", "shadowed", "unused"]
    assert [one["count"] for one in said] == [0, 2, 0, 0]


@pytest.mark.parametrize("status", ["resolved", "not_seen"])
def test_what_is_over_is_not_taken(status: str) -> None:
    found, said = suppress([finding(status=status)], [_one()], NOW)
    assert found[0]["status"] == status
    assert said[0]["state"] == "unused"


def test_it_holds_to_the_end_of_its_day_and_never_without_a_clock() -> None:
    last = _one(days=0)
    assert suppress([finding()], [last], NOW - 1)[0][0]["status"] == "suppressed"
    assert suppress([finding()], [last], NOW)[0][0]["status"] == "new"
    assert suppress([finding()], [last], None)[0][0]["status"] == "new"


_GOOD = """\
suppressions:
  - code: zombie_write
    scope: {class: tv1_window, topic: "audit-*"}
    reason: known since the upgrade
    owner: payments
    expires: 2027-01-31
"""


def test_a_file_is_read_with_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(_GOOD)
    (one,) = load_suppressions(str(file), CODES)
    assert (one.code, one.line, one.scope.class_) == ("zombie_write", 2, "tv1_window")
    assert suppress([], [one], NOW)[1][0]["expires"] == "2027-01-31"


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("", "    reason: known since the upgrade\n", ":2: reason: "),
        ("    reason: ' '\n", "    reason: known since the upgrade\n", ":4: reason: "),
        ("", "    expires: 2027-01-31\n", ":2: expires: "),
        ("    expires: soon\n", "    expires: 2027-01-31\n", ":6: expires: not a date"),
        ("    expires: 20270131\n", "    expires: 2027-01-31\n", ":6: expires: a date is expected"),
        ("", "    owner: payments\n", ":2: owner: "),
        ("{}", '{class: tv1_window, topic: "audit-*"}', ":3: scope: an empty scope"),
        ("{topik: a}", '{class: tv1_window, topic: "audit-*"}', "unknown setting scope.topik (did you mean 'topic'?)"),
        ("{finding_id: abc}", '{class: tv1_window, topic: "audit-*"}', ":3: scope.finding_id: "),
        ("code: zombi_write", "code: zombie_write", ":2: no detector 'zombi_write' (did you mean 'zombie_write'?)"),
        ("suppression:", "suppressions:", ":1: unknown setting suppression"),
        ("    line: 4\n", "    owner: payments\n", "unknown setting line"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(
    tmp_path: Path, wrong: str, right: str, message: str
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(_GOOD.replace(right, wrong))
    with pytest.raises(ConfigError) as raised:
        load_suppressions(str(file), CODES)
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(file))
    assert "\n" not in str(raised.value)


def test_the_path_starts_at_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(_GOOD)
    settings = tmp_path / "audit.yaml"
    settings.write_text("suppressions: mine.yaml\n")
    config = load(str(settings), {}, CODES)
    assert len(config.suppressions) == 1
    assert config.fingerprint() != Config().fingerprint()
    assert load(str(settings), {"suppressions": str(tmp_path / "mine.yaml")}) == config
    settings.write_text("suppressions: [a]\n")
    with pytest.raises(ConfigError, match=r":1: suppressions: a file is expected"):
        load(str(settings), {})


@pytest.mark.parametrize(
    ("rules", "given", "fails"),
    [
        ([], {}, True),
        ([], {"severity": "minor"}, False),
        ([], {"certainty": "suspicion"}, False),
        ([], {"status": "resolved"}, False),
        ([], {"status": "suppressed"}, False),
        ([], {"status": "open"}, True),
        ([Rule(topic="ord*", severity="none")], {}, False),
        ([Rule(topic="other", severity="none")], {}, True),
        ([Rule(topic="*", severity="none")], {"topic": None}, True),
        ([Rule(code="hanging_*", certainty="suspicion")], {"certainty": "suspicion"}, True),
        ([Rule(severity="minor"), Rule(severity="none")], {"severity": "minor"}, True),
    ],
)
def test_thresholds(rules: list[Rule], given: dict[str, Any], fails: bool) -> None:
    assert is_failing(finding(**given), Gate(rules=tuple(rules))) is fails


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gate:\n  require: [zombie]\n", ":2: no detector 'zombie' (did you mean 'zombie_write'?)"),
        ("gate:\n  rules:\n    - {code: x*}\n", ":3: no detector 'x*'"),
        ("gate:\n  rules:\n    - {codes: x}\n", ":3: unknown setting gate.rules.0.codes"),
        ("gate:\n  rules:\n    - {severity: all}\n", ":3: gate.rules.0.severity"),
    ],
)
def test_a_gate_that_nobody_could_miss_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(str(file), {}, CODES)
    assert message in str(raised.value)
