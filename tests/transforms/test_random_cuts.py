"""Random events in random order, cut into random batches, give what the oracle gives for that cutting."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness import CLICKS, ask, drain, hot_items_of, land_lines, make_spec, rows, traffic_of
from tests.oracle import Click, Rules, expect

pytestmark = pytest.mark.spark
START = 1_710_000_000  # a few hours before New York's clock change of 2024-03-10
SOURCE = CLICKS | {
    "schema": f"{CLICKS['schema']}, event_id STRING",
    "event": {**CLICKS["event"], "event_id": "event_id"},  # type: ignore[dict-item]
}


def draw(seed: int) -> list[list[Click]]:
    """A few hundred clicks over hours, mostly rising in time, with every kind of fault, in a few batches."""
    random_ = random.Random(seed)
    clicks: list[Click] = []
    at = START
    for number in range(400):
        at += random_.randint(0, 120)
        kind = random_.random()
        if kind < 0.03:
            clicks.append(Click(fault="malformed"))
        elif kind < 0.05:
            clicks.append(Click(at=at, action="steal", fault="rule"))
        elif kind < 0.07:
            clicks.append(Click(at=4_000_000_000, visitor="1", item="1", event_id=f"future-{number}"))
        elif kind < 0.15 and clicks:
            clicks.append(random_.choice([click for click in clicks[-60:] if not click.fault] or [Click(at=at)]))
        else:
            back = random_.choice([0, 0, 0, 5, 600, 4_000, 9_000])
            visitor = random_.choice([None, *map(str, range(20))])
            item = random_.choice([None, "007", *map(str, range(8, 13))])
            action = random_.choice(["view", "view", "view", "buy"])
            clicks.append(Click(at - back, visitor, _number(item), action, f"id-{number}"))
    cuts = sorted(random_.sample(range(1, len(clicks)), random_.randint(2, 6)))
    return [clicks[a:b] for a, b in zip([0, *cuts], [*cuts, len(clicks)], strict=True)]


def _number(item: str | None) -> str | None:
    """As the item comes back: the log's column is a number."""
    return None if item is None else str(int(item))


def line(click: Click) -> str:
    if click.fault == "malformed":
        return "1,2,three"
    behaviour = {"view": "pv"}.get(click.action, click.action)
    return f"{click.visitor or ''},{click.item or ''},1,{behaviour},{click.at},{click.event_id or ''}"


@pytest.mark.parametrize(("seed", "zone"), [(1, "America/New_York"), (2, "Asia/Kolkata"), (3, "UTC")])
def test_every_table_holds_what_the_oracle_says(spark: SparkSession, home: Path, seed: int, zone: str) -> None:
    batches = draw(seed)
    spec = make_spec(SOURCE, time={"zone": zone, "allowed_lateness": "1 hour", "deduplicate_within": "10 minutes"})
    land_lines(home, [[line(click) for click in batch] for batch in batches])
    drain(spark, home, spec)
    wanted = expect(batches, Rules(zone=zone))
    columns = "read, on_time, late, too_late, duplicate, quarantined"
    ledgers = ask(home, f"SELECT {columns} FROM batches WHERE NOT drained ORDER BY id")
    assert ledgers == [tuple(ledger.values()) for ledger in wanted.ledgers]
    marks = ask(home, "SELECT epoch(watermark_after)::BIGINT FROM batches WHERE NOT drained ORDER BY id")
    assert [mark for (mark,) in marks] == wanted.watermarks
    stored = sorted((int(e["event_at"].timestamp()), str(e["event_id"]), e["arrival"]) for e in rows(home, "events"))
    assert stored == sorted((click.at, str(click.event_id), arrival) for click, arrival in wanted.stored)
    assert traffic_of(home) == wanted.traffic
    assert hot_items_of(home) == wanted.hot
