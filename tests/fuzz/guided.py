"""Coverage-guided inputs of every decoder: `make fuzz`, or with a count `make fuzz RUNS=1000000`.

atheris keeps what reaches new code and goes on from there. Each decoder runs in a process of its own, from the seeds
of `tests.fuzz.targets`; batches are tried with their checksum put right too. What crashes a decoder ends the
decoder's runs with its bytes; inputs that it kept stay in the folder of `AUDIT_CORPUS`, when that is given. No decoder
runs longer than `AUDIT_FUZZ_SECONDS`, when that is given. `python -m tests.fuzz.guided RUNS NAME ...` takes only some.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ONE = "--one"
PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
LIMITS = ("-timeout=20", "-rss_limit_mb=1024", "-max_len=4096", "-print_final_stats=1")
"""Seconds for one input, and memory of the whole process: a decoder that leaks reaches it."""
KEPT_BY_ATHERIS = ("segment", "batch in a segment")
RUNS_OF_A_PROCESS = 30_000
"""Of the two decoders that compare arrays of numpy: atheris 3.0.0 never frees what an instrumented comparison gives,
some 16 to 22 KiB a run there. Their next process goes on from the inputs that the last one kept."""


def fuzz(name: str, runs: int, most_s: int, corpus: Path) -> None:
    """Runs one decoder in this process, which ends with it; `most_s` of 0 is without end."""
    import atheris

    with atheris.instrument_imports(include=["pipeline.wire"]):
        from tests.fuzz.targets import make_targets
    from pipeline.wire.errors import WireError
    from tests import builders

    target = next(one for one in make_targets() if one.name == name)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)

    def once(data: bytes) -> None:
        tried = [data]
        if target.has_crc and len(data) >= builders.HEADER_BYTES:
            tried.append(builders.with_crc(bytearray(data)))
        for one in tried:
            try:
                target.run(one)
            except WireError:
                continue

    atheris.Setup(
        [sys.argv[0], f"-runs={runs}", f"-max_total_time={most_s}", *LIMITS, str(corpus)], once
    )
    atheris.Fuzz()


def guided(name: str, runs: int) -> tuple[int, str]:
    """Runs one decoder in processes of its own, one after the other.

    Returns:
        The exit code of the last one, and a line of figures.
    """
    kept = os.environ.get("AUDIT_CORPUS")
    longest_s = int(os.environ.get("AUDIT_FUZZ_SECONDS", "0"))
    started, done, peak_mib, code, said = time.monotonic(), 0, 0, 0, ""
    left_s = longest_s
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(kept or folder, name.replace(" ", "-"))
        corpus.mkdir(parents=True, exist_ok=True)
        while code == 0 and done < runs and (left_s > 0 or not longest_s):
            count = min(runs - done, RUNS_OF_A_PROCESS if name in KEPT_BY_ATHERIS else runs)
            given = [ONE, name, str(count), str(left_s), str(corpus)]
            one = subprocess.run(
                [sys.executable, "-m", "tests.fuzz.guided", *given], cwd=folder,
                env={**os.environ, "PYTHONPATH": PATH}, capture_output=True, text=True,
                errors="replace", check=False,
            )  # fmt: skip
            code, said = one.returncode, one.stdout + one.stderr
            ended = re.search(r"number_of_executed_units: (\d+)", said)
            if code == 0 and ended is None:
                return 1, f"{name}: no figures\n{said[-4000:]}"
            done += int(ended.group(1)) if ended else 0
            peak = re.search(r"peak_rss_mb:\s+(\d+)", said)
            peak_mib = max(peak_mib, int(peak.group(1)) if peak else 0)
            left_s = max(longest_s - int(time.monotonic() - started), 0)
        kept_inputs = len(list(corpus.iterdir()))
    figures = (
        f"{name}: {done} runs in {time.monotonic() - started:.0f} s, {kept_inputs} inputs kept, "
        f"at most {peak_mib} MiB, exit {code}"
    )
    return code, figures if code == 0 else f"{figures}\n{said[-4000:]}"


def main() -> int:
    """All decoders or the named ones; behind `--one`, `NAME RUNS SECONDS FOLDER` for one in this process."""
    if sys.argv[1:2] == [ONE]:
        fuzz(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
        return 0
    from tests.fuzz.targets import make_targets

    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    worst = 0
    for name in sys.argv[2:] or [target.name for target in make_targets()]:
        code, said = guided(name, runs)
        print(said, flush=True)
        worst = max(worst, code)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
