"""Upkeep changes files, never what readers see; commits are numbered so that none happens twice."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import STREAM_TABLES
from spark_jobs.errors import SpecError, StaleEpoch
from spark_jobs.sinks import upkeep
from spark_jobs.sinks.append_once import LiveTable, decode, encode, table_schema
from spark_jobs.sinks.live_tables import LiveTables
from spark_jobs.sinks.upkeep import fold_item_tallies, fold_traffic_tallies, folds, newest_revisions, tidy
from spark_jobs.transforms.distinct import Exact
from spark_jobs.transforms.measures import Count, Distinct, Fold, Measure

MANY = settings(derandomize=True, deadline=None, max_examples=60)
START = datetime(2024, 5, 1, tzinfo=UTC)
MEASURES: list[Measure] = [
    Count("page_views", None, None, None),
    Distinct("visitors", None, "visitor_id", pa.string(), Exact),
    Fold("paid", None, "paid", pa.int64(), "sum"),
]
TABLES = [name for name in STREAM_TABLES if name != "batches"]


def ignore(point: str) -> None: ...


def visitors(*ids: str) -> bytes:
    held = Exact()
    held.add(ids)
    return held.store()


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


@st.composite
def traffic_tallies(draw: st.DrawFn) -> list[dict[str, Any]]:
    row = st.fixed_dictionaries(
        {
            "pane_start": st.integers(0, 2).map(minute),
            "province": st.sampled_from([None, "", "beijing"]),
            "page_views": st.none() | st.integers(0, 9),
            "visitors": st.none() | st.lists(st.sampled_from("123ab")).map(lambda ids: visitors(*ids)),
            "paid": st.none() | st.integers(-5, 5),
            "batch": st.integers(0, 40),
        }
    )
    return draw(st.lists(row, max_size=25))


TALLIES = table_schema(
    STREAM_TABLES["traffic_tallies"],
    [pa.field("province", pa.string()), *(field for measure in MEASURES for field in measure.tally_fields)],
)


def merged(rows: list[dict[str, Any]]) -> dict[Any, list[Any]]:
    """What a reader makes of tallies: each measure's number, a pane and province."""
    states: dict[Any, list[Any]] = {}
    for row in rows:
        held = states.setdefault((row["pane_start"], row["province"]), [None] * len(MEASURES))
        held[:] = [measure.merge(state, row) for measure, state in zip(MEASURES, held, strict=True)]
    return {key: [m.result(s) for m, s in zip(MEASURES, held, strict=True)] for key, held in states.items()}


@MANY
@given(traffic_tallies())
def test_folded_traffic_tallies_merge_to_the_same_numbers(rows: list[dict[str, Any]]) -> None:
    folded = fold_traffic_tallies(pa.Table.from_pylist(rows, schema=TALLIES), ["province"], MEASURES)
    assert folded.schema == TALLIES
    assert folded.num_rows == len({(row["pane_start"], row["province"]) for row in rows}), "one row a key"
    assert merged(folded.to_pylist()) == merged(rows)
    assert max(folded["batch"].to_pylist(), default=None) == max((row["batch"] for row in rows), default=None)


def test_tallies_of_a_measure_that_the_spec_lost_are_left_as_they_are() -> None:
    rows = pa.Table.from_pylist(
        [{"pane_start": START, "province": None, "page_views": 1, "paid": 4, "batch": n} for n in range(3)],
        schema=TALLIES,
    )
    without_paid = [measure for measure in MEASURES if measure.name != "paid"]
    assert fold_traffic_tallies(rows, ["province"], without_paid).equals(rows)


@MANY
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(1, 9), st.integers(0, 9)), max_size=25)
)
def test_folded_item_tallies_have_the_same_sums(rows: list[tuple[int, str, int, int]]) -> None:
    names = ["pane_start", "item_id", "page_views", "batch"]
    schema = table_schema(STREAM_TABLES["item_tallies"])
    table = pa.Table.from_pylist(
        [dict(zip(names, (minute(p), *rest), strict=True)) for p, *rest in rows], schema=schema
    )
    folded = fold_item_tallies(table)
    wanted: Counter[Any] = Counter()
    for pane, item, views, _ in rows:
        wanted[minute(pane), item] += views
    assert {(row["pane_start"], row["item_id"]): row["page_views"] for row in folded.to_pylist()} == dict(wanted)
    assert folded.num_rows == len(wanted)
    assert folded.schema == schema


