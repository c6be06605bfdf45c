"""A table as data: columns with type, nullability and meaning, from which everything else is derived.

Only the standard library is used, so that documentation, decoders and tests can read the declarations
without Spark.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*\Z")


class Column(NamedTuple):
    """One column.

    Attributes:
        name: Snake case; a unit comes last (`_ms`, `_bytes`), offsets are inclusive unless the name says otherwise.
        type: Spark SQL type in DDL form, for example `long` or `array<struct<topic:string,partition:int>>`.
        doc: Meaning, unit and where Kafka defines it.
        nullable: Whether null is a possible value; null always means "does not apply" or "not known".
    """

    name: str
    type: str
    doc: str
    nullable: bool = False


class Table(NamedTuple):
    """One logical table.

    Attributes:
        layer: `bronze`, `silver` or `gold`.
        name: Name within the layer; the documented view is `<layer>_<name>`.
        doc: One paragraph: what a row is.
        columns: In the order in which they are stored; Arrow batches are read by position.
        key: Names of the columns that identify a row within a run.
        parts: Of a physical table that holds several logical ones: kind -> columns that its rows use. Such a table has
            a column `kind` and is partitioned by it.
    """

    layer: str
    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def view_name(self) -> str:
        """Name under which the table is registered for SQL."""
        return f"{self.layer}_{self.name}"

    def ddl(self) -> str:
        """The schema as a Spark SQL DDL string (Spark's `from_json` and `createDataFrame` accept it)."""
        return ", ".join(
            f"{column.name} {column.type.replace('long', 'bigint')}" for column in self.columns
        )

    def markdown(self) -> str:
        """The table's page: purpose, key, and one row a column."""
        lines = [f"## {self.layer}.{self.name}", "", self.doc, ""]
        lines += [f"Key: {', '.join(f'`{name}`' for name in self.key)}", ""]
        lines += ["| column | type | null | meaning |", "|---|---|---|---|"]
        for column in self.columns:
            null = "yes" if column.nullable else ""
            lines.append(f"| `{column.name}` | `{column.type}` | {null} | {column.doc} |")
        return "\n".join(lines) + "\n"


def check(table: Table) -> None:
    """Asserts that a declaration is sound: unique snake-case names, a key of known non-null columns.

    Raises:
        ValueError: With the table's name and what is wrong.
    """
    names = table.names
    where = f"{table.layer}.{table.name}"
    if len(set(names)) != len(names):
        raise ValueError(f"{where}: a column is declared twice")
    for name in names:
        if not _IDENTIFIER.match(name):
            raise ValueError(f"{where}: {name!r} is not snake case")
    missing = [name for name in table.key if name not in names]
    if missing:
        raise ValueError(f"{where}: key columns {missing} are not declared")


def union(name: str, doc: str, *tables: Table) -> Table:
    """One physical table for several logical ones of a layer: their columns by name, told apart by `kind`.

    Raises:
        ValueError: Two of them declare one name with different types.
    """
    columns = {
        "kind": Column("kind", "string", "Name of the logical table that the row belongs to.")
    }
    for table in tables:
        for column in table.columns:
            known = columns.setdefault(column.name, column._replace(nullable=True))
            if known.type != column.type:
                raise ValueError(f"{name}: {column.name} is {known.type} and {column.type}")
    parts = tuple((table.name, table.names) for table in tables)
    key = ("kind", *tables[0].key)
    return Table(tables[0].layer, name, doc, tuple(columns.values()), key, parts)
