"""What is said of a run before its series have baselines."""

from __future__ import annotations

import json

import pytest

from verlwatch.core._early import Early
from verlwatch.core.types import SeriesKey

KEY = SeriesKey("r", "gen")


def shown(values: list[float], *, attempts: list[int] | None = None) -> list[int]:
    """The steps at which a change was open; state goes through JSON after each."""
    early, open_at = Early(), []
    for number, value in enumerate(values):
        early.update(KEY, ((attempts or [1] * len(values))[number], number), value, values[:number])
        again = Early()
        again.restore("r", json.loads(json.dumps(early.state())))
        assert again.state() == early.state()
        early = again
        if "gen" in early.changes:
            open_at.append(number)
    return open_at


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 3.1, 2.9, 3.0, 12.2], [4]),
        ([3.0, 3.1, 2.9, 12.2], [3]),
        ([3.0, 3.1, 12.2], []),
        ([30.0, 3.0, 3.1, 2.9, 3.0], []),
        ([3.0, 3.0, 3.0, 3.0, 5.9, 5.9], []),
        ([3.0, 3.0, 3.0, 3.0, 6.1, 5.0, 4.4, 3.0], [4, 5]),
        ([0.001, 0.001, 0.001, 0.001, 0.003], []),
        ([0.0, 0.0, 0.0, 0.0, 9.0], []),
    ],
)
def test_a_large_ratio_to_the_few_steps_before_is_told_while_it_lasts(values: list[float], expected: list[int]) -> None:
    assert shown(values) == expected


def test_the_first_steps_of_an_attempt_are_not_judged() -> None:
    assert shown([3.0] * 6 + [12.0] * 3 + [3.0], attempts=[1] * 6 + [2] * 4) == []
    assert shown([3.0] * 6 + [3.0] * 3 + [12.0], attempts=[1] * 6 + [2] * 4) == [9]


def test_the_onset_stays_and_the_ratio_is_todays() -> None:
    early = Early()
    for step, value in enumerate([3.0, 3.0, 3.0, 9.0, 12.0]):
        early.update(KEY, (1, step), value, [3.0] * step)
    change = early.changes["gen"]
    assert (change.onset, change.step, change.effect, change.before) == (3, 4, 4.0, 3.0)
