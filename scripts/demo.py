"""`make demo`: a minute of live clicks with planted faults, and what the stream made of them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from include.settings import resolve_home  # noqa: E402
from spark_jobs.contracts.layout import Layout  # noqa: E402
from spark_jobs.sinks.json_files import read_json  # noqa: E402

TIDEMARK = str(PROJECT / ".venv" / "bin" / "tidemark")
RATE = 2_000
SECONDS = 45
FAULTS = {"late": 0.01, "out-of-order": 0.02, "duplicate": 0.005, "malformed": 0.002, "future": 0.001}
START_WITHIN_SECONDS = 120
COUNTED_AS = {
    "late": "late",
    "duplicate": "duplicate",
    "malformed": "quarantined, malformed",
    "future": "quarantined, future",
}


def main() -> int:
    home = resolve_home()
    layout = Layout(home, "demo")
    before = ledger(layout)
    print(f"1. The stream starts (home {home}); a second terminal may ask it at any time:", flush=True)
    print('   .venv/bin/tidemark query --job demo "SELECT * FROM traffic ORDER BY 1, 2"\n', flush=True)
    name = f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    layout.process_file.unlink(missing_ok=True)
    stream = subprocess.Popen([TIDEMARK, "run", "demo", "--home", str(home)])
    try:
        wait_until(layout.process_file.exists, stream)
        print(f"\n2. {RATE:,} clicks a second for {SECONDS} seconds, with planted faults:\n", flush=True)
        produce(home, name)
        rows = read_json(home / "produced" / f"{name}.json")["rows"]
        wait_until(lambda: ledger(layout)["read"] - before["read"] >= rows, stream)
    finally:
        stream.send_signal(signal.SIGTERM)
        code = stream.wait()
    if code:
        return code
    after = ledger(layout)
    counted = {key: after[key] - before[key] for key in after}
    show(home, name, counted)
    return 0


def ledger(layout: Layout) -> dict[str, int]:
    progress = read_json(layout.progress_file)
    empty = dict.fromkeys(("read", "on_time", "late", "too_late", "duplicate", "quarantined"), 0)
    return dict(progress["ledger"]["total"]) if progress else empty


def wait_until(is_so: Any, stream: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_WITHIN_SECONDS
    while not is_so():
        if stream.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("error: the stream did not come this far; its own words are above")
        time.sleep(0.2)


def produce(home: Path, name: str) -> None:
    faults = [part for fault, share in FAULTS.items() for part in (f"--{fault}", str(share))]
    pace = ["--rate", str(RATE), "--for", f"{SECONDS} seconds", "--seed", str(int(time.time()))]
    command = [TIDEMARK, "produce", "--synthetic", "--event-ids", "--job", "demo", "--name", name, "--home", str(home)]
    subprocess.run([*command, *pace, *faults], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def show(home: Path, name: str, counted: dict[str, int]) -> None:
    manifest = read_json(home / "produced" / f"{name}.json")
    reasons = {row["reason"]: row["rows"] for row in ask(home, QUARANTINED, name)}
    found = counted | {f"quarantined, {reason}": rows for reason, rows in reasons.items()}
    print("\n3. What was planted, and what the ledger says of this run:\n")
    print(f"   {'':14}{'planted':>10}{'counted':>10}")
    print(f"   {'rows':14}{manifest['rows']:>10,}{counted['read']:>10,}  read")
    for fault, key in COUNTED_AS.items():
        print(f"   {fault:14}{manifest['planted'][fault]:>10,}{found.get(key, 0):>10,}  {key}")
    print("   (rows of the very first batch have no watermark yet to be late against)")
    classes = " + ".join(f"{key} {count:,}" for key, count in counted.items() if key != "read")
    print(f"\n   read {counted['read']:,} = {classes}\n")
    print("4. The answers:\n")
    for sql in (TRAFFIC, HOT):
        subprocess.run([TIDEMARK, "query", sql, "--job", "demo", "--home", str(home)], check=True)
        print()
    print('All of it stays: .venv/bin/tidemark query --job demo "SELECT * FROM quarantine LIMIT 5"')


TRAFFIC = """SELECT grain, window_start, page_views, unique_visitors, status FROM traffic
WHERE grain <> '1 minute' OR page_views > 500 ORDER BY grain, window_start"""
HOT = """SELECT window_end, rank, item_id, page_views, closed FROM hot_items
WHERE window_end = (SELECT max(window_end) FROM hot_items) ORDER BY rank"""
QUARANTINED = "SELECT reason, count(*) AS rows FROM quarantine WHERE source LIKE '%{name}%' GROUP BY reason"


def ask(home: Path, sql: str, name: str) -> list[dict[str, Any]]:
    command = [TIDEMARK, "query", sql.format(name=name), "--job", "demo", "--home", str(home), "--json"]
    answer: list[dict[str, Any]] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer


if __name__ == "__main__":
    sys.exit(main())