@MANY
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "x"]), st.integers(1, 4)), max_size=25))
def test_all_rows_of_the_highest_revision_stay_and_no_others(rows: list[tuple[int, str | None, int]]) -> None:
    table = pa.table(
        {
            "window_start": pa.array([start for start, _, _ in rows], pa.int64()),
            "province": pa.array([province for _, province, _ in rows], pa.string()),
            "revision": pa.array([revision for _, _, revision in rows], pa.int64()),
            "rank": pa.array(range(len(rows)), pa.int64()),
        }
    )
    kept = newest_revisions(table, ["window_start", "province"])
    highest = {(s, p): max(r for start, province, r in rows if (start, province) == (s, p)) for s, p, _ in rows}
    wanted = [rank for rank, (start, province, revision) in enumerate(rows) if highest[start, province] == revision]
    assert kept["rank"].to_pylist() == wanted


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[LiveTables]:
    live = LiveTables(Layout(tmp_path, "clicks"), ["province"], MEASURES)
    live.fence(1)
    yield live
    live.close()


def some_rows(name: str, batch: int, chance: random.Random) -> list[dict[str, Any]]:
    """A few rows of a batch that are valid in any table of a stream."""
    start = minute(chance.randrange(3))
    row = {
        "event_at": start,
        "day": date(2024, 5, 1) + timedelta(days=batch % 2),
        "visitor_id": str(chance.randrange(9)),
        "properties": [("amount", "1.50")],
        "raw": "no click",
        "pane_start": start,
        "window_start": start,
        "window_end": start + timedelta(minutes=1),
        "grain": "1 minute",
        "province": chance.choice([None, "beijing"]),
        "visitors": visitors(str(batch)) if name == "traffic_tallies" else batch,
        "item_id": chance.choice("ab"),
        "page_views": batch + 1,
        "paid": 2,
        "revision": batch + 1,
        "rank": 1,
        "closed": True,
        "batch": batch,
    }
    return [row, row | {"rank": 2, "item_id": "c"}]


def seen_by_readers(name: str, table: LiveTable) -> Any:
    rows = table.delta.to_pyarrow_table().to_pylist()
    if name == "traffic_tallies":
        return merged(rows)
    if name == "item_tallies":
        sums: Counter[Any] = Counter()
        for row in rows:
            sums[row["pane_start"], row["item_id"]] += row["page_views"]
        return sums
    if name in ("traffic_live", "hot_items_live"):
        keys = ["window_start", "province"] if name == "traffic_live" else ["window_end"]
        newest: dict[Any, int] = {}
        for row in rows:
            key = tuple(row[column] for column in keys)
            newest[key] = max(newest.get(key, 0), row["revision"])
        rows = [row for row in rows if newest[tuple(row[column] for column in keys)] == row["revision"]]
    return sorted(repr(row) for row in rows)


@pytest.mark.parametrize("name", TABLES)
def test_tidying_leaves_few_files_and_the_same_numbers(
    name: str, tables: LiveTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "FILES_A_TIER", 4)
    chance = random.Random(name)
    table = tables[name]
    for batch in range(9):
        table.append_once(pa.Table.from_pylist(some_rows(name, batch, chance), schema=table.schema), 1, batch, ignore)
    files, before, recorded = len(table.files()), seen_by_readers(name, table), table.recorded()
    tidy(table, folds(["province"], MEASURES).get(name))
    assert files >= 9
    assert len(table.files()) <= 2, "one file a partition"
    assert seen_by_readers(name, table) == before
    assert table.recorded() == recorded, "upkeep is no batch"
    table.append_once(pa.Table.from_pylist(some_rows(name, 8, chance), schema=table.schema), 1, 8, ignore)
    assert seen_by_readers(name, table) == before, "a batch that was folded is still known"


def test_a_reader_of_an_older_version_still_has_its_files(tables: LiveTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "FILES_A_TIER", 2)
    table = tables["item_tallies"]
    for batch in range(4):
        rows = some_rows("item_tallies", batch, random.Random(1))
        table.append_once(pa.Table.from_pylist(rows, schema=table.schema), 1, batch, ignore)
    version, count = table.version, table.delta.to_pyarrow_table().num_rows
    tidy(table, fold_item_tallies)
    assert table.delta.to_pyarrow_table().num_rows < count
    assert DeltaTable(str(table.path), version=version).to_pyarrow_table().num_rows == count


