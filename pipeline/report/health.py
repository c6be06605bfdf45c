"""Exactly-once health: what the logs can answer of the questions that operators ask, and what they cannot."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np

from pipeline.config import Config
from pipeline.report.causes import CURRENT, Finding
from pipeline.report.facts import Columns, Facts, Row
from pipeline.report.words import duration
from pipeline.text import counted
from schemas.codes import OFFSETS_TOPIC, TWO_PHASE_TIMEOUT_MS, TXN_TOPIC

State = Literal["good", "look", "unknown"]
FENCES = 3
"""Fences of one transactional id from which on two instances probably run under it."""
ONCE_ONLY = 0.9
"""Share of ids that had a single transaction, from which on they look as if made anew for each."""
MANY_IDS = 100
_TWO = ("after_fence", "epoch_regressed")
"""Classes of `zombie_write` that show two instances of one id; the third is about two coordinators."""


class Answer(NamedTuple):
    """One line of the checklist.

    Attributes:
        question: What is asked.
        state: good, look (somebody should) or unknown.
        words: The answer with its figures.
    """

    question: str
    state: State
    words: str


CANNOT_SEE = (
    "the producers' settings (acks, enable.idempotence, retries) and whether applications handle aborts",
    "the consumers' isolation.level and what they did with the records",
    "records that a client never sent, or sent twice as two records",
    "min.insync.replicas, replication factors and other settings of topics",
)


def health(facts: Facts, findings: list[Finding], config: Config) -> list[Answer]:
    """The checklist of a run."""
    txn = facts.transactions
    kinds = facts.records_by_kind()
    current = [one for one in findings if one["status"] in CURRENT]
    return [
        _version(txn),
        _timeouts(txn, config),
        _fences(txn, current),
        _reuse(txn),
        _exposure(facts.runs),
        _replication(facts.replicas),
        _plain_records(kinds),
    ]


def _version(txn: Columns) -> Answer:
    question = "Is transaction.version 2 in use (KIP-890)?"
    numbers, counts = np.unique(txn["transaction_version"], return_counts=True)
    versions = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    if not versions:
        return Answer(question, "unknown", "No transaction was read.")
    said = ", ".join(f"{versions[one]:,} with version {one}" for one in sorted(versions))
    if set(versions) == {2}:
        return Answer(
            question,
            "good",
            f"All {sum(versions.values()):,} transactions: late writes are refused.",
        )
    return Answer(
        question,
        "look",
        f"{said}. Below version 2 (brokers and clients 4.0) a late write can join the next transaction.",
    )


def _timeouts(txn: Columns, config: Config) -> Answer:
    question = "Are transaction timeouts below the brokers' maximum?"
    timeouts = txn["txn_timeout_ms"]
    plain = timeouts[(timeouts > 0) & (timeouts != TWO_PHASE_TIMEOUT_MS)]
    if not len(plain):
        return Answer(question, "unknown", "No transaction with a timeout was read.")
    highest, limit = int(plain.max()), config.transaction_max_timeout_ms
    said = (
        f"Longest {duration(highest)}, maximum {duration(limit)} (transaction_max_timeout_ms in the settings). "
        "A crashed producer may hold read_committed consumers for the longest of them."
    )
    return Answer(question, "look" if highest > limit else "good", said)


def _fences(txn: Columns, current: list[Finding]) -> Answer:
    question = "Does each application run once per transactional id?"
    if not len(txn["cause"]):
        return Answer(question, "unknown", "No transaction was read.")
    fenced = txn.counts("transactional_id", txn.is_any("cause", "fence"))
    storm = next((one for one in current if one["code"] == "fencing_storm"), None)
    if storm is not None:
        return Answer(question, "look", f"{storm['title']}: two instances may share it.")
    zombie = next(
        (one for one in current if one["code"] == "zombie_write" and one["class"] in _TWO), None
    )
    if zombie is not None:
        return Answer(
            question, "look", f"{zombie['title']}: an older instance of the id was still running."
        )
    worst, ended = max(fenced.values(), default=0), sum(fenced.values())
    if worst >= FENCES:
        name = max(fenced, key=lambda one: (fenced[one], one))
        return Answer(
            question, "look", f"{name} was fenced {fenced[name]} times: two instances may share it."
        )
    return Answer(
        question,
        "good",
        f"{counted(ended, 'transaction')} ended by a fence, at most {worst} an id."
        if ended
        else "No transaction was ended by a fence.",
    )


def _reuse(txn: Columns) -> Answer:
    question = "Are transactional ids reused after a restart?"
    by_id = txn.counts("transactional_id")
    if not by_id:
        return Answer(question, "unknown", "No transaction was read.")
    once = sum(count == 1 for count in by_id.values())
    said = f"{once:,} of {counted(len(by_id), 'id')} had a single transaction in the history that is retained."
    if len(by_id) >= MANY_IDS and once / len(by_id) >= ONCE_ONLY:
        return Answer(
            question, "look", said + " Ids made anew protect from nothing and fill the coordinator."
        )
    return Answer(question, "good", said)


def _exposure(runs: Columns) -> Answer:
    question = "Do consumers need isolation.level=read_committed?"
    # Nobody but the group coordinator reads the internal topics.
    is_data = (runs["is_transactional"] == 1) & ~runs.is_any("topic", TXN_TOPIC, OFFSETS_TOPIC)
    aborted = (runs["marker_type"] == 0) & is_data
    count = int(runs["record_count"][aborted].sum())
    places = len(np.unique(runs["topic"][aborted] * 2**32 + runs["partition"][aborted]))
    if not is_data.any():
        return Answer(question, "unknown", "No transactional data of a user topic was read.")
    if not count:
        return Answer(question, "good", "No aborted record is retained.")
    said = f"{counted(count, 'aborted record')} in {counted(places, 'partition')}: "
    said += "consumers with read_uncommitted see them."
    return Answer(question, "look", said)


def _replication(replicas: list[Row]) -> Answer:
    question = "Are the internal topics replicated?"
    brokers = {one["broker_id"] for one in replicas if one["broker_id"] is not None}
    held = Counter(
        (one["topic"], one["partition"])
        for one in replicas
        if one["topic"] in (TXN_TOPIC, OFFSETS_TOPIC)
    )
    if not held:
        return Answer(question, "unknown", "No partition of an internal topic was read.")
    if len(brokers) < 2:
        return Answer(question, "unknown", "Logs of a single broker were copied: nobody can tell.")
    single = sorted(f"{topic}-{number}" for (topic, number), count in held.items() if count == 1)
    if single:
        return Answer(
            question,
            "look",
            f"{counted(len(single), 'partition')} on one copied broker only, first {single[0]}.",
        )
    return Answer(
        question,
        "good",
        f"Every partition is on at least {min(held.values())} of {len(brokers)} brokers.",
    )


def _plain_records(kinds: Counter[str]) -> Answer:
    question = "Do all producers write with an id?"
    total = sum(kinds.values())
    if not total:
        return Answer(question, "unknown", "No record of a user topic was read.")
    said = ", ".join(
        f"{kinds[name]:,} {name}"
        for name in ("transactional", "idempotent", "plain")
        if kinds[name]
    )
    if kinds["plain"]:
        return Answer(
            question,
            "look",
            f"{said} records. Nothing can be told about duplicates among plain ones.",
        )
    return Answer(question, "good", f"{said} records.")
