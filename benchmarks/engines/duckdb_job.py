"""One batch pass over the CSV file in DuckDB, nothing stored but the answer: the practical limit.

Run as `python -m benchmarks.engines.duckdb_job CLICKS.CSV OUT`.
"""

import sys
from pathlib import Path

import duckdb

from benchmarks.windows import CORES, GRAINS, HOT_LENGTH, HOT_SLIDE, HOT_TOP

_READ_VIEWS = """
    CREATE TEMP TABLE views AS SELECT user_id, item_id, ts FROM read_csv('{clicks}', header = false,
        auto_detect = false, columns = {{user_id: 'BIGINT', item_id: 'BIGINT', category_id: 'BIGINT',
        behavior: 'VARCHAR', ts: 'BIGINT'}}) WHERE behavior = 'pv'"""

_COUNT_TRAFFIC = """
    SELECT '{grain}' AS grain, ts // {seconds} * {seconds} AS window_start, count(*) AS page_views,
           count(DISTINCT user_id) AS unique_visitors
    FROM views GROUP BY ALL"""

_COUNT_PANES = f"""
    CREATE TEMP TABLE panes AS SELECT ts // {HOT_SLIDE} * {HOT_SLIDE} AS pane, item_id, count(*) AS page_views
    FROM views GROUP BY ALL"""

# The last of a window's top items has at least as many views as the last of a pane's top items, hence in one of its
# panes at least their share: items that never have so many in the quietest pane's terms need not be summed.
_RANK_HOT_ITEMS = f"""
    WITH tops AS (
        FROM panes QUALIFY row_number() OVER (PARTITION BY pane ORDER BY page_views DESC) <= {HOT_TOP}),
    lasts AS (
        SELECT if(count(*) < {HOT_TOP}, 0, min(page_views)) AS page_views FROM tops GROUP BY pane),
    hopeful AS (
        SELECT DISTINCT item_id FROM panes
        WHERE page_views * {HOT_LENGTH // HOT_SLIDE} >= (SELECT min(page_views) FROM lasts)),
    windows AS (
        SELECT pane + step AS window_end, item_id, sum(page_views)::BIGINT AS page_views
        FROM panes SEMI JOIN hopeful USING (item_id), range({HOT_SLIDE}, {HOT_LENGTH} + 1, {HOT_SLIDE}) AS steps(step)
        GROUP BY ALL)
    SELECT window_end, row_number() OVER (PARTITION BY window_end ORDER BY page_views DESC, item_id) AS rank,
           item_id, page_views
    FROM windows QUALIFY rank <= {HOT_TOP}"""


def count(clicks: Path, out: Path) -> None:
    """Write `traffic.parquet` and `hot_items.parquet`."""
    with duckdb.connect(config={"threads": CORES}) as connection:
        connection.execute(_READ_VIEWS.format(clicks=clicks))
        connection.execute(_COUNT_PANES)
        traffic = " UNION ALL ".join(_COUNT_TRAFFIC.format(grain=grain, seconds=size) for grain, size in GRAINS.items())
        for name, query in (("traffic", traffic), ("hot_items", _RANK_HOT_ITEMS)):
            connection.execute(f"COPY ({query}) TO '{out / name}.parquet'")


if __name__ == "__main__":
    count(Path(sys.argv[1]), Path(sys.argv[2]))
