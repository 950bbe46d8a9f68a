"""Steps without numbers are counted."""

from __future__ import annotations

import json

from verlwatch.core._ordinals import WRITERS, Ordinals
from verlwatch.core.types import Event, Origin, Samples, Writer


def told(ordinals: Ordinals, phase: str, seconds: float, pid: int = 0) -> Samples | None:
    origin = Origin("train.log", 1, 10, Writer("T", pid), "tutorial_time")
    return ordinals.take(Event(origin, "phase_time", {"phase": phase, "seconds": seconds}))


def test_a_phase_that_comes_again_ends_the_step_before() -> None:
    ordinals = Ordinals()
    assert told(ordinals, "gen", 2.5) is None
    assert told(ordinals, "ref", 0.5) is None
    step = told(ordinals, "gen", 3.5)
    assert step is not None
    assert (step.step, dict(step.values)) == (1, {"timing_s/gen": 2.5, "timing_s/ref": 0.5, "timing_s/step": 3.0})
    again = Ordinals()
    again.restore(json.loads(json.dumps(ordinals.state())))
    later = told(again, "gen", 4.5)
    assert later is not None
    assert (later.step, later.values["timing_s/gen"]) == (2, 3.5)


def test_writers_are_counted_apart_and_are_not_without_number() -> None:
    ordinals = Ordinals()
    told(ordinals, "gen", 1.0, pid=1)
    assert told(ordinals, "gen", 2.0, pid=2) is None
    for pid in range(3, 2 * WRITERS):
        told(ordinals, "gen", 1.0, pid=pid)
    assert told(ordinals, "gen", 2.0, pid=2 * WRITERS - 1) is None
    assert told(ordinals, "gen", 2.0, pid=1) is not None


def test_what_is_no_phase_is_not_counted() -> None:
    ordinals = Ordinals()
    assert told(ordinals, "communication", 1.0) is None
    assert told(ordinals, "communication", 1.0) is None
