"""What every engine is asked for, in the one form in which answers are compared."""

from typing import NamedTuple

import duckdb
import pyarrow as pa

TRAFFIC = pa.schema(
    [
        ("grain", pa.string()),
        ("window_start", pa.int64()),  # epoch seconds
        ("page_views", pa.int64()),
        ("unique_visitors", pa.int64()),
        ("relative_error", pa.float64()),  # one sigma of unique_visitors; 0 where the engine counts exactly
    ]
)
HOT_ITEMS = pa.schema(
    [
        ("window_end", pa.int64()),  # epoch seconds
        ("rank", pa.int64()),
        ("item_id", pa.int64()),
        ("page_views", pa.int64()),
    ]
)


class Answer(NamedTuple):
    """Rows in any order; windows without a page view are left out."""

    traffic: pa.Table
    hot_items: pa.Table


def answer_of(traffic: str, hot_items: str, /, **tables: pa.Table) -> Answer:
    """The answer that two DuckDB queries give, over files or over `tables` by their names."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return Answer(*(_read(connection, *wanted) for wanted in ((traffic, TRAFFIC), (hot_items, HOT_ITEMS))))


def _read(connection: duckdb.DuckDBPyConnection, query: str, schema: pa.Schema) -> pa.Table:
    found = connection.sql(f"SELECT {', '.join(schema.names)} FROM ({query}) WHERE page_views > 0")
    return found.to_arrow_table().cast(schema)
