"""The one exception that undecodable bytes raise."""

from __future__ import annotations


class WireError(ValueError):
    """Bytes that are not what their format says.

    Attributes:
        reason: one of `batch.REASONS`.
    """

    def __init__(self, message: str, reason: str = "bad_record") -> None:
        super().__init__(message)
        self.reason = reason
