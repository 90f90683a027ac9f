"""A reader of one job's tables: every table at the versions of one batch, and the views that people ask."""

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from include.errors import UsageError
from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import BATCHES, STREAM_TABLES, TRAFFIC_LIVE
from spark_jobs.sinks.json_files import read_json
from spark_jobs.sinks.live_tables import Cut, newest_cut

VIEWS = ("traffic", "hot_items")
ALL = (*VIEWS, *STREAM_TABLES)
FIXED_TRAFFIC_COLUMNS = ("grain", "window_start", "window_end", "revision", "batch")


@dataclass(frozen=True)
class Warehouse:
    """The tables of a job. A batch exists for readers once its row is in `batches`."""

    home: Path
    job: str

    @cached_property
    def folder(self) -> Path:
        layout = Layout(self.home, self.job)
        if not layout.current.is_symlink():
            raise UsageError(
                f"job {self.job} has no tables under {self.home} yet; `tidemark run {self.job}` makes them"
            )
        return layout.current.resolve()

    @cached_property
    def _batches(self) -> DeltaTable:
        return DeltaTable(str(self.folder / BATCHES))

    def cut(self) -> Cut:
        """The newest cut."""
        self._batches.update_incremental()
        return newest_cut(self._batches)

    def table(self, name: str, cut: Cut) -> DeltaTable:
        """The table as it was at the cut; empty, as it was made, where the cut does not know it."""
        version = None if name == BATCHES else cut.versions.get(name, 0)
        return DeltaTable(str(self.folder / name), version=version)

    def connect(self, cut: Cut | None = None, names: Collection[str] = ALL) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with tables and views (all, or those named) at one cut, that can read nothing else."""
        at = cut or self.cut()
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        views = {name: text for name, text in self.views(at).items() if name in names}
        for name in STREAM_TABLES:
            if name in names or name.removesuffix("_live") in views:
                connection.register(name, self.table(name, at).to_pyarrow_dataset())
        for name, text in views.items():
            connection.execute(f"CREATE TEMP VIEW {name} AS {text}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def views(self, cut: Cut) -> dict[str, str]:
        """The text of each view, the same for DuckDB and Spark SQL."""
        texts = {name: Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8") for name in VIEWS}
        schema = pa.schema(self.table(TRAFFIC_LIVE, cut).schema())
        columns = [name for name in schema.names if name not in FIXED_TRAFFIC_COLUMNS]
        keys = ["grain", "window_start", *read_json(self.folder / "generation.json")["dimensions"]]
        texts["traffic"] = texts["traffic"].format(columns=", ".join(columns), keys=", ".join(keys))
        return texts

    def sql(self, text: str, cut: Cut | None = None) -> pa.Table:
        """The answer to one SELECT; UsageError says what is wrong with it."""
        connection = self.connect(cut, _named(text))
        try:
            statements = connection.extract_statements(text)
            if len(statements) != 1:
                raise UsageError("write exactly one SELECT statement")
            if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                raise UsageError("queries only read: write a SELECT; the stream and the batch side write the tables")
            return connection.sql(text).to_arrow_table()
        except duckdb.CatalogException as error:
            raise UsageError(_unknown_table(str(error))) from None
        except duckdb.Error as error:
            raise UsageError(" ".join(str(error).split())) from None
        finally:
            connection.close()


def _named(text: str) -> set[str]:
    """The tables and views that the text may mean: those it names, or all where it names none (`SHOW TABLES`)."""
    return {name for name in ALL if re.search(rf"\b{name}\b", text, re.IGNORECASE)} or {*ALL}


def _unknown_table(message: str) -> str:
    """What exists, where a name does not."""
    wanted = re.search(r"Table with name (\S+) does not exist", message)
    if not wanted:
        return " ".join(message.split())
    close = difflib.get_close_matches(wanted[1], ALL, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"there is no table {wanted[1]}; {hint}tables and views: {', '.join(ALL)}"
