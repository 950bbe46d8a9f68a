"""Choosing among sources, and asking in a thread that may never come back."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import ClassVar

import pytest

from verlwatch.shell.gpu._card import Card, GpuSource, Sample, SourceError
from verlwatch.shell.gpu._choice import RETRY_S, Choice
from verlwatch.shell.gpu._feed import Feed


def kind(name: str, *, log: list[str], answers: Callable[[], Sample]) -> type[GpuSource]:
    """A source that notes what is asked of it."""

    class Source:
        NAME: ClassVar[str] = name
        asking = "3"

        def open(self, avoid: frozenset[str]) -> None:
            log.append(f"{name} open {''.join(avoid)}".strip())

        def sample(self) -> Sample:
            log.append(name)
            return answers()

        def close(self) -> None:
            log.append(f"{name} close")

    return Source


def good() -> Sample:
    return Sample((Card("0", {"used_gb": 1.0}),))


def bad() -> Sample:
    raise SourceError("it has no cards")


class _Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_first_source_that_gives_anything_is_used_and_stays_open() -> None:
    log: list[str] = []
    choice = Choice([kind("a", log=log, answers=good), kind("b", log=log, answers=good)], _Time())
    assert [choice().source, choice().source] == ["a", "a"]
    assert log == ["a open", "a", "a"]
    assert choice.why_not == {}


def test_a_source_that_gives_nothing_is_passed_over_for_a_minute() -> None:
    log: list[str] = []
    time = _Time()
    has_cards = False
    first = kind("a", log=log, answers=lambda: good() if has_cards else bad())
    choice = Choice([first, kind("b", log=log, answers=good)], time)
    assert [choice().source, choice().source] == ["b", "b"]
    assert log == ["a open", "a", "a close", "b open", "b", "b"]
    assert choice.why_not == {"a": "it has no cards"}
    has_cards = True
    time.now += RETRY_S
    assert choice().source == "a"
    assert choice.why_not == {}


def test_a_source_that_raises_what_nobody_thought_of_does_not_keep_the_next_from_being_asked() -> None:
    def broken() -> Sample:
        raise ValueError("nine digits too many")

    choice = Choice([kind("a", log=[], answers=broken), kind("b", log=[], answers=good)], _Time())
    assert choice().source == "b"
    assert choice.why_not == {"a": "unexpected: ValueError('nine digits too many')"}


def test_why_no_source_gives_anything_is_told_each() -> None:
    choice = Choice([kind("a", log=[], answers=bad), kind("b", log=[], answers=bad)], _Time())
    for _ in range(2):
        with pytest.raises(SourceError, match="a: it has no cards; b: it has no cards"):
            choice()
    with pytest.raises(SourceError, match="no source is left"):
        Choice([], _Time())()


def test_cards_and_sources_that_do_not_answer_are_avoided() -> None:
    log: list[str] = []
    kinds = [kind("a", log=log, answers=good), kind("b", log=log, answers=good)]
    assert Choice(kinds, _Time(), {"a": frozenset({"5"})})().source == "a"
    assert Choice(kinds, _Time(), {"a": frozenset({""})})().source == "b"
    assert log == ["a open 5", "a", "b open", "b"]


def test_who_is_asked_is_known_while_it_is_asked() -> None:
    began, go_on = Event(), Event()

    def slow() -> Sample:
        began.set()
        go_on.wait(5)
        return good()

    choice = Choice([kind("a", log=[], answers=slow)], _Time())
    thread = Thread(target=choice)
    thread.start()
    assert began.wait(5)
    assert choice.asking == ("a", "3")
    go_on.set()
    thread.join()
    assert choice.asking == ("", "")


def feed(work: Callable[[], int], time: _Time) -> tuple[Feed[int], Event]:
    answered = Event()
    return Feed("test", work, lambda: None, time, answered.set), answered


def test_an_answer_knows_its_instant_and_when_it_came() -> None:
    time = _Time()
    asked, answered = feed(lambda: 7, time)
    assert asked.ask(990.0)
    assert answered.wait(5)
    answer = asked.take()
    assert answer is not None
    assert (answer.at, answer.answered_at, answer.value, answer.error) == (990.0, 1000.0, 7, "")
    assert asked.take() is None
    asked.end()


def test_one_call_at_a_time_and_one_that_does_not_come_back_hangs() -> None:
    time, go_on = _Time(), Event()
    asked, answered = feed(lambda: int(go_on.wait(5)), time)
    assert asked.ask(1000.0)
    assert not asked.ask(1010.0)
    time.now += 29
    assert not asked.hangs(30)
    time.now += 1
    assert asked.hangs(30)
    go_on.set()
    assert answered.wait(5)
    assert not asked.hangs(30)
    assert asked.take() is not None
    assert not asked.is_asked
    asked.end()


@pytest.mark.parametrize(
    ("error", "told"), [(SourceError("gone"), "gone"), (OSError("odd"), "unexpected: OSError('odd')")]
)
def test_an_error_is_an_answer(error: Exception, told: str) -> None:
    def fail() -> int:
        raise error

    asked, answered = feed(fail, _Time())
    asked.ask(1000.0)
    assert answered.wait(5)
    answer = asked.take()
    assert answer is not None
    assert (answer.value, answer.error) == (None, told)
    asked.end()
