"""Answers are compared before any time is told: a fast wrong answer is no result."""

import duckdb
import pyarrow as pa

from benchmarks.answers import Answer

USUAL_SIGMAS = 3
UTMOST_SIGMAS = 5
USUAL_SHARE = 0.997
"""At least so many windows lie within the usual sigmas of the stated error, none beyond the utmost."""
SHOWN = 5


class Mismatch(Exception):
    """Two engines differ; the message shows the first differing rows."""


_PAGE_VIEWS = """
    SELECT grain, window_start, exact.page_views AS expected, given.page_views AS found
    FROM exact_traffic AS exact FULL JOIN found_traffic AS given USING (grain, window_start)
    WHERE expected IS DISTINCT FROM found
    ORDER BY grain, window_start"""

_VISITORS = """
    SELECT grain, window_start, exact.unique_visitors AS expected, given.unique_visitors AS found,
           given.relative_error * exact.unique_visitors AS sigma
    FROM exact_traffic AS exact JOIN found_traffic AS given USING (grain, window_start)
    WHERE abs(expected - found) > {sigmas} * sigma
    ORDER BY grain, window_start"""

_HOT_ITEMS = """
    WITH exact AS (
        FROM exact_hot_items
        WHERE window_end <= {closed_until} OR window_end IN (SELECT window_end FROM found_hot_items))
    SELECT window_end, rank, exact.item_id AS expected_item, given.item_id AS found_item,
           exact.page_views AS expected, given.page_views AS found
    FROM exact FULL JOIN found_hot_items AS given USING (window_end, rank)
    WHERE expected_item IS DISTINCT FROM found_item OR expected IS DISTINCT FROM found
    ORDER BY window_end, rank"""


def check_equal(engine: str, found: Answer, exact: Answer, closed_until: int) -> None:
    """Raise Mismatch unless `found` is `exact`, unique visitors within the engine's stated error.

    Every hot-items window that ends by `closed_until` (epoch seconds) must be there; one that ends later may be
    missing, since some engines never give it, but not differ.
    """
    with duckdb.connect() as connection:
        for side, answer in (("exact", exact), ("found", found)):
            connection.register(f"{side}_traffic", answer.traffic)
            connection.register(f"{side}_hot_items", answer.hot_items)
        _refuse(engine, "page views", _rows(connection, _PAGE_VIEWS))
        _refuse(engine, "hot items", _rows(connection, _HOT_ITEMS.format(closed_until=closed_until)))
        _refuse(engine, "unique visitors", _rows(connection, _VISITORS.format(sigmas=UTMOST_SIGMAS)))
        unusual = _rows(connection, _VISITORS.format(sigmas=USUAL_SIGMAS))
        if unusual.num_rows > (1 - USUAL_SHARE) * exact.traffic.num_rows:
            _refuse(engine, f"unique visitors of too many windows, by more than {USUAL_SIGMAS} sigma", unusual)


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    return connection.sql(query).to_arrow_table()


def _refuse(engine: str, what: str, differing: pa.Table) -> None:
    if not differing.num_rows:
        return
    shown = "\n".join(f"  {row}" for row in differing.slice(0, SHOWN).to_pylist())
    raise Mismatch(f"{engine}: {what} differ in {differing.num_rows} rows, the first of them:\n{shown}")
