"""Who is told of what, how often, and when not."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from verlwatch.config import Config, apply, settings
from verlwatch.config._telling import offsets, parse_span, parse_window
from verlwatch.core.settings import Maintenance, Policy, Route, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    Loads = Callable[[str | bytes], Config]
    Complains = Callable[[str | bytes], list[str]]

HOOK = "receivers: [{name: ops, type: webhook, url: 'https://h'}, {name: team, type: webhook, url: 'https://t'}]\n"


def at(text: str, zone: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_the_defaults_are_the_core_s_own() -> None:
    core = settings(Config())
    assert core.policy == Policy()
    assert (core.routes, core.quiet_hours, core.maintenance, core.zone) == ((), (), (), ())


def test_the_core_gets_routes_windows_and_intervals(loads: Loads) -> None:
    core = settings(
        loads(
            HOOK + "timezone: Europe/Berlin\nquiet_hours: ['22:00-08:00', 'sat,sun 00:00-24:00']\n"
            "routes: [{severity: critical, run: 'prod-*', receivers: [ops, team]}, {receivers: [team]}]\n"
            "maintenance: [{when: 'sun 02:00-06:00'}, {when: 2026-03-01 02:00 to 2026-03-01 06:00, run: a}]\n"
            "incidents: {repeat_critical: off, repeat_warning: 1d, update_interval: 0s}\n"
        )
    )
    assert core.routes == (Route(("ops", "team"), "critical", "*", "prod-*"), Route(("team",)))
    assert core.quiet_hours == (Window(1320, 480), Window(0, 1440, frozenset({5, 6})))
    begin = at("2026-03-01 02:00", "Europe/Berlin")
    assert core.maintenance == (
        Maintenance("*", Window(120, 360, frozenset({6}))),
        Maintenance("a", None, begin, begin + 4 * 3600),
    )
    assert (core.policy.repeat_critical_s, core.policy.repeat_warning_s, core.policy.update_s) == (math.inf, 86_400, 0)
    assert len(core.zone) > 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("quiet_hours: ['22:00']", "1:15: quiet_hours[0]: must be a time of day"),
        ("quiet_hours: ['22:00-24:30']", "has a time past midnight"),
        ("quiet_hours: ['funday 22:00-23:00']", "'funday' is no day; give of mon, tue"),
        ("maintenance: [{when: 'sun 2-3'}]", "must be a time of day"),
        ("maintenance: [{when: 2026-03-01 to 2026-03-02}]", "must be a weekly window or a span"),
        ("maintenance: [{when: 2026-03-02 01:00 to 2026-03-01 01:00}]", "ends before it begins"),
        (
            "timezone: Europe/Berlin\nmaintenance: [{when: 2026-03-29 02:30 to 2026-03-29 03:10}]",
            "2:22: maintenance[0].when: there is no 2026-03-29 02:30 in Europe/Berlin: the clocks skip it",
        ),
        (
            "timezone: Pacific/Apia\nmaintenance: [{when: 2011-12-29 10:00 to 2011-12-30 10:00}]",
            "maintenance[0].when: there is no 2011-12-30 10:00 in Pacific/Apia",
        ),
        ("maintenance: [{when: 0001-01-01 00:00 to 9999-12-31 23:59}]", "0001-01-01 00:00 is too far off"),
        (
            "timezone: America/New_York\nmaintenance: [{when: 2026-01-01 00:00 to 9999-12-31 23:59}]",
            "9999-12-31 23:59 is too far off",
        ),
        ("timezone: Mars/Olympus", "'Mars/Olympus' is no time zone"),
        ("timezone: ../../etc/passwd", "is no time zone"),
        ("incidents: {repeat_warning: 1s}", "must be 5m or more, or off"),
        ("incidents: {repeat_warning: often}", "or off"),
        ("incidents: {repeat_warning: [1]}", "or off"),
        ("incidents: {repeats: 1h}", "unknown key"),
        (
            "routes: [{receivers: [opps]}]",
            "routes[0].receivers[0]: opps is the name of no receiver; there are none",
        ),
        ("routes: [{receivers: [x], severity: bad}]", "severity"),
        ("routes: [{reciever: [x]}]", "did you mean receivers?"),
        ("maintenance: [{when: 'sun 02:00-03:00', runs: x}]", "did you mean run?"),
    ],
)
def test_what_is_wrong_is_told_in_the_words_of_who_wrote_it(complains: Complains, text: str, words: str) -> None:
    assert any(words in line for line in complains(text))


def test_a_route_names_the_receivers_there_are(complains: Complains) -> None:
    (line,) = complains(HOOK + "routes: [{receivers: [ops, opps]}]")
    assert line.endswith("opps is the name of no receiver; the receivers are ops, team")


def test_receivers_given_as_flags_replace_the_routes_too(loads: Loads) -> None:
    config = apply(loads(HOOK + "routes: [{receivers: [ops]}]"), {}, {"webhook_url": "https://other"})
    assert config.routes == ()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Shanghai", "Australia/Lord_Howe"])
def test_offsets_hold_to_the_second_for_years(zone: str) -> None:
    table = offsets(ZoneInfo(zone))
    for begin, offset in table:
        for second, expected in ((begin - 1, None), (begin, offset), (begin + 1, offset)):
            there = datetime.fromtimestamp(second, UTC).astimezone(ZoneInfo(zone)).utcoffset()
            assert there is not None
            assert expected is None or there.total_seconds() == expected
    changes = [(at, offset) for at, offset in table[1:]]
    assert len(changes) == (0 if zone == "Asia/Shanghai" else 60)


def test_days_may_run_over_the_end_of_the_week() -> None:
    assert parse_window("fri-mon 1:05-2:00") == Window(65, 120, frozenset({4, 5, 6, 0}))


def test_a_span_may_carry_its_own_offset() -> None:
    assert parse_span("2026-03-01T02:00+08:00 to 2026-03-01T03:00+08:00", UTC)[0] == at(
        "2026-03-01 02:00", "Asia/Shanghai"
    )
