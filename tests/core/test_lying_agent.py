"""Events of an agent hold whatever it says: words for numbers, nan, names without end.  None of that ends a hub."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from math import inf, nan

import pytest

from verlwatch.core.engine import MOST_TROUBLES, Engine
from verlwatch.core.life import Sight
from verlwatch.core.rules import LIFE_RULES, killed
from verlwatch.core.types import NOBODY, Event, Extract, Origin, Samples, Snapshot, State, Writer
from verlwatch.shell._rows import pack, unpack

EVENTS: Mapping[str, Mapping[str, str | int | float]] = {
    "process": {"pid": 4711, "state": "gone", "exit": "signal 9", "role": "trainer", "lasted_s": 9.0, "oom_kills": 1},
    "job": {"job": "4711", "state": "FAILED", "exit": "code 1", "ends_at": 1e9, "restarts": 0},
    "fault": {"class": "host_oom", "used_gb": 1.0, "total_gb": 2.0, "threshold": 0.9, "rank": 3, "exception": "E"},
    "host": {"pid": 3, "host": "node-1"},
    "disk": {"path": "/data", "free_gb": 5.0, "total_gb": 20.0},
    "host_memory": {"used_gb": 5.0, "total_gb": 20.0},
    "gpu_sample": {"used_gb": 5.0, "total_gb": 80.0, "utilization": 50, "pids": "12:4.0", "ranks": "12:3"},
    "gpu_fault": {"kind": "xid", "detail": "Xid 79"},
    "gpu_source": {"source": "nvml", "cards": 8},
    "gpu_memory": {"head": "after", "allocated_gb": 5.0, "used_gb": 6.0, "total_gb": 80.0, "reserved_gb": 5.5},
    "checkpoint": {"folder": "/data/global_step_3", "step": 3},
    "progress": {"done": 3, "total": 9},
    "phase_bar": {"phase": "rollout", "done": 1, "total": 2},
    "phase_timer": {"phase": "rollout", "what": "start"},
    "vllm_stats": {"running": 3, "engine": "0"},
    "activity": {"lines": 3},
    "rank": {"rank": 3},
    "plan": {"total": 9},
    "resume": {"from": "checkpoint", "step": 3},
    "config": {"trainer.test_freq": 5, "trainer.save_freq": 5},
}
LIES = (
    nan,
    inf,
    -inf,
    -1,
    0,
    2**63 - 1,
    1e308,
    "",
    "abc",
    "9" * 4000,
    "\x1b[31m\u202e</script>\0\n<!channel>",
    "a" * 4096,
)


def record(of: random.Random, now: float, step: int) -> Event | Samples:
    """An event that is half true, or the numbers of a step."""
    writer = of.choice([NOBODY, Writer("WorkerDict", of.randint(1, 9), "10.0.0.7"), Writer("TaskRunner", 5, "")])
    if of.random() < 0.4:
        names = ("timing_s/step", "timing_s/gen", "timing_s/testing", "actor/grad_norm", "actor/loss", "val-core/x/y")
        numbers = {name: of.choice([nan, inf, -1.0]) if of.random() < 0.1 else 10 + of.random() for name in names}
        return Samples(Origin("a:/log", 1, step, Writer("TaskRunner", 5, ""), "step_metrics"), step, numbers)
    name = of.choice(list(EVENTS))
    said = {key: of.choice(LIES) if of.random() < 0.2 else value for key, value in EVENTS[name].items()}
    said = {key: value for key, value in said.items() if of.random() > 0.05}
    where = of.choice([(), (("host", "n"), ("gpu", str(of.randint(0, 2)))), (("host", "\x1b[31m"), ("gpu", "x" * 200))])
    at = of.choice([None, now, now, -1e300, 1e300])
    return Event(Origin("a:/log", 1, step, writer, name), name, said, "critical", "</script>\0", where, at)


@pytest.mark.parametrize("seed", range(12))
def test_half_true_events_end_nothing_and_their_state_is_taken_up_again(seed: int) -> None:
    of, engine, now = random.Random(seed), Engine(), 1e9
    kept: dict[tuple[str, str], State] = {}
    for step in range(120):
        now += of.choice([0.1, 1.0, 10.0, 1000.0, -500.0])
        records = tuple(record(of, now, step) for _ in range(3))
        engine.see([Sight("a:/log", "run", of.random() < 0.8, "why", changed_at=now)], now)
        for outcome in (engine.accept([Extract("a:/log", "run", records)], now), engine.tick(now)):
            for state in outcome.states:
                kept[state.kind, state.key] = replace(state, data=unpack(pack(state.data)))
    engine.runs["run"].hardware.cards.table()
    again = Engine()
    again.restore(Snapshot(states=tuple(kept.values())))
    assert again.strange_states == 0
    again.tick(now)


def test_kinds_that_raise_without_end_are_counted_together() -> None:
    engine = Engine()
    for number in range(5 * MOST_TROUBLES):
        event = Event(Origin("a:/log", 1, number, NOBODY, f"kind {number}"), "phase_bar", {})
        engine.accept([Extract("a:/log", "run", (event,))], 1e9)
    troubles = engine.runs["run"].left_out
    assert len(troubles) == MOST_TROUBLES + 1
    assert "further records" in troubles


def test_a_rule_of_life_that_raises_is_shown_and_the_others_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(view: object) -> tuple[()]:
        raise ValueError(f"cannot say of {type(view).__name__}")

    assert killed in LIFE_RULES
    monkeypatch.setattr(killed, "diagnose", raising)
    engine = Engine()
    fault = Event(Origin("a:/log", 1, 9, NOBODY, "host_oom"), "fault", {"class": "host_oom"}, "critical", "killed")
    engine.accept([Extract("a:/log", "run", (fault,))], 1e9)
    engine.tick(1e9 + 60)
    run = engine.runs["run"]
    assert [incident.diagnoses[0].rule for incident in run.open_incidents()] == ["host_oom"]
    assert run.judged.quarantined == {"killed": "ValueError('cannot say of LifeView')"}


def test_what_raises_while_cards_are_looked_at_is_shown_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    sample = Event(
        Origin("gpu", 0, 0, NOBODY, "gpu"), "gpu_sample", {"used_gb": 3.0}, scope=(("host", "n"), ("gpu", "0")), at=1e9
    )
    engine.accept([Extract("gpu", "run", (sample,))], 1e9)
    cards = engine.runs["run"].hardware.cards

    def raising(now: float) -> None:
        raise ZeroDivisionError(now)

    monkeypatch.setattr(cards, "tick", raising)
    engine.tick(1e9 + 1)
    assert engine.runs["run"].judged.quarantined == {"GPUs": "ZeroDivisionError(1000000001.0)"}
