"""How long a coordinator provably lived after an event, by the times of its own records.

Its clock may jump: NTP steps it, a virtual machine wakes up. What lies between two records then is not time
that passed. So of all stretches between an event and the newest record the longest one proves nothing, and the others
do: one jump, wherever it lies, adds nothing to them. A record that a later one contradicts by an earlier time bears a
clock that was ahead and was put back: it proves nothing at all.

Kafka looks for timed-out transactions every `transaction.abort.timed.out.transaction.cleanup.interval.ms` of time that
passed (`TransactionCoordinator.startup`), by the clock (`TransactionStateManager.timedOutTransactions`): behind a jump
beyond the deadline a transaction is open for up to that long, legally.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PULSE_MS = 1_000
"""One record of each such span is kept; so much shorter than it was a wait may look."""
PULSES = 1_000
"""So many are kept: over 16 minutes of a busy coordinator."""
STUCK_MS = 60_000
"""A coordinator whose clock went on so far beyond the last marker of a transaction has forgotten its Complete*."""
STUCK_LIFE_MS = 10_000
"""Of which so much has to have passed for certain; Complete* follows the last marker within milliseconds."""


class Alive(NamedTuple):
    """One epoch of a coordinator's partition.

    Attributes:
        newest_ms: time of its newest record.
        pulse: times of its last records, ascending, one for each `PULSE_MS`.
        is_put_back: its clock was set to an earlier time: what it stamped before compares with nothing.
    """

    newest_ms: int
    pulse: tuple[int, ...]
    is_put_back: bool = False


def alive(times: NDArray[np.int64]) -> Alive:
    """What the times of an epoch's records prove.

    Args:
        times: In ms, in the order of their offsets, at least one.
    """
    kept = times[_lasting(times)]
    is_put_back = bool(times.max() - times[-1] > PULSE_MS)
    return Alive(int(times[-1]), tuple(kept.tolist()), is_put_back)


def needed(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which records of a part of a log `alive` may need of the whole, ascending.

    Args:
        times: In ms, in the order of their offsets, at least one.
    """
    return np.asarray(np.union1d(_lasting(times), times.argmax()))


def _lasting(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last records that no later one contradicts, one for each `PULSE_MS`."""
    lasting = np.flatnonzero(times == np.minimum.accumulate(times[::-1])[::-1])
    seconds = times[lasting] // PULSE_MS
    is_newest = np.append(seconds[1:] != seconds[:-1], True)
    return np.asarray(lasting[is_newest][-PULSES:])


def known_until_ms(times: NDArray[np.int64], margin_ms: int) -> int | None:
    """Until when a file certainly goes, for rules that wait for a margin: one jump of its clock adds nothing.

    Args:
        times: Of its records, in ms, in the order of their offsets.
        margin_ms: So much time has to have passed behind an event.

    Returns:
        A time in ms; None where it proves nothing.
    """
    settled = settled_ms(alive(times), margin_ms) if len(times) else None
    return None if settled is None else settled + margin_ms


def waited_ms(one: Alive, since_ms: int, until_ms: int | None = None) -> int:
    """Time that passed for certain between an event and the newest record: all of it but the longest stretch.

    Args:
        one: The coordinator.
        since_ms: Time of the event, by its clock.
        until_ms: Records behind it do not count; None for all.
    """
    end = len(one.pulse) if until_ms is None else bisect_right(one.pulse, until_ms)
    seen = [since_ms, *one.pulse[bisect_right(one.pulse, since_ms) : end]]
    gaps = [later - earlier for earlier, later in pairwise(seen)]
    return sum(gaps) - max(gaps, default=0)


def settled_ms(one: Alive, patience_ms: int) -> int | None:
    """Newest time of an event after which more than so much time passed for certain; None without one."""
    longest = 0
    for number in range(len(one.pulse) - 1, -1, -1):
        at = one.pulse[number]
        behind = one.newest_ms - at
        if behind > patience_ms:
            before = max(patience_ms - behind + longest + 1, 0)
            if number == 0 or at - before > one.pulse[number - 1]:
                return at - before
        if number:
            longest = max(longest, at - one.pulse[number - 1])
    return None
