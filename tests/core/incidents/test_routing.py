"""Who hears of an incident."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verlwatch.core.incidents import Route, receivers, route
from verlwatch.core.types import Diagnosis, Incident, Notice, Severity

EVERYBODY = ("pager", "team", "night")
ROUTES = (
    Route(("pager", "team"), "critical", run="prod-*"),
    Route(("night",), rule="agent_*"),
    Route((), run="scratch*"),
    Route(("team",), "warning"),
)
LEAD = Diagnosis("phase_shift", "prod-7b", "gen", "warning", 120, 120, 2.0, 40.0, 80.0, 40.0, "slow", ("seen",))


@pytest.mark.parametrize(
    ("severity", "rule", "run", "names"),
    [
        ("critical", "phase_shift", "prod-7b", ("pager", "team")),
        ("warning", "phase_shift", "prod-7b", ("team",)),
        ("critical", "phase_shift", "test", ("team",)),
        ("warning", "agent_lost", "agent node-3", ("night",)),
        ("critical", "agent_lost", "prod-7b", ("pager", "team")),
        ("critical", "phase_shift", "scratch-1", ()),
        ("info", "phase_shift", "test", EVERYBODY),
    ],
)
def test_the_first_route_that_takes_an_incident_counts(
    severity: Severity, rule: str, run: str, names: tuple[str, ...]
) -> None:
    assert route(ROUTES, EVERYBODY, severity, rule, run) == names


def test_without_routes_all_are_told() -> None:
    assert route((), EVERYBODY, "warning", "phase_shift", "r") == EVERYBODY


def test_a_receiver_that_is_no_longer_configured_is_not_told() -> None:
    assert route(ROUTES, ("team",), "critical", "phase_shift", "prod-7b") == ("team",)


def test_who_was_told_that_it_is_open_is_told_how_it_goes_on_and_nobody_else_of_its_end() -> None:
    warned = Notice(1.0, "opened", "warning", ("phase_shift", "gen"), 2.0, ("team", "night"))
    worse = Incident("id", "prod-7b", 1, "firing", "critical", (LEAD,), 120, 0.0, 2.0, told=(warned,))
    assert receivers(ROUTES, EVERYBODY, worse) == ("pager", "team", "night")
    ended = replace(worse, state="closed", closed_as="resolved")
    assert receivers(ROUTES, EVERYBODY, ended) == ("team", "night")
