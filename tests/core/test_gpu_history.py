"""Samples of GPUs become rows for the store, one for each host and instant."""

from __future__ import annotations

import math

import pytest

from tests.core.gpu_fleet import sample
from verlwatch.core.engine import Engine, merged
from verlwatch.core.types import Event, Extract, GpuCell, GpuRow, Outcome

NOW = 1_000_000.0


def told(*events: Event, now: float = NOW) -> Outcome:
    return Engine().accept([Extract("gpu", "r", events)], now)


def test_the_cards_of_a_host_at_one_instant_are_one_row_with_what_is_known_of_each() -> None:
    said = {"utilization": 97.0, "power_w": 412.5, "temperature_c": 61.0}
    events = [sample("n1", 0, NOW, 28.5, pids="71:25", ranks="71:8", **said), sample("n1", 1, NOW + 0.1, 27.0)]
    assert told(*events).gpus == (
        GpuRow("r", "n1", NOW, (GpuCell("0", "8", 80.0, 28.5, 97.0, 412.5, 61.0), GpuCell("1", None, 80.0, 27.0))),
    )


def test_hosts_and_instants_are_rows_of_their_own_and_pieces_of_one_are_joined() -> None:
    engine = Engine()
    pieces = [
        Extract("gpu", "r", (sample("n1", 0, NOW, 1.0),)),
        Extract("gpu", "r", (sample("n1", 1, NOW, 2.0), sample("n2", 0, NOW, 3.0))),
        Extract("gpu", "r", (sample("n1", 0, NOW + 10, 4.0),)),
        Extract("gpu", "s", (sample("n1", 0, NOW, 5.0),)),
    ]
    rows = merged([engine.accept(pieces, NOW), engine.accept([], NOW)]).gpus
    assert [(row.run, row.host, row.at - NOW, [cell.used_gb for cell in row.cells]) for row in rows] == [
        ("r", "n1", 0, [1.0, 2.0]),
        ("r", "n2", 0, [3.0]),
        ("r", "n1", 10, [4.0]),
        ("s", "n1", 0, [5.0]),
    ]


def test_what_comes_too_late_to_be_compared_is_kept_as_well() -> None:
    engine = Engine()
    for second in range(0, 600, 10):
        engine.accept([Extract("gpu", "r", (sample("n1", 0, NOW + second, 28.0),))], NOW + second)
    late = engine.accept([Extract("gpu", "r", (sample("n1", 0, NOW - 600, 30.0),))], NOW + 600)
    assert [row.at for row in late.gpus] == [NOW - 600]


@pytest.mark.parametrize("at", [None, -1.0, NOW + 3600, math.nan, math.inf])
def test_an_instant_that_no_clock_shows_is_not_kept(at: float | None) -> None:
    event = sample("n1", 0, NOW, 28.0)
    strange = Event(event.origin, event.name, event.attributes, scope=event.scope, at=at)
    assert told(strange).gpus == ()


def test_values_that_are_no_numbers_are_unknown() -> None:
    (row,) = told(sample("n1", 0, NOW, 28.0, utilization="N/A", power_w=math.nan)).gpus
    assert row.cells == (GpuCell("0", None, 80.0, 28.0),)


def test_samples_alone_are_worth_a_commit() -> None:
    assert Outcome(gpus=(GpuRow("r", "n1", NOW, ()),))
