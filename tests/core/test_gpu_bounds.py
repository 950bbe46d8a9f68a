"""Whoever sends samples may say anything: no number, name or clock takes room without bound, or blinds a run."""

from __future__ import annotations

from math import inf, nan

import orjson
import pytest

from tests.core.gpu_fleet import SAMPLE, sample
from verlwatch.core.cards import Cards
from verlwatch.core.cards._cards import MAX_CARDS, MAX_SOURCES
from verlwatch.core.cards._rows import PROCESSES
from verlwatch.core.types import Event, Origin, Writer

DAY_S = 86_400.0


def seen(cards: Cards, start: float, instants: int = 6) -> None:
    """Two cards of one host at some instants."""
    for i in range(instants):
        at = start + 10.0 * i
        for gpu in range(2):
            cards.hear(sample("n1", gpu, at, 30.0 + gpu), 1, at)
        cards.tick(at)


@pytest.mark.parametrize("value", [nan, inf, -inf, -1.0, "forty"])
def test_a_number_that_is_none_is_unknown(value: float | str) -> None:
    cards = Cards("ppo")
    said = {"total_gb": value, "utilization": value, "power_w": value, "pids": "12:much,99999999999999999999:1"}
    cards.hear(
        Event(SAMPLE, "gpu_sample", {"used_gb": value, **said}, scope=(("host", "n"), ("gpu", "0")), at=9.0), 1, 9.0
    )
    (card,) = cards.cards.values()
    cards.tick(30.0)
    assert (card.used, card.total, card.utilization, card.values, card.pid) == (None, None, None, {}, 12)
    assert cards.diagnose(1, 30.0) == ()


def test_one_host_whose_clock_is_a_day_ahead_makes_no_sample_of_others_late() -> None:
    cards = Cards("ppo")
    cards.hear(sample("n2", 0, 1000.0 + DAY_S, 30.0), 1, 1000.0)
    seen(cards, 1000.0)
    assert cards.late == 0
    assert [card.place for card in cards.cards.values()] == ["GPU 0 on n1", "GPU 1 on n1"]


def test_after_a_clock_was_set_back_cards_are_compared_at_once() -> None:
    cards = Cards("ppo")
    seen(cards, 10 * DAY_S)
    before = {key: len(card.strip) for key, card in cards.cards.items()}
    cards.tick(9 * DAY_S)
    seen(cards, 9 * DAY_S)
    assert cards.late == 0
    assert all(len(card.strip) > before[key] for key, card in cards.cards.items())


def test_a_card_that_was_not_heard_of_for_long_makes_room_for_another() -> None:
    cards = Cards("ppo")
    for number in range(MAX_CARDS + 100):
        cards.hear(sample(f"host-{number}", 0, 1000.0, 30.0), 1, 1000.0)
    assert len(cards.cards) == MAX_CARDS
    cards.hear(sample("new", 0, 9000.0, 30.0), 1, 9000.0)
    assert len(cards.cards) == MAX_CARDS
    assert ("new", "0") in cards.cards


def test_a_host_of_a_long_name_is_the_same_after_a_restart() -> None:
    host = "training-qwen2-72b-worker-group-raycluster-abcde-worker-12.namespace.svc"
    before, after = Cards("ppo"), Cards("ppo")
    before.hear(sample(host, 0, 1000.0, 30.0), 1, 1000.0)
    after.restore(orjson.loads(orjson.dumps(before.state())))
    assert list(after.cards) == [(host, "0")]


def test_names_without_end_take_bounded_room() -> None:
    cards = Cards("ppo")
    for number in range(5000):
        where = (("host", f"host-{number}"), ("gpu", "0"))
        cards.hear(Event(SAMPLE, "gpu_source", {"source": f"source {number}", "cards": "many"}), 1, 10.0)
        cards.hear(Event(SAMPLE, "gpu_fault", {"kind": "missing"}, scope=where, at=10.0), 1, 10.0)
        cards.hear(Event(SAMPLE, "gpu_fault", {"kind": f"kind {number}"}, scope=where, at=10.0), 1, 10.0)
        writer = Writer("WorkerDict", number + 1, "")
        said: dict[str, str | float] = {"head": f"head {number}", "phase": "update_actor", "allocated_gb": 1.0}
        cards.hear(Event(Origin("log", 1, number, writer, "gpu_memory"), "gpu_memory", said), 1, 10.0)
        cards.hear(Event(Origin("log", 1, number, writer, "rank"), "rank", {"rank": number}), 1, 10.0)
    assert len(cards.sources) == MAX_SOURCES
    assert len(cards.diagnose(1, 10.0)) <= 200
    assert cards._rows.processes <= PROCESSES
    assert len(cards.known_ranks) <= MAX_CARDS
    assert len(orjson.dumps(cards.state())) < 100_000


def test_groups_that_have_no_cards_any_more_are_forgotten() -> None:
    cards = Cards("ppo")
    for number in range(300):
        cards.hear(sample("n1", 0, 10.0 * number, 30.0, actors=f"1:A{number}"), 1, 10.0 * number)
        cards.hear(sample("n1", 1, 10.0 * number, 30.0, actors=f"2:B{number % 2}"), 1, 10.0 * number)
        cards.stepped(number, 10.0 * number, {"step": 10.0})
        for card in cards.cards.values():
            card.group = -1
    assert len(cards.groups.all) < 40
