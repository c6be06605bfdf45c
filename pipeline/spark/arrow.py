"""Arrow schemas of the declared tables."""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa

from schemas.table import Table

_SCALARS = {
    "string": pa.string(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
}


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns in order; Spark reads Arrow batches by position."""
    return pa.schema([pa.field(column.name, _type(column.type)) for column in table.columns])


def ddl_schema(ddl: str) -> pa.Schema:
    """Arrow schema of a DDL string of scalars and of arrays at its end, as `Table.ddl` makes it."""
    fields = [field.strip().split(" ", 1) for field in re.split(r",\s*(?![^<]*>)", ddl)]
    return pa.schema([pa.field(name, _type(kind)) for name, kind in fields])


def _type(ddl: str) -> pa.DataType:
    """Arrow type of the DDL subset that the declarations use: scalars, arrays, arrays of structs."""
    if ddl in _SCALARS:
        return _SCALARS[ddl]
    if ddl.startswith("array<") and ddl.endswith(">"):
        return pa.list_(_type(ddl[6:-1]))
    if ddl.startswith("struct<") and ddl.endswith(">"):
        fields = (field.split(":") for field in ddl[7:-1].split(","))
        return pa.struct([pa.field(name, _type(kind)) for name, kind in fields])
    raise ValueError(f"unknown type {ddl}")
