"""The process that Python workers of a local run are forked from, with what they need imported once.

Spark starts it in place of `pyspark.daemon` (`spark.python.daemon.module`), with the archives `pyspark.zip` and
`py4j-*-src.zip` ahead on the path. Nothing in an archive is compiled, and Spark has each task read their directories
anew (`pyspark.worker_util.setup_spark_files`); the installed packages are the same ones, compiled.
"""

from __future__ import annotations

import gc
import sys
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath

ARCHIVES = ("pyspark.zip", "py4j-*-src.zip")
WANTED = ("pyspark.worker", "pipeline.spark.bronze", "pipeline.spark.silver")


def without_archives(path: list[str]) -> list[str]:
    """The entries of a module path that are not Spark's own archives."""
    return [one for one in path if not any(fnmatch(PurePath(one).name, name) for name in ARCHIVES)]


def main() -> None:
    """Import what workers need, and serve as `pyspark.daemon` does."""
    given = list(sys.path)
    sys.path[:] = without_archives(given)
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:] = given
    for name in WANTED:
        import_module(name)
    from pyspark import daemon

    gc.freeze()  # a worker collects garbage behind every task, and would go through all of these modules each time
    daemon.manager()


if __name__ == "__main__":
    main()
