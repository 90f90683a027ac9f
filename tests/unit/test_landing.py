"""Files that land: whole, in order, none over another, all or none."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from include.errors import UsageError
from include.producer.landing import Landing, land, landing_name


def write(path: Path, text: str = "1,2,3,pv,1511658000\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def in_time_order(directory: Path) -> Sequence[Path]:
    return sorted(directory.iterdir(), key=lambda file: file.stat().st_mtime_ns)


def modified_ms(directory: Path) -> list[int]:
    return [file.stat().st_mtime_ns // 1_000_000 for file in in_time_order(directory)]


def test_files_land_in_the_order_given_with_rising_times_and_names(tmp_path: Path) -> None:
    files = [write(tmp_path / name, name) for name in ("b.csv", "c.csv", "a.csv")]
    landed = land(files, tmp_path / "landing")
    assert (
        [file.path for file in landed]
        == in_time_order(tmp_path / "landing")
        == sorted((tmp_path / "landing").iterdir())
    )
    assert [file.path.read_text() for file in landed] == ["b.csv", "c.csv", "a.csv"]
    assert len(set(modified_ms(tmp_path / "landing"))) == 3


def test_old_time_of_a_file_is_not_kept(tmp_path: Path) -> None:
    first, second = write(tmp_path / "first.csv"), write(tmp_path / "second.csv")
    os.utime(second, (1, 1))
    landed = land([first, second], tmp_path / "landing")
    assert [file.path for file in landed] == in_time_order(tmp_path / "landing")


def test_landed_file_is_newer_than_one_dated_ahead_of_the_clock(tmp_path: Path) -> None:
    ahead = write(tmp_path / "landing" / "ahead.csv")
    os.utime(ahead, ns=(4_102_444_800_000_000_001,) * 2)
    (landed,) = land([write(tmp_path / "new.csv")], tmp_path / "landing")
    assert landed.path.stat().st_mtime_ns // 1_000_000 > 4_102_444_800_000


def test_times_rise_when_the_clock_stands_still_or_goes_back(tmp_path: Path) -> None:
    ticks = iter([100.0, 100.0, 50.0, 100.0005])
    landing = Landing(tmp_path / "landing", clock=lambda: next(ticks))
    for name in "dcba":
        with landing.file(name) as out:
            out.write(name.encode())
    assert [file.read_text() for file in in_time_order(landing.directory)] == ["d", "c", "b", "a"]
    assert modified_ms(landing.directory) == [100_000, 100_001, 100_002, 100_003]


def test_second_file_of_the_same_name_does_not_replace_the_first(tmp_path: Path) -> None:
    file = write(tmp_path / "clicks.csv", "first\n")
    (first,) = land([file], tmp_path / "landing")
    file.write_text("second\n")
    (second,) = land([file], tmp_path / "landing")
    assert (first.path.read_text(), second.path.read_text()) == ("first\n", "second\n")


def test_two_writers_at_the_same_moment_do_not_replace_each_other(tmp_path: Path) -> None:
    writers = [Landing(tmp_path, clock=lambda: 100.0) for _ in range(2)]
    staged = [writer.stage("clicks.csv") for writer in writers]
    staged[0].publish()
    third = Landing(tmp_path, clock=lambda: 100.0)
    third._newest_ms = 0
    staged.append(third.stage("clicks.csv"))
    assert len({place.path for place in staged}) == 3


@pytest.mark.parametrize("name", ["_clicks.csv", ".clicks.csv", "clicks.csv._COPYING_", "10:00.csv", "a[1]{2}*?.csv"])
def test_no_name_hides_a_file_from_spark(tmp_path: Path, name: str) -> None:
    (landed,) = land([write(tmp_path / name)], tmp_path / "landing")
    assert landed.path.name[0].isdigit()
    assert not landed.path.name.endswith("._COPYING_")
    assert not set(landed.path.name) & set(":*?[]{}\\")


def test_gzip_file_keeps_its_ending_and_content(tmp_path: Path) -> None:
    file = tmp_path / "clicks.csv.gz"
    file.write_bytes(gzip.compress(b"1,2,3,pv,1511658000\n"))
    (landed,) = land([file], tmp_path / "landing")
    assert landed.path.name.endswith("-clicks.csv.gz")
    assert landed.path.read_bytes() == file.read_bytes()


def test_longest_name_still_lands_with_its_ending(tmp_path: Path) -> None:
    (landed,) = land([write(tmp_path / f"{'x' * 251}.csv")], tmp_path / "landing")
    assert landed.path.name.endswith("xxx.csv")


def test_cut_of_a_long_name_keeps_whole_letters() -> None:
    assert set(landing_name("é" * 120 + "x.csv")) == set("éx.csv")


def test_empty_file_lands(tmp_path: Path) -> None:
    (landed,) = land([write(tmp_path / "empty.csv", "")], tmp_path / "landing")
    assert landed.bytes == landed.path.stat().st_size == 0


def bad_files(tmp_path: Path) -> dict[str, Path]:
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(os.urandom(10_000))[:5_000])
    os.mkfifo(tmp_path / "pipe")
    return {
        "does not exist": tmp_path / "missing.csv",
        "is a directory": tmp_path,
        "is not a regular file": tmp_path / "pipe",
        "is not a whole gzip file": cut,
        "in the landing directory already": write(tmp_path / "landing" / "landed.csv"),
    }


def test_one_bad_file_keeps_all_from_landing(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv")
    for reason, bad in bad_files(tmp_path).items():
        with pytest.raises(UsageError, match=reason):
            land([good, bad], tmp_path / "landing")
    assert [file.name for file in (tmp_path / "landing").iterdir()] == ["landed.csv"]


def test_one_error_names_every_bad_file(tmp_path: Path) -> None:
    bad = bad_files(tmp_path)
    with pytest.raises(UsageError) as error:
        land(list(bad.values()), tmp_path / "landing")
    assert all(reason in str(error.value) for reason in bad)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "secret.csv")
    file.chmod(0)
    with pytest.raises(UsageError, match="cannot be read"):
        land([file], tmp_path / "landing")


def test_copy_that_fails_midway_leaves_nothing(tmp_path: Path) -> None:
    files = [write(tmp_path / "first.csv"), write(tmp_path / "second.csv")]

    def full_disk(copied: Path) -> None:
        if copied == files[1]:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        land(files, tmp_path / "landing", full_disk)
    assert list((tmp_path / "landing").iterdir()) == []


def test_file_is_hidden_until_it_is_whole_and_gone_if_it_fails(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    with landing.file("clicks.csv") as out:
        out.write(b"half")
        assert all(file.name.startswith(".") for file in tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), landing.file("clicks.csv") as out:
        raise KeyboardInterrupt
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"half"]
