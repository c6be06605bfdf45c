"""Times scan and whole audit against kafka-dump-log: `python -m benchmarks.run CLUSTER`.

CLUSTER comes from `benchmarks.generate` (any copied log directories will do). Everything runs on
the same files in the same session; the ratios count, not the seconds. The machine should have
nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import peer

REPOSITORY = Path(__file__).resolve().parent.parent


def logs(cluster: Path) -> list[Path]:
    """Return all segments below a folder in a stable order."""
    return sorted(cluster.glob("**/*.log"))


def scan(files: list[Path]) -> dict[str, float]:
    """Scan files in this process on one core: read, verify every CRC, decode the headers."""
    from pipeline.wire.limits import Limits
    from pipeline.wire.scan import Chunk
    from pipeline.wire.scan import scan as scan_file

    batches, started = 0, time.monotonic()
    for file in files:
        with file.open("rb") as source:

            def read_at(position: int, length: int) -> bytes:
                source.seek(position)
                return source.read(length)

            for item in scan_file(read_at, file.stat().st_size, limits=Limits()):
                if isinstance(item, Chunk):
                    batches += len(item.arrays.position)
    seconds = time.monotonic() - started
    size = sum(file.stat().st_size for file in files)
    return {
        "seconds": seconds, "batches": batches, "batches_per_second": batches / seconds,
        "bytes_per_second": size / seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def audit(cluster: Path, options: list[str]) -> dict[str, float]:
    """Run the whole audit into a temporary folder, start of Spark included.

    Raises:
        RuntimeError: the audit ended with another exit code than 0 or 1.
    """
    with tempfile.TemporaryDirectory() as output:
        command = ["./spark-submit.sh", *options, "--input", str(cluster), "--output", output]
        started = time.monotonic()
        run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - started
        if run.returncode not in (0, 1):
            raise RuntimeError(f"exit code {run.returncode}: {run.stderr[-2000:]}")
        found = findings(Path(output))
    return {"seconds": seconds, "exit": run.returncode, "findings": found}


def findings(output: Path) -> int:
    """How many findings the only run below an output told as new or open."""
    (path,) = output.glob("runs/*/summary.json")
    counts = json.loads(path.read_text())["counts"]["by_severity"]
    return sum(counts.values())


def _ratio(ours: float, theirs: float) -> str:
    return (
        f"{ours:7.2f} s   peer {theirs:7.2f} s   ours/peer {ours / theirs:5.2f}   "
        f"peer/ours {theirs / ours:5.2f}"
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cluster", type=Path)
    parser.add_argument("--tenth", type=Path, help="the same at a tenth: gives the marginal cost")
    parser.add_argument("--peer-folder", type=Path, default=Path.home() / ".cache" / "kafka-peer")
    parser.add_argument("--only", choices=["peer", "scan", "audit"], action="append")
    parser.add_argument("--option", action="append", default=[], help="passed to spark-submit.sh")
    args = parser.parse_args()
    wanted = set(args.only or ["peer", "scan", "audit"])
    files = logs(args.cluster)
    if not files:
        parser.error(f"no segments below {args.cluster}")
    result: dict[str, object] = {"files": len(files), "bytes": sum(f.stat().st_size for f in files)}
    printed = headers = 0.0
    if wanted & {"peer"}:
        jars = peer.jars(args.peer_folder)
        headers = sum(peer.print_files(jars, files, headers_only=True).values())
        printed = sum(peer.print_files(jars, files).values())
        result["peer"] = {"headers_seconds": headers, "printed_seconds": printed}
        print(f"peer     headers {headers:.2f} s, with decoded coordinator records {printed:.2f} s")
    if "scan" in wanted:
        figures = scan(files)
        result["scan"] = figures
        print(f"scan     {figures['batches_per_second'] / 1e6:.2f} M batches/s,"
              f" {figures['bytes_per_second'] / 1e6:.0f} MB/s")  # fmt: skip
        if headers:
            print("scan    ", _ratio(figures["seconds"], headers))
    if "audit" in wanted:
        whole = audit(args.cluster, args.option)
        result["audit"] = whole
        print(f"audit    {whole}")
        if printed:
            print("audit   ", _ratio(whole["seconds"], printed))
        if args.tenth:
            marginal = whole["seconds"] - audit(args.tenth, args.option)["seconds"]
            result["marginal_seconds"] = marginal
            print("marginal", _ratio(marginal, printed or marginal))
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
