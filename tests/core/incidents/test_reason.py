"""Should anybody be told?  The whole answer as one table of sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from verlwatch.core.incidents import reason
from verlwatch.core.types import Diagnosis, Incident, Reason

LEAD = Diagnosis("phase_spike", "r", "gen", "warning", 120, 120, 2.0, 40.0, 80.0, 40.0, "slow", ("seen",))
UNTOLD = Incident("id", "r", 1, "firing", "warning", (LEAD,), 120, 0.0, 2.0, told_ratio=2.0)
FIRING = replace(UNTOLD, notified=("opened",))


def lead(**values: Any) -> tuple[Diagnosis, ...]:
    return (replace(LEAD, **values),)


TABLE: list[tuple[str, Incident | None, Incident, Reason | None]] = [
    ("it fires for the first time", None, UNTOLD, "opened"),
    ("it waits for an explanation", None, replace(UNTOLD, state="pending"), None),
    ("it has waited long enough", replace(UNTOLD, state="pending"), UNTOLD, "opened"),
    ("it has fired before anybody watched", UNTOLD, UNTOLD, "opened"),
    ("it has become worse before anybody watched", UNTOLD, replace(UNTOLD, severity="critical"), "opened"),
    ("it has ended before anybody watched", UNTOLD, replace(UNTOLD, state="closed", closed_as="resolved"), None),
    ("nothing has changed", FIRING, FIRING, None),
    ("it lasts a step longer", FIRING, replace(FIRING, lost_s=99.0), None),
    ("the slow step turns out to last", FIRING, replace(FIRING, diagnoses=lead(rule="phase_shift")), "escalated"),
    ("it becomes critical", FIRING, replace(FIRING, severity="critical"), "escalated"),
    ("it becomes less severe", replace(FIRING, severity="critical"), FIRING, None),
    ("it grows by a quarter", FIRING, replace(FIRING, diagnoses=lead(ratio=2.5)), "updated"),
    ("it shrinks by a quarter", FIRING, replace(FIRING, diagnoses=lead(ratio=1.5)), "updated"),
    ("it creeps", replace(FIRING, diagnoses=lead(ratio=2.4)), replace(FIRING, diagnoses=lead(ratio=2.6)), "updated"),
    ("it moves a little", FIRING, replace(FIRING, diagnoses=lead(ratio=2.2)), None),
    ("another phase leads it now", FIRING, replace(FIRING, diagnoses=lead(subject="ref", ratio=1.1)), "updated"),
    ("it goes back", FIRING, replace(FIRING, state="closed", closed_as="resolved"), "resolved"),
    ("it becomes the normal case", FIRING, replace(FIRING, state="closed", closed_as="accepted"), "accepted"),
    ("the run ends", FIRING, replace(FIRING, state="closed", closed_as="run ended"), "run ended"),
    ("nothing is heard of it any more", FIRING, replace(FIRING, state="closed", closed_as="expired"), "expired"),
    (
        "it ends before anybody was told",
        replace(UNTOLD, state="pending"),
        replace(UNTOLD, state="closed", closed_as="resolved"),
        None,
    ),
]


@pytest.mark.parametrize(("sentence", "before", "after", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_reason(sentence: str, before: Incident | None, after: Incident, expected: Reason | None) -> None:
    assert reason(before, after) == expected
