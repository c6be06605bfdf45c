"""Which application a transactional id belongs to.

Frameworks make ids by rule. Kafka Streams: `<application.id>-<task>` under exactly_once (v1; Kafka: `StreamsProducer`),
`<application.id>-<process uuid>-<thread>` under exactly_once_v2. Kafka Connect: `connect-cluster-<group.id>` of a
worker, `<group.id>-<connector>-<task>` of a source task (KIP-618); the latter looks like any other id with a number.
Flink: `<prefix>-<subtask>-<checkpoint>` (KafkaSink), `<task>-<32 hex digits>-<number>` (FlinkKafkaProducer).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_RULES = (
    ("Kafka Streams v2", re.compile(rf"(?P<application>.+)-{_UUID}-\d+")),
    ("Kafka Streams v1", re.compile(r"(?P<application>.+?)-(?:\w+__)?\d+_\d+")),
    ("Connect worker", re.compile(r"connect-cluster-(?P<application>.+)")),
    ("Flink", re.compile(r"(?P<application>.+)-[0-9a-f]{32}-\d+")),
    ("Flink", re.compile(r"(?P<application>.+)-\d+-\d+")),
    ("", re.compile(rf"(?P<application>.+?)[-_.]{_UUID}(?:[-_.]\d+)?")),
    ("", re.compile(r"(?P<application>.+?)[-_.]\d+")),
)


class Application(NamedTuple):
    """What an id tells.

    Attributes:
        name: The application; the whole id where nothing tells more.
        framework: Kafka Streams v1 or v2, Connect worker, Flink; empty where nothing tells.
    """

    name: str
    framework: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.framework})" if self.framework else self.name


@lru_cache(maxsize=65_536)
def application(transactional_id: str, pattern: str | None = None) -> Application:
    """Recognises the application.

    Args:
        transactional_id: The id.
        pattern: Regular expression of the configuration with a group `application`, tried first on the whole id.
    """
    if pattern is not None:
        found = re.fullmatch(pattern, transactional_id)
        if found is not None and found["application"]:
            return Application(found["application"])
    for framework, rule in _RULES:
        found = rule.fullmatch(transactional_id)
        if found is not None:
            return Application(found["application"], framework)
    return Application(transactional_id)


def told(transactional_id: str, pattern: str | None = None) -> str:
    """The application that an id tells, and its framework; empty where it tells none.

    Args:
        transactional_id: The id.
        pattern: As for `application`.
    """
    found = application(transactional_id, pattern)
    return "" if found.name == transactional_id else str(found)


def application_at(transactional_id: str, pattern: str | None) -> tuple[int, int, bool] | None:
    """Where the application stands in an id.

    Returns:
        Start, end, and whether the configured pattern found it; None where nothing tells an application.
    """
    if pattern is not None:
        found = re.fullmatch(pattern, transactional_id)
        if found is not None and found["application"]:
            return *found.span("application"), True
    for _, rule in _RULES:
        found = rule.fullmatch(transactional_id)
        if found is not None:
            return *found.span("application"), False
    return None