def test_few_files_and_large_files_are_left_alone(tables: LiveTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables["item_tallies"]
    for batch in range(3):
        rows = some_rows("item_tallies", batch, random.Random(1))
        table.append_once(pa.Table.from_pylist(rows, schema=table.schema), 1, batch, ignore)
    version = table.version
    tidy(table, fold_item_tallies)
    assert table.version == version, "three files are few"
    monkeypatch.setattr(upkeep, "FILES_A_TIER", 2)
    monkeypatch.setattr(upkeep, "LARGEST", 1)
    tidy(table, fold_item_tallies)
    assert table.version == version, "large files are done"


def test_tidying_keeps_the_numbers_of_a_measure_that_the_spec_lost(
    tables: LiveTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "FILES_A_TIER", 2)
    for name in ("traffic_live", "traffic_tallies"):
        rows = some_rows(name, 0, random.Random(1))[:1]
        tables[name].append_once(pa.Table.from_pylist(rows, schema=tables[name].schema), 1, 0, ignore)
    fewer = MEASURES[:2]
    without_paid = LiveTables(Layout(tmp_path, "clicks"), ["province"], fewer)
    without_paid.fence(2)
    for name in ("traffic_live", "traffic_tallies"):
        table = without_paid[name]
        rows = [some_rows(name, 1, random.Random(1))[0] | {"province": "another"}]
        table.append_once(pa.Table.from_pylist(rows, schema=table.schema), 2, 1, ignore)
        tidy(table, folds(["province"], fewer)[name])
        assert len(table.files()) == 1
        assert sorted(table.delta.to_pyarrow_table()["paid"].to_pylist(), key=str) == [2, None]
    without_paid.close()


@MANY
@given(st.integers(0, 2**22), st.integers(-1, 2**40 - 2))
def test_a_transaction_number_tells_its_epoch_and_batch(epoch: int, batch: int) -> None:
    assert decode(encode(epoch, batch)) == (epoch, batch)


def test_every_number_of_an_epoch_is_above_all_of_the_one_before() -> None:
    assert encode(3, -1) > encode(2, 2**40 - 2)
    assert decode(encode(2, -1)) == (2, -1), "a table without a batch is fenced too"


def test_a_batch_is_added_once_and_an_old_epoch_adds_nothing(tables: LiveTables) -> None:
    table = tables["item_tallies"]
    rows = pa.Table.from_pylist(some_rows("item_tallies", 0, random.Random(1)), schema=table.schema)
    table.append_once(rows, 1, 0, ignore)
    table.append_once(rows, 1, 0, ignore)
    assert table.delta.to_pyarrow_table().num_rows == 2
    table.fence(2)
    table.append_once(rows, 2, 0, ignore)
    assert table.delta.to_pyarrow_table().num_rows == 2, "the fence remembers the batch"
    with pytest.raises(StaleEpoch, match="item_tallies belongs to epoch 2, this driver to 1"):
        table.append_once(rows, 1, 1, ignore)
    assert table.delta.to_pyarrow_table().num_rows == 2


def test_a_column_that_changed_its_type_is_refused_by_name(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "clicks")
    LiveTables(layout, [], [Fold("paid", None, "paid", pa.int64(), "sum")]).close()
    with pytest.raises(SpecError, match="'paid' of traffic_tallies holds long, the spec now says decimal"):
        LiveTables(layout, [], [Fold("paid", None, "paid", pa.decimal128(18, 2), "sum")])


def test_new_columns_are_empty_in_old_rows(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "clicks")
    first = LiveTables(layout, [], MEASURES[:1])
    rows = some_rows("traffic_live", 0, random.Random(1))[:1]
    first["traffic_live"].append_between(pa.Table.from_pylist(rows, schema=first["traffic_live"].schema))
    first.close()
    second = LiveTables(layout, [], [*MEASURES[:1], MEASURES[2]])
    assert second["traffic_live"].delta.to_pyarrow_table()["paid"].to_pylist() == [None]
    second.close()
