"""The tables a stream writes. A column is `name TYPE`; dimensions and measures come from the spec."""

from dataclasses import dataclass

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
COLUMN_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"

_WORDS = """
all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check
collate collation column columns concurrently constraint create cross default deferrable desc describe distinct do
else end except false fetch for foreign freeze from full generated glob group having ilike in initially inner
intersect into is isnull join lambda lateral leading left like limit map natural not notnull null offset on only or
order outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify references returning right
select semi show similar some struct summarize symmetric table tablesample then to trailing true try_cast tuple
union unique unpack unpivot using variadic verbose when where window with
"""
RESERVED_WORDS = frozenset(_WORDS.split())
"""Words that SQL would not take for the name of a column."""

EVENTS = "events"
QUARANTINE = "quarantine"
TRAFFIC_TALLIES = "traffic_tallies"
ITEM_TALLIES = "item_tallies"
TRAFFIC_LIVE = "traffic_live"
HOT_ITEMS_LIVE = "hot_items_live"
BATCHES = "batches"

LEDGER = ("read", "on_time", "late", "too_late", "duplicate", "quarantined")


@dataclass(frozen=True)
class TableContract:
    """Fixed columns before and after those of the spec; `indexed` columns carry statistics for skipping files."""

    name: str
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...] = ()
    partition_by: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()


STREAM_TABLES = {
    table.name: table
    for table in (
        TableContract(
            EVENTS,
            (
                ("event_at", "timestamp"),
                ("visitor_id", "string"),
                ("item_id", "string"),
                ("category_id", "string"),
                ("action", "string"),
                ("event_id", "string"),
                ("properties", "map"),
                ("arrival", "string"),
                ("day", "date"),
                ("batch", "long"),
                ("seen_at", "timestamp"),
                ("source", "string"),
                ("position", "long"),
            ),
            partition_by=("day",),
            indexed=("event_at", "batch"),
        ),
        TableContract(
            QUARANTINE,
            (
                ("raw", "string"),
                ("reason", "string"),
                ("detail", "string"),
                ("source", "string"),
                ("position", "long"),
                ("seen_at", "timestamp"),
                ("batch", "long"),
            ),
            indexed=("batch",),
        ),
        TableContract(
            TRAFFIC_TALLIES,
            (("pane_start", "timestamp"),),
            (("batch", "long"),),
            indexed=("pane_start", "batch"),
        ),
        TableContract(
            ITEM_TALLIES,
            (("pane_start", "timestamp"), ("item_id", "string"), ("page_views", "long"), ("batch", "long")),
            indexed=("pane_start", "batch"),
        ),
        TableContract(
            TRAFFIC_LIVE,
            (
                ("grain", "string"),
                ("window_start", "timestamp"),
                ("window_end", "timestamp"),
            ),
            (("revision", "long"), ("batch", "long")),
            indexed=("window_start", "batch"),
        ),
        TableContract(
            HOT_ITEMS_LIVE,
            (
                ("window_start", "timestamp"),
                ("window_end", "timestamp"),
                ("revision", "long"),
                ("closed", "boolean"),
                ("rank", "long"),
                ("item_id", "string"),
                ("page_views", "long"),
                ("batch", "long"),
            ),
            indexed=("window_end", "batch"),
        ),
        TableContract(
            BATCHES,
            (
                ("epoch", "long"),
                ("id", "long"),
                ("drained", "boolean"),
                ("watermark_before", "timestamp"),
                ("watermark_after", "timestamp"),
                *((name, "long") for name in LEDGER),
                *((f"total_{name}", "long") for name in LEDGER),
                ("offsets", "string"),
                ("versions", "string"),
                ("started_at", "timestamp"),
                ("committed_at", "timestamp"),
            ),
            indexed=("id", "epoch"),
        ),
    )
}
