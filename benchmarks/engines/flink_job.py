"""The same windows in Flink SQL, streaming mode, heap state; runs in a virtual environment of its own.

Run as `python -m benchmarks.engines.flink_job CLICKS.CSV OUT`. All windows share one scan of one file, whose order is
that of event time; Flink sums sliding windows from slices, and ranks each window once, when it closes.
"""

import sys

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

from benchmarks.windows import CORES, GRAINS, HOT_LENGTH, HOT_SLIDE, HOT_TOP, WATERMARK_SECONDS

_SETTINGS = {
    "parallelism.default": str(CORES),
    "state.backend.type": "hashmap",
    "table.local-time-zone": "UTC",
    "pipeline.object-reuse": "true",
    "taskmanager.memory.managed.size": "512m",
}

_CLICKS = f"""
    CREATE TABLE clicks (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT,
        event_at AS TO_TIMESTAMP_LTZ(ts, 0),
        WATERMARK FOR event_at AS event_at - INTERVAL '{WATERMARK_SECONDS}' SECOND)
    WITH ('connector' = 'filesystem', 'path' = '{{path}}', 'format' = 'csv')"""

_TRAFFIC = """
    CREATE TABLE traffic (grain STRING, window_start BIGINT, page_views BIGINT, unique_visitors BIGINT)
    WITH ('connector' = 'filesystem', 'path' = '{path}/traffic', 'format' = 'csv')"""

_HOT_ITEMS = """
    CREATE TABLE hot_items (window_end BIGINT, place BIGINT, item_id BIGINT, page_views BIGINT)
    WITH ('connector' = 'filesystem', 'path' = '{path}/hot_items', 'format' = 'csv')"""

_COUNT_TRAFFIC = """
    INSERT INTO traffic
    SELECT '{grain}', UNIX_TIMESTAMP(CAST(window_start AS STRING)), COUNT(*), COUNT(DISTINCT user_id)
    FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(event_at), INTERVAL {interval}))
    WHERE behavior = 'pv' GROUP BY window_start, window_end"""

_RANK_HOT_ITEMS = f"""
    INSERT INTO hot_items SELECT UNIX_TIMESTAMP(CAST(window_end AS STRING)), place, item_id, page_views FROM (
        SELECT *, ROW_NUMBER() OVER (
            PARTITION BY window_start, window_end ORDER BY page_views DESC, item_id ASC) AS place
        FROM (
            SELECT window_start, window_end, item_id, COUNT(*) AS page_views
            FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(event_at),
                           INTERVAL '{HOT_SLIDE}' SECOND(4), INTERVAL '{HOT_LENGTH}' SECOND(4)))
            WHERE behavior = 'pv' GROUP BY window_start, window_end, item_id))
    WHERE place <= {HOT_TOP}"""


def count(clicks: str, out: str) -> None:
    """Write `traffic/` and `hot_items/`, CSV without header."""
    configuration = Configuration()
    for key, value in _SETTINGS.items():
        configuration.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    tables = TableEnvironment.create(settings)
    for statement in (_CLICKS.format(path=clicks), _TRAFFIC.format(path=out), _HOT_ITEMS.format(path=out)):
        tables.execute_sql(statement)
    windows = tables.create_statement_set()
    for grain in GRAINS:
        number, unit = grain.split()
        windows.add_insert_sql(_COUNT_TRAFFIC.format(grain=grain, interval=f"'{number}' {unit.upper()}"))
    windows.add_insert_sql(_RANK_HOT_ITEMS)
    windows.execute().wait()


if __name__ == "__main__":
    count(sys.argv[1], sys.argv[2])
