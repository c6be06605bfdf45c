"""Writes a consistent cluster of any size: `python -m benchmarks.generate OUT --scale 0.1`.

At scale 1: 2 million batches in 8 data partitions (1.6 million of one record each, 0.4 million
markers) and 0.8 million coordinator records in 4 partitions of `__transaction_state`, one broker,
cleanly stopped, with every sidecar and checkpoint file. Legal by Kafka's rules unless `--plant`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks import encode, plan, plant
from tests import log_layout

COORDINATOR_TOPIC = "__transaction_state"


def write_cluster(root: Path, size: plan.Size, *, seed: int, faults: int = 0) -> dict[str, object]:
    """Write the broker's log directory under `root`.

    Args:
        root: a folder that does not hold a cluster yet.
        size: how large.
        seed: the same seed gives the same bytes.
        faults: how many faults to plant; what they are goes to `planted.json` beside the broker.

    Returns:
        Counts of what was written.
    """
    rng = np.random.default_rng(seed)
    txns = plan.plan_transactions(size, rng)
    log_dir = log_layout.LogDir(root, 1, "benchmark")
    events = {
        (topic, partition): plan.plan_partition(txns, column, partition, size, rng)
        for column, topic in enumerate(plan.TOPICS)
        for partition in range(size.data_partitions // len(plan.TOPICS))
    }
    if faults:
        planted = plant.plant(events, txns, faults, rng)
        (root / "planted.json").write_text(json.dumps(planted, indent=1))
    counts = {"data_partition_batches": 0, "coordinator_batches": 0, "bytes": 0}
    for (topic, partition), rows in events.items():
        log, positions = encode.data_log(rows, size.value_bytes, rng)
        files = {"snapshot": encode.producer_snapshot(rows), "txnindex": encode.aborted_index(rows)}
        write_partition(log_dir, topic, partition, log, positions, rows.time_ms, files)
        counts["data_partition_batches"] += len(positions)
        counts["bytes"] += len(log)
    owners = np.arange(size.ids)
    home = np.array(
        [plan.coordinator_partition(plan.transactional_id(owner), size.coordinator_partitions)
         for owner in owners.tolist()]
    )  # fmt: skip
    for partition in range(size.coordinator_partitions):
        log, positions, times = encode.coordinator_log(txns, owners[home == partition], size)
        files = {"snapshot": log_layout.snapshot([])}
        write_partition(log_dir, COORDINATOR_TOPIC, partition, log, positions, times, files)
        counts["coordinator_batches"] += len(positions)
        counts["bytes"] += len(log)
    log_dir.finish()
    return {**counts, "seed": seed, "size": vars(size), "faults": faults}


def write_partition(
    log_dir: log_layout.LogDir,
    topic: str,
    partition: int,
    log: bytes,
    positions: encode.NDArray[np.int64],
    times: encode.NDArray[np.int64],
    files: dict[str, bytes],
) -> None:
    """Write one partition as one segment from offset 0 with its sidecars.

    Args:
        positions: of each batch in `log`; batch n has offset n.
        times: CreateTime of each batch, ms.
        files: suffix -> bytes; the snapshot is the one of the log end.
    """
    path = log_dir.partition(topic, partition)
    (path / log_layout.segment_name(0)).write_bytes(log)
    index, time_index = encode.indexes(positions, times)
    log_dir.sidecar(topic, partition, 0, "index", index)
    log_dir.sidecar(topic, partition, 0, "timeindex", time_index)
    for suffix, data in files.items():
        if suffix == "snapshot":
            log_dir.sidecar(topic, partition, len(positions), suffix, data)
        elif data:
            log_dir.sidecar(topic, partition, 0, suffix, data)
    (path / "leader-epoch-checkpoint").write_bytes(
        log_layout.leader_epoch_checkpoint([(0, 0)] if len(positions) else [])
    )
    log_dir.log_ends[topic, partition] = len(positions)


def main() -> None:
    """Run from the command line."""
    default = plan.Size()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="an empty or missing folder")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of transactions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", type=int, default=0, help="how many faults")
    parser.add_argument("--style", choices=["tv0", "tv2", "mixed"], default=default.style)
    parser.add_argument("--ids", type=int, default=default.ids)
    parser.add_argument("--data-partitions", type=int, default=default.data_partitions)
    parser.add_argument("--coordinator-partitions", type=int,
                        default=default.coordinator_partitions)  # fmt: skip
    parser.add_argument("--batches-per-transaction", type=int,
                        default=default.batches_per_transaction)  # fmt: skip
    parser.add_argument("--value-bytes", type=int, default=default.value_bytes)
    args = parser.parse_args()
    if args.output.exists() and any(args.output.iterdir()):
        parser.error(f"{args.output} is not empty")
    size = plan.Size(
        transactions=max(1, round(default.transactions * args.scale)), ids=args.ids,
        batches_per_transaction=args.batches_per_transaction, style=args.style,
        data_partitions=args.data_partitions, coordinator_partitions=args.coordinator_partitions,
        value_bytes=args.value_bytes,
    )  # fmt: skip
    started = time.monotonic()
    counts = write_cluster(args.output, size, seed=args.seed, faults=args.plant)
    print(json.dumps({**counts, "seconds": round(time.monotonic() - started, 1)}))


if __name__ == "__main__":
    main()
