"""The process: its exit code is one of the contract's, and 1 only ever means findings."""

from __future__ import annotations

import sys

UNFORESEEN = 4


def main() -> int:
    """Run the command line; nothing that goes wrong may look like a verdict."""
    try:
        from jobs.cli import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output went away; what the run concluded is in its files.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115 - closed with the process, which ends here
        code = UNFORESEEN
    except (Exception, SystemExit):
        # A library that ends the process has no say in the verdict either.
        import traceback

        traceback.print_exc()
        code = UNFORESEEN
    return code


if __name__ == "__main__":
    sys.exit(main())
