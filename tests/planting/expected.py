"""What a planted fault says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Planted:
    """What an audit of the planted copy has to say.

    `must`: a finding with these fields (a list means any of); `may`: what may come along,
    because one fault in the files can break several promises.
    """

    must: dict[str, object]
    may: list[dict[str, object]] = field(default_factory=list)


def planted(code: str, name: str | list[str], *may: str, **fields: object) -> Planted:
    """Return an expectation; each of `may` is `code` or `code/class`."""
    also: list[dict[str, object]] = [{"code": "lso_pinned"}, {"code": "slow_transaction"}]
    for text in may:
        other, _, kind = text.partition("/")
        also.append({"code": other, "class": kind} if kind else {"code": other})
    return Planted({"code": code, "class": name, **fields}, also)
