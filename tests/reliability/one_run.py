"""`python -m tests.reliability.one_run POINT ...`: the command line, which kills its process group at a commit.

POINT is empty, or `before TABLE` or `after TABLE`.
"""

from __future__ import annotations

import os
import signal
import sys

from jobs.__main__ import main
from pipeline.spark import commits

if __name__ == "__main__":
    wanted = sys.argv.pop(1)

    def kill(point: str) -> None:
        """SIGKILL for this process and its JVM."""
        if point == wanted:
            os.killpg(0, signal.SIGKILL)

    commits.COMMIT_HOOK = kill
    sys.exit(main())
