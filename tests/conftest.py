"""Fixtures that tests share; one Spark session for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness import SHARED, make_spec


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from spark_jobs.session import open_session

    session = open_session(make_spec(), tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose path has a space in it."""
    return tmp_path / "a home"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the shared click logs are not beside this checkout")
    return SHARED
