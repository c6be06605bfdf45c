"""Whether two replicas without a topic id are of one topic, or one is left of a topic that was deleted and made anew.

Brokers before 2.8 write no `partition.metadata`. A broker that was down while the topic was deleted keeps its directory
(Kafka: `ReplicaManager.stopReplicas`; KIP-516), and a new topic of that name has the same offsets with other bytes.
"""

from __future__ import annotations

from typing import NamedTuple


class Lineage(NamedTuple):
    """Where a replica's retained log begins and which leaders wrote it; epochs are -1 before Kafka 0.11.

    Attributes:
        first_offset: its first batch's.
        first_epoch: least leader epoch.
        last_epoch: greatest.
        first_ms: least time of a batch, by whatever clock stamped it; None without one.
    """

    first_offset: int
    first_epoch: int
    last_epoch: int
    first_ms: int | None


def may_be_of_two_topics(one: Lineage, other: Lineage, *, has_shared: bool) -> bool:
    """Nothing shows that two replicas that differ ever were the same.

    A batch that both hold shows it. So does a log that begins at offset 0 with leaders behind all of the other's:
    leader epochs of a new topic begin at 0, those of one that an emptied replica led after an unclean election go on,
    and so does time.

    Args:
        one: A replica.
        other: The other one.
        has_shared: A batch of both has the same offset, CRC and leader epoch.
    """
    older, newer = sorted((one, other), key=lambda lineage: lineage.last_epoch)
    is_later = newer.first_ms is None or older.first_ms is None or newer.first_ms >= older.first_ms
    goes_on = newer.first_offset == 0 and newer.first_epoch > older.last_epoch and is_later
    return not has_shared and not goes_on
