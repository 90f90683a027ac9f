"""Every number of the live stream once more, in plain Python, sharing nothing with the product.

It takes the rows as they were cut into batches and says what each table must hold at the end.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

CLASSES = ("on_time", "late", "too_late", "duplicate", "quarantined")


@dataclass(frozen=True)
class Click:
    """A row as the oracle sees it; `fault` is the reason for quarantine that needs no clock."""

    at: int = 0  # seconds
    visitor: str | None = None
    item: str | None = None
    action: str = "view"
    event_id: str | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Rules:
    delay: int = 10
    lateness: int = 3600
    ahead: int = 300
    now: int = 2_000_000_000
    remember: int = 600
    zone: str = "UTC"
    standard: int = 0  # seconds that the zone's standard time is ahead of UTC: sliding windows count from there
    length: int = 3600
    slide: int = 300
    top: int = 10


@dataclass
class Expected:
    ledgers: list[dict[str, int]] = field(default_factory=list)
    watermarks: list[int | None] = field(default_factory=list)
    stored: list[tuple[Click, str]] = field(default_factory=list)
    batch_of: list[int] = field(default_factory=list)  # of each stored click
    refused: list[tuple[int, str]] = field(default_factory=list)  # batch and reason of each row in quarantine
    traffic: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    hot: dict[int, tuple[bool, list[tuple[str, int]]]] = field(default_factory=dict)


def expect(batches: list[list[Click]], rules: Rules) -> Expected:
    out = Expected()
    watermark: int | None = None
    seen: dict[str, int] = {}
    live: list[Click] = []
    for number, batch in enumerate(batches):
        ledger = dict.fromkeys(("read", *CLASSES), 0)
        newest: int | None = None
        for click in batch:
            ledger["read"] += 1
            kind = _classify(click, watermark, seen, rules)
            ledger[kind] += 1
            if kind == "quarantined":
                out.refused.append((number, click.fault or "future"))
            if kind in ("duplicate", "quarantined"):
                continue
            if click.event_id is not None:
                seen[click.event_id] = click.at
            newest = click.at if newest is None else max(newest, click.at)
            out.stored.append((click, kind))
            out.batch_of.append(number)
            if kind != "too_late":
                live.append(click)
        if newest is not None:
            watermark = newest - rules.delay if watermark is None else max(watermark, newest - rules.delay)
        out.ledgers.append(ledger)
        out.watermarks.append(watermark)
    out.traffic = traffic(live, rules.zone)
    out.hot = hot_items(live, watermark, rules)
    return out


def _classify(click: Click, watermark: int | None, seen: dict[str, int], rules: Rules) -> str:
    if click.fault or click.at > rules.now + rules.ahead:
        return "quarantined"
    known = seen.get(click.event_id) if click.event_id is not None else None
    if known is not None and (watermark is None or known >= watermark - rules.remember):
        return "duplicate"
    if watermark is None or click.at >= watermark:
        return "on_time"
    return "late" if click.at >= watermark - rules.lateness else "too_late"


def traffic(clicks: list[Click], zone: str) -> dict[tuple[str, int], tuple[int, int]]:
    """(grain, window start) -> page views and distinct visitors, at minute, hour and day of the zone."""
    views: Counter[tuple[str, int]] = Counter()
    visitors: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    touched: set[tuple[str, int]] = set()
    for click in clicks:
        for grain in ("1 minute", "1 hour", "1 day"):
            key = (grain, _start(click.at, grain, zone))
            touched.add(key)
            if click.action == "view":
                views[key] += 1
                if click.visitor is not None:
                    visitors[key].add(click.visitor)
    return {key: (views[key], len(visitors[key])) for key in touched}


def _start(at: int, grain: str, zone: str) -> int:
    local = datetime.fromtimestamp(at, ZoneInfo(zone))
    if grain == "1 day":
        local = local.replace(hour=0, minute=0, second=0, fold=0)
    elif grain == "1 hour":
        local = local.replace(minute=0, second=0)
    else:
        local = local.replace(second=0)
    return int(local.timestamp())


def hot_items(
    clicks: list[Click], watermark: int | None, rules: Rules
) -> dict[int, tuple[bool, list[tuple[str, int]]]]:
    """Window end -> closed, and the ranked items."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for click in clicks:
        if click.action != "view" or click.item is None:
            continue
        end = (click.at + rules.standard) // rules.slide * rules.slide + rules.slide - rules.standard
        while end - rules.length <= click.at:
            counts[end][click.item] += 1
            end += rules.slide
    return {
        end: (watermark is not None and end <= watermark, ranked(counter, rules.top)) for end, counter in counts.items()
    }


def ranked(counter: Counter[str], top: int) -> list[tuple[str, int]]:
    def order(pair: tuple[str, int]) -> tuple[Any, ...]:
        item, views = pair
        number = item.lstrip("-").isdigit()
        return (-views, not number, int(item) if number else 0, item)

    return sorted(counter.items(), key=order)[:top]


def local_day(at: int, zone: str) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).astimezone(ZoneInfo(zone)).date()
