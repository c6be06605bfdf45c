"""The process: its exit code is one of the contract's, and 1 only ever means findings."""

from __future__ import annotations

import os
import sys

UNFORESEEN = 4


def main() -> int:
    """Run the command line; nothing that goes wrong may look like a verdict."""
    code = UNFORESEEN
    try:
        _open_streams()
        from jobs.cli import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output went away: no fault to tell about, and the verdict, if there is one, stands.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except (Exception, SystemExit):
        # A library that ends the process has no say in the verdict either.
        import traceback

        traceback.print_exc()
        code = UNFORESEEN
    return code


def _open_streams() -> None:
    """A process that was started without an output writes into nothing, not into the first file it opens."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - of the whole process


if __name__ == "__main__":
    sys.exit(main())
