"""Keys moved between releases; here each metric has one name."""

from __future__ import annotations

import pytest

from verlwatch.core.metrics import METRICS, metrics


@pytest.mark.parametrize(
    ("values", "name", "value"),
    [
        ({"mfu/actor": 0.31}, "mfu_actor", 0.31),
        ({"perf/mfu/actor": 0.32, "mfu/actor": 0.31}, "mfu_actor", 0.32),
        ({"perf/max_memory_allocated_gb": 33.0}, "max_memory_allocated_gb", 33.0),
        ({"actor/perf/max_memory_allocated_gb": 34.0}, "max_memory_allocated_gb", 34.0),
        ({"actor/entropy_loss": 0.5}, "entropy", 0.5),
    ],
)
def test_a_metric_has_one_name_whatever_its_key(values: dict[str, float], name: str, value: float) -> None:
    assert metrics(values) == {name: value}


def test_no_key_means_two_things() -> None:
    keys = [key for all_keys in METRICS.values() for key in all_keys]
    assert len(keys) == len(set(keys))


def test_what_is_not_printed_is_absent() -> None:
    assert metrics({"timing_s/gen": 1.0}) == {}
