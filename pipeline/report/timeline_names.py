"""Which producer ids and transactional ids a finding is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipeline.report.causes import Finding
from pipeline.report.facts import Row


class Names:
    """Who holds, or held, which producer id.

    Args:
        owners: Rows of `silver.owner`.
    """

    def __init__(self, owners: Iterable[Row]) -> None:
        self._owners: dict[int, set[str]] = defaultdict(set)
        self._ids: dict[str, set[int]] = defaultdict(set)
        for one in owners:
            self._owners[one["producer_id"]].add(one["transactional_id"])
            self._ids[one["transactional_id"]].add(one["producer_id"])

    def producers(self, finding: Finding) -> list[int]:
        """Producer ids that a finding is about: its own, else all of its transactional id."""
        if finding["producer_id"] is not None:
            return [finding["producer_id"]]
        return sorted(self._ids.get(finding["transactional_id"], ()))

    def ids(self, finding: Finding) -> list[str]:
        """Transactional ids that a finding is about: its own, else those that held its producer id."""
        if finding["transactional_id"] is not None:
            return [finding["transactional_id"]]
        return sorted(self._owners.get(finding["producer_id"], ()))
