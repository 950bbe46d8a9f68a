"""Excerpts of public logs, where they are at hand, are read as the notes beside them say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from verlwatch.core.lines import Reader
from verlwatch.core.lines._paste import rejoined
from verlwatch.core.types import Event, Record, Samples

SHARED = Path(__file__).parents[4] / "shared" / "corpus"
NAMES = sorted(path.stem for path in SHARED.glob("*.log"))
pytestmark = pytest.mark.skipif(not NAMES, reason="the excerpts are not part of the project")

Expect = dict[str, Any]


def notes(name: str) -> Expect:
    expected: Expect = yaml.safe_load((SHARED / f"{name}.yaml").read_text())
    return expected


def records(name: str) -> list[Record]:
    data = (SHARED / f"{name}.log").read_bytes()
    if notes(name).get("expect", {}).get("paste"):
        data = rejoined(data)
    reader = Reader(f"{name}.log")
    return reader.feed(data, 0.0) + reader.finish(0.0)


def steps(read: Iterable[Record]) -> dict[int, dict[str, float]]:
    return {record.step: dict(record.values) for record in read if isinstance(record, Samples)}


def events(read: Iterable[Record], name: str) -> list[dict[str, Any]]:
    return [dict(record.attributes) for record in read if isinstance(record, Event) and record.name == name]


def faults(read: Iterable[Record], fault: str) -> list[dict[str, Any]]:
    return [said for said in events(read, "fault") if said["class"] == fault]


def timeouts(read: Iterable[Record], backend: str) -> list[dict[str, Any]]:
    """One of each (rank, seq, op): torch says the same several times."""
    found = {(f["rank"], f["seq"], f["op"]): f for f in faults(read, "collective_timeout") if f["backend"] == backend}
    return [
        {key: said[key] for key in ("rank", "seq", "op")}
        | {f"{key}_ms": round(1000 * said[f"{key}_s"]) for key in ("timeout", "ran")}
        for said in found.values()
    ]


def within(expected: Expect, said: Expect) -> bool:
    return all(key in said and said[key] == value for key, value in expected.items())


def close_to(expected: Expect, said: Expect) -> bool:
    return all(
        math.isclose(said[key.removesuffix("_approx")], value, abs_tol=0.01 if key.endswith("_approx") else 0.0)
        for key, value in expected.items()
    )


# ------------------------------------------------------------------------------------------- each word of the notes
def _steps(value: Any, read: list[Record]) -> None:
    assert sorted(steps(read)) == value


def _by_step(value: Any, read: list[Record]) -> None:
    for step, expected in value.items():
        assert close_to(expected, steps(read)[step])


def _tqdm(value: Any, read: list[Record]) -> None:
    bars = events(read, "progress")
    for expected in value if isinstance(value, list) else [value]:
        assert any(
            all(math.isclose(bar.get(key, math.nan), number, rel_tol=1e-6) for key, number in expected.items())
            for bar in bars
        ), (expected, bars)


def _memory(value: Any, read: list[Record]) -> None:
    told = events(read, "gpu_memory")
    assert len(told) == len(value)
    assert all(within(expected, said) for expected, said in zip(value, told, strict=True))


def _nccl(value: Any, read: list[Record]) -> None:
    assert timeouts(read, "nccl") == value


def _hccl(value: Any, read: list[Record]) -> None:
    assert timeouts(read, "hccl") == value


def _npu(value: Any, read: list[Record]) -> None:
    said = [{**fault, "device": fault.get("gpu")} for fault in faults(read, "npu_error")]
    for key, expected in value.items():
        assert expected in [fault.get(key) for fault in said] or expected in [f.get("code") for f in said], (key, said)


def _worker_died(value: Any, read: list[Record]) -> None:
    (said,) = faults(read, "worker_died")
    assert within(value, said)


def _actor_died(value: Any, read: list[Record]) -> None:
    (said,) = faults(read, "actor_died")
    assert said["actor_class"].endswith(value.pop("class"))
    assert within(value, said)


def _host_oom(value: Any, read: list[Record]) -> None:
    (said,) = [fault for fault in faults(read, "host_oom") if "used_gb" in fault]
    assert value.pop("killed") in said["victim"]
    assert said["victim_gb"] == value.pop("killed_used_gb")
    assert within(value, said)


def _host_oom_killed(value: Any, read: list[Record]) -> None:
    assert sum(fault["killed"] for fault in faults(read, "host_oom")) == value


def _phase_bar(value: Any, read: list[Record]) -> None:
    (said,) = events(read, "phase_bar")
    assert within(value, said)


def _summary(value: Any, read: list[Record]) -> None:
    assert any(within(value, said) for said in events(read, "wandb_summary"))


def _still_in_use(value: Any, read: list[Record]) -> None:
    assert [said["still_in_use_gb"] for said in events(read, "engine_memory")] == value


def _last_phase(value: Any, read: list[Record]) -> None:
    assert [said["phase"] for said in events(read, "phase_timer") if said["what"] == "start"][-1] == value


def _timed(value: Any, read: list[Record]) -> None:
    assert (
        sorted(step for step, told in steps(read).items() if any(key.startswith("timing_s/") for key in told)) == value
    )


def _untimed(value: Any, read: list[Record]) -> None:
    assert sorted(set(steps(read)) & set(value)) == value
    assert not any(key.startswith("timing_s/") for step in value for key in steps(read)[step])


def _lists(key: str) -> Callable[[Any, list[Record]], None]:
    def check(value: Any, read: list[Record]) -> None:
        told = [values[key] for _, values in sorted(steps(read).items()) if key in values]
        assert len(told) >= len(value) - 1  # a stored copy may stop within its last line
        assert told == value[: len(told)]

    return check


def _checkpoints(value: Any, read: list[Record]) -> None:
    assert [said["step"] for said in events(read, "checkpoint")] == value


def _dropped(value: Any, read: list[Record]) -> None:
    assert not any(value in told for told in steps(read).values())


def _only_validation(value: Any, read: list[Record]) -> None:
    assert value
    assert all(key.startswith("val") for key in steps(read)[0])


def _nan(read: list[Record]) -> None:
    assert any(math.isnan(value) for key, value in steps(read)[0].items() if key.startswith("val-aux/"))


def _no_steps(value: Any, read: list[Record]) -> None:
    assert not set(value) & set(steps(read))


def _ratio(value: Any, read: list[Record]) -> None:
    (told,) = steps(read).values()
    assert round(told["perf/max_memory_reserved_gb"] / told["perf/max_memory_allocated_gb"], 2) == value


WORDS: dict[str, Callable[[Any, list[Record]], None]] = {
    "steps": _steps,
    "by_step": _by_step,
    "tqdm": _tqdm,
    "memory": _memory,
    "nccl_timeouts": _nccl,
    "hccl_timeouts": _hccl,
    "npu_error": _npu,
    "worker_died": _worker_died,
    "actor_died": _actor_died,
    "host_oom": _host_oom,
    "host_oom_killed": _host_oom_killed,
    "phase_bar": _phase_bar,
    "summary": _summary,
    "still_in_use_gib": _still_in_use,
    "last_phase_started": _last_phase,
    "steps_with_timing": _timed,
    "steps_truncated_without_timing": _untimed,
    "checkpoint_folders_at": _checkpoints,
    "last_key_without_value": _dropped,
    "last_token_is_cut_key": _dropped,
    "step0_is_validation_only": _only_validation,
    "step1": lambda value, read: _by_step({1: value}, read),
    "step14": lambda value, read: _by_step({14: value}, read),
    "timings": lambda value, read: _by_step({1: value}, read),
    "validation_at": _untimed,
    "paste": lambda value, read: None,
    "nan_keys": lambda value, read: _nan(read),
    "gap": _no_steps,
    "memory_reserved_over_allocated": _ratio,
}
ELSEWHERE = {
    "per_worker_ms": "a line of the user's own: tests/core/lines/test_own_line.py",
    "max_over_median": "as above",
    "actors": "names in prefixes: the lines themselves say nothing",
    "heartbeat_lines": "nothing is read of them",
}


@pytest.mark.parametrize("name", NAMES)
def test_an_excerpt_is_read_as_its_notes_say(name: str) -> None:
    read = records(name)
    loose: dict[str, Any] = {}
    for word, value in notes(name)["expect"].items():
        if word in WORDS:
            WORDS[word](value, read)
        elif "/" in word and isinstance(value, list):
            _lists(word)(value, read)
        elif "/" in word:
            loose[word] = value
        else:
            assert word in ELSEWHERE, word
    if loose:
        (told,) = steps(read).values()
        assert close_to(loose, told)


CALM = [
    "001",
    "003",
    "004",
    "009",
    "010",
    "012",
    "013",
    "015",
    "016",
    "018",
    "019",
    "021",
    "022",
    "033",
    "042",
    "043",
    "045",
    "046",
]


@pytest.mark.parametrize("name", [name for name in NAMES if name[:3] in CALM])
def test_where_nothing_failed_no_fault_is_told(name: str) -> None:
    read = records(name)
    assert events(read, "fault") == []


CRASHED = {
    "006": {"exception": 1},
    "007": {"exception": 1},
    "024": {"collective_timeout": 2},
    "028": {"actor_died": 1},
    "034": {"engine_dead": 1},
}


@pytest.mark.parametrize("name", [name for name in NAMES if name[:3] in CRASHED])
def test_what_failed_is_told_once(name: str) -> None:
    said = Counter(str(fault["class"]) for fault in events(records(name), "fault"))
    assert all(said[fault] >= count for fault, count in CRASHED[name[:3]].items()), said
