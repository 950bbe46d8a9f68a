"""The sections that say who is told of what, how often, and when not: routes, incidents, quiet hours, maintenance."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from verlwatch import fields
from verlwatch.core import settings as core
from verlwatch.core.types import Severity
from verlwatch.fields import Duration, Model, Name, within

OFF = "off"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = r"([01]?[0-9]|2[0-4]):([0-5][0-9])"
_WEEKLY = re.compile(rf"(?:([a-z,-]+)\s+)?{_TIME}\s*-\s*{_TIME}", re.IGNORECASE)
_ONCE = re.compile(r"(\S+[ T]\S+)\s+to\s+(\S+[ T]\S+)")
_MIDNIGHT = 24 * 60
_KNOWN_YEARS = (2020, 2050)
_YEARS = (2000, 2200)
_WEEK_S = 7 * 86_400


# ------------------------------------------------------------------------------------------------ times
def parse_window(text: str) -> core.Window:
    """A weekly window of ``22:00-08:00`` or ``mon-fri 22:00-08:00`` or ``sat,sun 00:00-24:00``."""
    match = _WEEKLY.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be a time of day, with days before it or not; write for example mon-fri 22:00-08:00")
    days, *times = match.groups()
    begin, end = (60 * int(hour) + int(minute) for hour, minute in (times[:2], times[2:]))
    if max(begin, end) > _MIDNIGHT or begin == _MIDNIGHT:
        raise ValueError("has a time past midnight; the last one is 24:00, and a window may end on the next day")
    return core.Window(begin, end, frozenset(_days(days.lower()) if days else range(7)))


def _days(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise ValueError(f"{part[:20]!r} is no day; give of {', '.join(DAYS)}, for example mon-fri or sat,sun")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        yield from (day % 7 for day in range(begin, end + 1 if end >= begin else end + 8))


def parse_span(text: str, zone: tzinfo | None = UTC) -> tuple[float, float]:
    """Epoch seconds of ``2026-03-01 02:00 to 2026-03-01 06:00``, local time of ``zone`` (None: the host's).

    Raises ValueError, also for a time that the clocks of ``zone`` skip.
    """
    match = _ONCE.fullmatch(text.strip())
    try:
        begin, end = (datetime.fromisoformat(part) for part in (match.groups() if match else ("", "")))
    except ValueError:
        raise ValueError(
            "must be a weekly window or a span; write for example sun 02:00-06:00, or 2026-03-01 02:00 to "
            "2026-03-01 06:00"
        ) from None
    starts_at, ends_at = _epoch(begin, zone), _epoch(end, zone)
    if ends_at <= starts_at:
        raise ValueError("ends before it begins; put the earlier time first")
    return starts_at, ends_at


def _epoch(at: datetime, zone: tzinfo | None) -> float:
    """Epoch seconds of a time, local time of ``zone`` where it has no offset of its own."""
    shown = at.isoformat(" ", "minutes")
    if not _YEARS[0] <= at.year < _YEARS[1]:
        raise ValueError(f"{shown} is too far off; write a time from {_YEARS[0]} on and before {_YEARS[1]}")
    seconds = (at if at.tzinfo or zone is None else at.replace(tzinfo=zone)).timestamp()
    if datetime.fromtimestamp(seconds, at.tzinfo or zone).replace(tzinfo=at.tzinfo) != at:
        raise ValueError(f"there is no {shown} in {zone or 'the time zone of this host'}: the clocks skip it")
    return seconds


def is_weekly(text: str) -> bool:
    """Whether it is written as a weekly window."""
    return " to " not in text


def _window(text: str) -> str:
    parse_window(text)
    return text


def _when(text: str) -> str:
    _ = parse_window(text) if is_weekly(text) else parse_span(text)
    return text


def parse_zone(text: str) -> str:
    """``text`` if it names a time zone."""
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):  # not found is a KeyError
        raise ValueError(
            f"{text[:40]!r} is no time zone that this host knows; write for example Europe/Berlin"
        ) from None
    return text


def parse_interval(value: object) -> float:
    """Seconds of a duration; ``off`` is never."""
    if value == OFF or (isinstance(value, float) and value > 0 and math.isinf(value)):
        return math.inf
    try:
        return fields.parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{error}; or off") from None


Window = Annotated[str, AfterValidator(_window), WithJsonSchema({"type": "string", "examples": ["22:00-08:00"]})]
When = Annotated[str, AfterValidator(_when), WithJsonSchema({"type": "string", "examples": ["sun 02:00-06:00"]})]
Timezone = Annotated[str, AfterValidator(parse_zone), WithJsonSchema({"type": "string", "examples": ["Europe/Berlin"]})]
Interval = Annotated[
    float, BeforeValidator(parse_interval), WithJsonSchema({"type": "string", "examples": ["4h", OFF]})
]


def _at_least(low: str) -> AfterValidator:
    least = fields.parse_duration(low)

    def check(value: float) -> float:
        if value < least:
            raise ValueError(f"must be {low} or more, or off")
        return value

    return AfterValidator(check)


# ------------------------------------------------------------------------------------------------ sections
class Route(Model):
    """Who hears of some incidents.  The first route that takes an incident counts."""

    receivers: tuple[Name, ...] = Field(description="Names of the receivers that are told; empty: nobody is.")
    severity: Severity = Field(
        default="info", description="Takes incidents at least as severe: `info`, `warning` or `critical`."
    )
    rule: str = Field(default="*", min_length=1, description="Takes incidents of the rules that fit (`*`, `?`, `[…]`).")
    run: str = Field(default="*", min_length=1, description="Takes incidents of the runs that fit (`*`, `?`, `[…]`).")


class Maintenance(Model):
    """When nobody is told of some runs."""

    when: When = Field(
        description="Every week, `sun 02:00-06:00`, or once, `2026-03-01 02:00 to 2026-03-01 06:00`; in `timezone`."
    )
    run: str = Field(default="*", min_length=1, description="The runs that nobody is told of (`*`, `?`, `[…]`).")


class Incidents(Model):
    """How often people are told of one incident, and what makes it worse."""

    repeat_critical: Annotated[Interval, _at_least("5m")] = Field(
        default="4h",
        validate_default=True,
        description="How often a critical incident that stays open is told again (5m or more), or `off`.",
    )
    repeat_warning: Annotated[Interval, _at_least("5m")] = Field(
        default="off",
        validate_default=True,
        description="How often a warning that stays open is told again (5m or more), or `off`.",
    )
    update_interval: Annotated[Duration, within(fields.parse_duration, "0s", "1d")] = Field(
        default="10m",
        validate_default=True,
        description="Least time between a message and an update of the same incident (0s to 1d).",
    )
    reopen_within_steps: int = Field(
        default=10,
        ge=0,
        le=1000,
        description="What comes back within so many steps of its end is the same incident, open again (0 to 1000).",
    )
    openings_per_hour: int = Field(
        default=3,
        ge=1,
        le=100,
        description="How often one incident is told as opened within an hour; then once as flapping (1 to 100).",
    )
    critical_after_steps: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="A warning that lasts so many steps and costs `critical_after_loss` is critical (1 to 100000).",
    )
    critical_after_loss: Annotated[Duration, within(fields.parse_duration, "0s", "365d")] = Field(
        default="1h",
        validate_default=True,
        description="Time that a warning must have cost to become critical (0s to 365d).",
    )


# ------------------------------------------------------------------------------------------------ for the core
def policy(incidents: Incidents) -> core.Policy:
    """What the core needs of the section ``incidents``."""
    return core.Policy(
        repeat_critical_s=incidents.repeat_critical,
        repeat_warning_s=incidents.repeat_warning,
        update_s=incidents.update_interval,
        reopen_steps=incidents.reopen_within_steps,
        openings_per_hour=incidents.openings_per_hour,
        critical_steps=incidents.critical_after_steps,
        critical_cost_s=incidents.critical_after_loss,
    )


def maintenance(entries: Iterable[Maintenance], zone: tzinfo | None) -> Iterator[core.Maintenance]:
    """What the core needs of the section ``maintenance``."""
    for entry in entries:
        if is_weekly(entry.when):
            yield core.Maintenance(entry.run, parse_window(entry.when))
        else:
            starts_at, ends_at = parse_span(entry.when, zone)
            yield core.Maintenance(entry.run, None, starts_at, ends_at)


def offsets(zone: tzinfo | None) -> core.Zone:
    """The offsets from UTC of ``zone`` (None: the host's) and when each begins, for the years that matter."""
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in _KNOWN_YEARS)
    found = [(float(first), _offset(first, zone))]
    for at in range(first + _WEEK_S, last, _WEEK_S):
        if (offset := _offset(at, zone)) != found[-1][1]:
            found.append((float(_first_second(at - _WEEK_S, at, offset, zone)), offset))
    return tuple(found)


def _first_second(before: int, after: int, offset: float, zone: tzinfo | None) -> int:
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _offset(middle, zone) == offset else (middle, after)
    return after


def _offset(at: int, zone: tzinfo | None) -> float:
    moment = datetime.fromtimestamp(at, UTC).astimezone(zone)
    return (moment.utcoffset() or timedelta()).total_seconds()
