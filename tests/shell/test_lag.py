"""For how long a source has been behind."""

from __future__ import annotations

from verlwatch.shell._lag import MARKS, Lag


def test_who_is_behind_is_so_since_the_file_was_first_seen_that_long() -> None:
    lag = Lag()
    lag.see(1, size=100, judged=100, now=0.0)
    assert lag.seconds(100, now=5.0) == 0.0
    lag.see(1, size=200, judged=100, now=10.0)
    lag.see(1, size=300, judged=100, now=20.0)
    assert lag.seconds(100, now=25.0) == 15.0
    assert lag.seconds(250, now=25.0) == 5.0
    assert lag.seconds(300, now=25.0) == 0.0


def test_whoever_reads_all_the_time_and_stays_ten_seconds_behind_is_ten_seconds_behind() -> None:
    lag = Lag()
    for second in range(600):
        lag.see(1, size=1000 * (second + 1), judged=max(0, 1000 * (second - 9)), now=float(second))
    assert lag.seconds(1000 * 590, now=599.0) == 9.0


def test_a_backlog_of_hours_is_remembered_in_little_space_and_to_the_second() -> None:
    lag = Lag()
    for second in range(10_000):
        lag.see(1, size=1000 + second, judged=10, now=float(second))
    assert lag.seconds(10, now=10_000.0) == 10_000.0
    assert len(lag._marks) <= MARKS


def test_a_new_generation_begins_anew() -> None:
    lag = Lag()
    lag.see(1, size=500, judged=0, now=0.0)
    lag.see(2, size=5, judged=0, now=100.0)
    assert lag.seconds(0, now=101.0) == 1.0
