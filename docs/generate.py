"""Makes `docs/tables.md`, `docs/configuration.md` and `docs/detectors` from the code: `python -m docs.generate`.

A page for each detector out of its docstring, a section for each table out of its declaration, a line for each
setting. A test compares what stands here with what this module makes.
"""

from __future__ import annotations

import re
from pathlib import Path

from docs import settings
from docs.classes import CLASSES
from jobs import explain
from schemas import bronze, gold, silver
from schemas.table import Table

DOCS = Path(__file__).resolve().parent
PARTS = ("Promise", "Rule", "Normal", "Refuted by")
LAYERS: tuple[tuple[str, tuple[Table, ...], str], ...] = (
    ("gold", gold.TABLES, "What people act on."),
    ("silver", silver.TABLES, "What brokers, coordinators and the cleaner did, replayed."),
    ("bronze", bronze.TABLES, "What the files hold, decoded and not interpreted."),
)
_TABLES_HEAD = """\
# Tables

Every run writes Delta tables below its output. One call registers all of them as views for SQL:

```python
from pipeline import catalog
from pipeline.spark import session

spark = session.build()
run_id = catalog.open_tables(spark, "/audits")  # the newest completed run; or name one
spark.sql(
    "select topic, partition, producer_id, first_offset, judgement, reason "
    "from silver_partition_txn where is_open"
).show(truncate=False)
```

Start it with `PYTHONPATH=. .venv/bin/python FILE` in the project's folder. With
`audit-output/self-check`, the output of the bundled sample, it prints:

```
+-------+---------+-----------+------------+------------------+-----------------------------------------------+
|topic  |partition|producer_id|first_offset|judgement         |reason                                         |
+-------+---------+-----------+------------+------------------+-----------------------------------------------+
|h-topic|1        |1          |6           |not_in_transaction|owner in CompleteCommit, epoch 0               |
|h-topic|2        |424242     |6           |orphan_producer   |no transactional id holds the producer id      |
|h-topic|3        |2          |8           |not_in_transaction|owner in CompleteAbort, epoch 0                |
|h-topic|5        |4          |6           |open              |listed by its coordinator, deadline not reached|
+-------+---------+-----------+------------+------------------+-----------------------------------------------+
```

The view of `silver.partition_txn` is `silver_partition_txn`, and so on. Views of gold and bronze hold all
runs, told apart by `run_id` (bronze views have that column beside those below); views of silver hold
the chosen run. Several logical tables share one physical table: read the views, not the folders.

Offsets are inclusive unless a name says otherwise, times are milliseconds since 1970 in UTC, and null
means "does not apply" or "not known".

Files can also be looked at without an audit; every action reads them again, and nothing is written:

```python
from pipeline.spark import source

source.register(spark)
batches = spark.read.format("kafka_segments").option("view", "batches").load("/copies/2026-11-26")
batches.groupBy("producer_id").count().show(3)
```

Views: segments, batches, txn_state, offset_commits, group_metadata, producer_snapshots, aborted_txns, checkpoints,
unreadable.
"""


def detector_page(code: str, text: str) -> str:
    """A detector's page.

    Args:
        code: the detector.
        text: what `explain` prints: docstring and fixed versions.

    Raises:
        ValueError: a part of the docstring is missing, or the classes are not known.
    """
    first, *paragraphs = text.split("\n\n")
    title, _, summary = first.partition(": ")
    if title.strip("`") != code:
        raise ValueError(f"the docstring of {code} does not begin with its name and a colon")
    found = {name: _part(name, paragraphs, code) for name in (*PARTS, "Fixed in")}
    found["Fixed in"] = found["Fixed in"].replace(" * ", "\n* ")
    if code not in CLASSES:
        raise ValueError(f"{code} has no classes in docs/classes.py")
    lines = [f"# {code}", "", _capital(_flow(summary)), ""]
    for name in PARTS:
        lines += [f"## {name}", "", found[name], ""]
    lines += ["## Classes", "", "| class | severity | certainty | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{one.name}` | {one.severity} | {one.certainty} | {one.meaning} |"
        for one in CLASSES[code]
    ]
    lines += ["", "## Fixed in", "", found["Fixed in"], ""]
    lines += ["On the command line:", "", "```", f"./spark-submit.sh explain {code}", "```", ""]
    return "\n".join(lines)


def _part(name: str, paragraphs: list[str], code: str) -> str:
    """The paragraph that begins with a name; what stands between name and colon stays."""
    for paragraph in paragraphs:
        found = re.match(rf"{name}(, [^:]*)?: ", paragraph)
        if found:
            rest = _flow(paragraph[found.end() :])
            return _capital(f"{found[1][2:]}: {rest}" if found[1] else rest)
    raise ValueError(f"the docstring of {code} has no paragraph that begins with {name}:")


def _flow(text: str) -> str:
    return " ".join(text.split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def tables_page() -> str:
    """All tables: gold first, as people read them."""
    lines = [_TABLES_HEAD]
    for layer, tables, doc in LAYERS:
        lines += [f"# {layer.capitalize()}", "", doc, ""]
        lines += [table.markdown() for table in tables]
    return "\n".join(lines)


def index_page() -> str:
    """The detectors in alphabetical order, with the first line of each."""
    lines = ["# Detectors", "", "| code | finds | classes |", "|---|---|---|"]
    for code, text in explain.pages().items():
        first = _flow(text.split("\n\n")[0]).partition(": ")[2].rstrip(".")
        names = ", ".join(f"`{one.name}`" for one in CLASSES[code])
        lines.append(f"| [`{code}`]({code}.md) | {first} | {names} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Path below `docs` -> content of every generated page."""
    made = {
        "tables.md": tables_page(),
        "detectors/README.md": index_page(),
        "configuration.md": settings.page(),
    }
    for code, text in explain.pages().items():
        made[f"detectors/{code}.md"] = detector_page(code, text)
    return made


def main() -> None:
    """Write the pages, and remove those of detectors that are gone."""
    made = pages()
    for name, text in made.items():
        file = DOCS / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for file in (DOCS / "detectors").glob("*.md"):
        if f"detectors/{file.name}" not in made:
            file.unlink()


if __name__ == "__main__":
    main()
