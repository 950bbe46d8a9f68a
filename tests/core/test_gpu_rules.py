"""Each rule about GPUs: a view that fires it, a near miss, and words in which no unit or place is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.gpu_fleet import Fleet, alarms, sample, watch
from verlwatch.core.cards import Cards
from verlwatch.core.rules import (
    MEMORY_RULES,
    MemoryRule,
    MemoryView,
    gpu_fault,
    gpu_idle,
    gpu_missing,
    memory_divergence,
    memory_headroom,
    memory_offset_change,
)
from verlwatch.core.rules._memory_view import Apart, CardFault, CardView, GroupFilling, Growth, Idle, full, gb
from verlwatch.core.types import NOBODY, Diagnosis, Event, Origin

SCOPE = (("host", "node-1"), ("gpu", "5"), ("rank", "13"))
CARD = CardView(
    name="rank 13",
    subject="memory rank 13",
    scope=SCOPE,
    group="WorkerDict",
    group_size=16,
    used_gb=50.1,
    total_gb=80.0,
    peers_gb=28.1,
    offset_gb=22.0,
    noise_gb=0.1,
    settled=True,
    rank="13",
    actor="WorkerDict",
)
GROWTH = Growth(1.1, 1.1 / 60, 14.2, 14.2 * 60)
PEER = replace(CARD, name="rank 1", subject="memory rank 1", offset_gb=0.1, used_gb=28.1)
FILLING = GroupFilling("WorkerDict", 16, ("node-1",), 100, 70.0, 80.0, Growth(1.0, 1 / 60, 10.0, 600.0))
IDLE = Idle("", (("host", "node-1"),), 40, 31.0, None, 700.0, (("reward", 2.0, 0.6), ("gen", 95.0, 0.4)))
XID = CardFault("gpu 5@node-1", SCOPE, "xid", "Xid 79, GPU has fallen off the bus", 120, 1, 79)


def seen(*cards: CardView, **more: Any) -> MemoryView:
    return MemoryView("r", 199, cards or (PEER, PEER), step_s=60.0, covers="all memory in use on the card", **more)


def apart(before: float | None, offset: float, growth: Growth | None = None) -> CardView:
    return replace(CARD, apart=Apart(181, before, offset, growth))


FIRES = {
    memory_divergence.NAME: seen(apart(None, 17.0), PEER),
    memory_offset_change.NAME: seen(apart(0.1, 22.0, GROWTH), PEER),
    memory_headroom.NAME: seen(filling=(FILLING,)),
    gpu_idle.NAME: seen(idle=(IDLE,)),
    gpu_missing.NAME: seen(missing=(XID._replace(kind="missing", code=None, detail=""),)),
    gpu_fault.NAME: seen(faults=(XID,)),
}
NEAR_MISS = {
    memory_divergence.NAME: seen(apart(0.1, 17.0), PEER),
    memory_offset_change.NAME: seen(apart(None, 17.0), PEER),
    memory_headroom.NAME: seen(filling=(FILLING._replace(used_gb=40.0),)),
    gpu_idle.NAME: seen(),
    gpu_missing.NAME: seen(faults=(XID,)),
    gpu_fault.NAME: seen(missing=(XID,)),
}


@pytest.mark.parametrize("rule", MEMORY_RULES, ids=lambda rule: rule.NAME)
def test_every_rule_has_a_view_that_fires_it_and_a_near_miss(rule: MemoryRule) -> None:
    (found,) = rule.diagnose(FIRES[rule.NAME])
    assert (found.rule, found.cost_s) == (rule.NAME, 0.0)
    assert all(found.evidence)
    assert all(value for _, value in found.facts)
    assert found.title
    assert not found.title.endswith(".")
    assert rule.diagnose(NEAR_MISS[rule.NAME]) == ()
    assert rule.diagnose(seen()) == ()


def test_a_leak_is_said_in_one_sentence() -> None:
    (leak,) = memory_offset_change.diagnose(FIRES[memory_offset_change.NAME])
    assert leak.title == (
        "rank 13 holds 22 GB more than its peers since step 181, growing 1.1 GB a step, full in 14 steps (14 min)"
    )
    assert leak.scope == SCOPE
    assert leak.before == pytest.approx(28.2)
    assert leak.after == pytest.approx(50.1)
    assert dict(leak.facts) == {
        "Since step": "181",
        "At step": "199",
        "Holds": "50.1 GB of 80 GB",
        "Peers hold": "28.1 GB",
        "Offset": "+22 GB (+0.1 GB before)",
        "Growth": "growing 1.1 GB a step",
        "Full": "in 14 steps (14 min)",
        "Where": "host node-1, GPU 5, rank 13, WorkerDict",
    }


def test_a_shard_error_is_said_in_one_sentence_and_an_unknown_rank_is_called_so() -> None:
    card = replace(apart(None, 17.0), rank=None, scope=SCOPE[:2], name="GPU 5 on node-1")
    (found,) = memory_divergence.diagnose(seen(card))
    assert found.title == (
        "GPU 5 on node-1 holds 45.1 GB while its peers hold 28.1 GB: 17 GB more than its peers since step 181"
    )
    assert dict(found.facts)["Where"] == "host node-1, GPU 5, rank unknown, WorkerDict"


def test_a_card_that_is_full_soon_is_critical() -> None:
    soon = GROWTH._replace(full_in_steps=8.0, full_in_s=480.0)
    (found,) = memory_offset_change.diagnose(seen(apart(0.1, 22.0, soon)))
    assert found.severity == "critical"
    (found,) = memory_offset_change.diagnose(seen(apart(0.1, 22.0, GROWTH._replace(full_in_s=3600.0))))
    assert found.severity == "warning"


def test_a_small_spread_of_a_group_is_a_remark_that_ends_later_than_it_begins() -> None:
    view = seen(replace(CARD, offset_gb=0.9), PEER)
    (remark,) = memory_divergence.diagnose(view)
    assert (remark.severity, remark.title) == (
        "info",
        "the memory of WorkerDict is spread over 0.8 GB: rank 13 holds most, rank 1 least",
    )
    near = seen(replace(CARD, offset_gb=0.5), PEER)
    assert memory_divergence.diagnose(near) == ()
    assert len(memory_divergence.diagnose(replace(near, told=frozenset({remark.subject})))) == 1


@pytest.mark.parametrize(
    ("value", "text"), [(0.52, "0.52 GB"), (1.1, "1.1 GB"), (22.0, "22 GB"), (48.2, "48.2 GB"), (-17.04, "17 GB")]
)
def test_memory_is_said_in_three_digits(value: float, text: str) -> None:
    assert gb(value) == text


@pytest.mark.parametrize(
    ("growth", "text"),
    [
        (GROWTH, "in 14 steps (14 min)"),
        (Growth(1.0, None, 0.2, None), "within a step"),
        (Growth(1.0, None, 1.2, None), "in 1 step"),
        (Growth(None, 0.01, None, 7300.0), "in 2.0 h"),
        (Growth(None, None, None, None), ""),
    ],
)
def test_when_a_card_is_full_is_said_as_far_as_it_is_known(growth: Growth, text: str) -> None:
    assert full(growth) == text


# ------------------------------------------------------------------------------------------------ through `Cards`
def held(found: tuple[Diagnosis, ...], rule: str) -> list[Diagnosis]:
    return [diagnosis for diagnosis in found if diagnosis.rule == rule]


def fault(kind: str, detail: str, gpu: str = "2") -> Event:
    return Event(
        Origin("gpu", 0, 0, NOBODY, "gpu"),
        "gpu_fault",
        {"kind": kind, "detail": detail},
        scope=(("host", "a"), ("gpu", gpu)),
        at=1000.0,
    )


def test_all_cards_that_fill_up_together_are_told_in_time() -> None:
    fleet = Fleet(low_gb=30.0, swing_gb=20.0, more=lambda card, at, step: 0.7 * max(0, step - 5))
    told = {step: headroom for step, _, found in watch(fleet, 40) if (headroom := held(found, memory_headroom.NAME))}
    first = min(told)
    assert 17 <= first <= 30  # 50 GB and 0.7 a step: full at step 48
    rate = float(told[first][0].title.split("growing ")[1].split(" GB a step, full in ")[0])
    assert rate == pytest.approx(0.7, rel=0.1)


def test_a_group_that_holds_what_it_did_has_headroom() -> None:
    assert [d for _, _, found in watch(Fleet(swing_gb=45.0), 40) for d in held(found, memory_headroom.NAME)] == []


def busy(when: dict[str, float], card: int | None = None) -> Fleet:
    """Cards that are busy in gen and rest in update_actor, or one of them that always rests."""
    fleet = Fleet(step_s=100.0, spread=0.0, jitter_s=0.0)
    begin = fleet.at

    def said(number: int) -> dict[str, str | float]:
        if card is not None:
            return {"utilization": 5.0 if number == card else 95.0}
        return {"utilization": 50.0}

    fleet.said = said
    inner = fleet._sample

    def at_work(number: int, at: float, used: float, step: int) -> Event:
        event = inner(number, at, used, step)
        if card is not None:
            return event
        phase = "gen" if 0.0 < (at - begin) % 100.0 <= 50.0 else "update_actor"
        return replace(event, attributes={**event.attributes, "utilization": when[phase]})

    fleet._sample = at_work  # type: ignore[method-assign,assignment]
    return fleet


def test_idle_cards_are_told_with_the_phase_in_which_they_rest() -> None:
    found = [held(found, gpu_idle.NAME) for _, _, found in watch(busy({"gen": 80.0, "update_actor": 4.0}), 12)]
    assert not any(found[:4])
    (idle,) = found[-1]
    assert idle.title.startswith("the GPUs are busy 4")
    assert "least in update_actor (4 %)" in idle.title
    assert not any(held(f, gpu_idle.NAME) for _, _, f in watch(busy({"gen": 90.0, "update_actor": 60.0}), 12))


def test_one_card_that_rests_while_its_peers_work_is_told_by_name() -> None:
    *_, (_, _, found) = watch(busy({}, card=6), 12)
    (idle,) = held(found, gpu_idle.NAME)
    assert idle.title.startswith("rank 6 is busy 5 % of the time")
    assert idle.title.endswith("its peers 95 %")


def test_validation_and_saving_do_not_make_cards_idle() -> None:
    cards = Cards("run")
    for step in range(1, 13):
        end = 1000.0 + 100.0 * step
        for tick in range(10):
            at = end - 90.0 + 10.0 * tick
            value = 90.0 if tick < 3 else 2.0
            for gpu in range(4):
                cards.hear(sample("a", gpu, at, 30.0, utilization=value), step - 1, at)
        cards.stepped(step, end, {"gen": 15.0, "update_actor": 15.0, "testing": 70.0})
    assert held(cards.diagnose(12, 2200.0), gpu_idle.NAME) == []


def test_faults_of_the_driver_hold_for_a_while_and_name_their_card() -> None:
    cards = Cards("run")
    for tick in range(3):
        for gpu in range(4):
            cards.hear(sample("a", gpu, 1000.0 + 10 * tick, 30.0, ranks=f"7:{gpu}"), 3, 1000.0)
    cards.hear(fault("xid", "Xid 79"), 3, 1030.0)
    cards.hear(fault("missing", "not found"), 3, 1030.0)
    assert [d.title for d in cards.diagnose(3, 1040.0)] == [
        "GPU 2 (rank 2) on a: Xid 79: the card has fallen off the bus",
        "GPU 2 (rank 2) on a has vanished: its host does not see it any more",
    ]
    assert {d.severity for d in cards.diagnose(3, 1040.0)} == {"critical"}
    cards.hear(sample("a", 2, 1050.0, 30.0), 3, 1050.0)
    assert [d.rule for d in cards.diagnose(3, 1060.0)] == [gpu_fault.NAME]
    assert cards.diagnose(3, 5000.0) == ()


def test_counters_that_grow_and_cards_that_are_too_hot_are_faults_and_a_power_cap_is_none() -> None:
    cards = Cards("run")
    for tick in range(16):
        at = 1000.0 + 10.0 * tick
        cards.hear(sample("a", 0, at, 30.0, throttle="power", ecc_uncorrected=0.0), 3, at)
        cards.hear(sample("a", 1, at, 30.0, throttle="thermal,power", temperature_c=91.0), 3, at)
        cards.hear(sample("a", 2, at, 30.0, ecc_uncorrected=2.0 if tick > 8 else 0.0), 3, at)
        cards.hear(sample("a", 3, at, 30.0, ecc_uncorrected=5.0), 3, at)
    assert {d.title for d in cards.diagnose(3, 1160.0)} == {
        "GPU 2 on a: memory errors that ECC could not correct",
        "GPU 1 on a: slowed down by heat",
    }
    cool = [sample("a", 1, 1160.0 + 10.0 * tick, 30.0, throttle="") for tick in range(12)]
    for event in cool:
        cards.hear(event, 3, event.at or 0.0)
    assert [d.subject for d in alarms(cards.diagnose(3, 1300.0)) if d.rule == gpu_fault.NAME] == ["ecc gpu 2@a"]


def test_what_is_known_of_faults_survives_a_restart() -> None:
    cards, again = Cards("run"), Cards("run")
    cards.hear(sample("a", 2, 1000.0, 30.0), 3, 1000.0)
    cards.hear(fault("xid", "Xid 48"), 3, 1000.0)
    again.restore(cards.state())
    assert again.diagnose(3, 1010.0) == cards.diagnose(3, 1010.0)
