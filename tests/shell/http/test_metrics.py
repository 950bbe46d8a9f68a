"""`/metrics`: what Prometheus reads of a status, and how much of it at most."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.shell.http.fake import NOW, FakeSource, card, hub_status, slow_run, status
from tests.tools import need
from verlwatch.shell.http import metrics
from verlwatch.status import (
    ConfigStatus,
    GpuStatus,
    PhaseStatus,
    ReceiverStatus,
    RunStatus,
    SourceStatus,
    Status,
    StoreStatus,
)

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.shell.http.server import Server

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def exposition(now: Status) -> str:
    return metrics.render(metrics.registry(FakeSource(now))).decode()


def series(now: Status) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(exposition(now))
        for sample in family.samples
    }


def value(now: Status, name: str, **labels: str) -> float | None:
    return series(now).get((f"verlwatch_{name}", tuple(sorted(labels.items()))))


SOURCE = {
    "source": "/data/experiments/2026-02-28_qwen2.5-7b-grpo/logs/console.log",
    "run": "qwen2.5-7b-grpo",
}
CARD = {"run": "qwen2.5-7b-grpo", "host": "node-1", "gpu": "1", "rank": "9"}


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("build_info", {"version": "0.1.0", "role": "standalone"}, 1),
        ("ready", {}, 0),
        ("run_step", {"run": "qwen2.5-7b-grpo"}, 213),
        ("run_steps_planned", {"run": "qwen2.5-7b-grpo"}, 300),
        ("run_steps_planned", {"run": "llama3-8b-ppo"}, None),
        ("run_last_step_timestamp_seconds", {"run": "qwen2.5-7b-grpo"}, 1_772_370_161),
        ("run_running", {"run": "qwen2.5-7b-grpo"}, 1),
        ("run_running", {"run": "sanity-check"}, 0),
        ("run_steps_total", {"run": "qwen2.5-7b-grpo"}, 213),
        ("phase_seconds", {"run": "qwen2.5-7b-grpo", "phase": "gen"}, 83.21),
        ("phase_baseline_seconds", {"run": "qwen2.5-7b-grpo", "phase": "gen"}, 53.4),
        ("phase_slowdown_ratio", {"run": "qwen2.5-7b-grpo", "phase": "gen"}, 83.21 / 53.4),
        ("phase_baseline_seconds", {"run": "llama3-8b-ppo", "phase": "gen"}, None),
        (
            "incidents_open",
            {"run": "qwen2.5-7b-grpo", "rule": "phase_shift", "phase": "gen", "severity": "critical"},
            1,
        ),
        (
            "incidents_open",
            {"run": "qwen2.5-7b-grpo", "rule": "phase_spike", "phase": "old_log_prob", "severity": "warning"},
            None,
        ),
        ("incidents_opened_total", {"run": "qwen2.5-7b-grpo", "rule": "phase_spike"}, 2),
        ("incidents_closed_total", {"run": "qwen2.5-7b-grpo", "rule": "phase_spike", "closed_as": "resolved"}, 2),
        ("source_up", SOURCE, 1),
        ("source_up", {"source": "/home/ada/runs/llama-ppo/train.log", "run": "llama3-8b-ppo"}, 0),
        ("source_lag_bytes", SOURCE, 7288),
        ("source_lag_seconds", SOURCE, 0.2),
        ("source_position_bytes", SOURCE, 182_233_112),
        ("source_size_bytes", SOURCE, 182_240_400),
        ("source_last_read_timestamp_seconds", SOURCE, 1_772_370_201),
        ("lines_total", SOURCE, 1_204_882),
        ("lines_cut_total", SOURCE, 2),
        ("lines_broken_total", SOURCE, 1),
        ("lines_undecodable_total", SOURCE, 3),
        ("nul_bytes_total", SOURCE, 16),
        ("outbox_pending", {"receiver": "oncall"}, 2),
        ("outbox_dead", {"receiver": "oncall"}, 1),
        ("outbox_oldest_seconds", {"receiver": "oncall"}, 754),
        ("outbox_oldest_seconds", {"receiver": "team-slack"}, 0),
        ("notifications_delivered_total", {"receiver": "oncall"}, 3),
        ("config_last_reload_successful", {}, 1),
        ("config_last_reload_success_timestamp_seconds", {}, 1_772_276_418),
        ("store_up", {}, 1),
        ("store_size_bytes", {}, 8_421_376),
        ("metrics_dropped", {}, 0),
        ("gpu_memory_used_bytes", CARD, 68.3 * 2**30),
        ("gpu_memory_total_bytes", CARD, 79.65 * 2**30),
        ("gpu_memory_offset_bytes", CARD, 22.0 * 2**30),
        ("gpu_utilization_ratio", CARD, 0.97),
        ("gpu_up", CARD, 1),
        ("gpu_up", {**CARD, "gpu": "3", "rank": "11"}, 0),
        ("gpu_memory_used_bytes", {**CARD, "gpu": "3", "rank": "11"}, None),
        ("gpu_samples_late_total", {}, 3),
        ("gpu_instants_missed_total", {}, 2),
        ("gpu_samples_refused_total", {}, 1),
    ],
)
def test_the_status_in_the_words_of_prometheus(name: str, labels: dict[str, str], expected: float | None) -> None:
    assert value(status(), name, **labels) == expected


@pytest.mark.parametrize(
    ("name", "first", "second", "unheard"),
    [
        ("agent_last_seen_timestamp_seconds", 1_772_370_198, 1_772_369_448, None),
        ("agent_taken", 5_812, 77, 12),
        ("agent_skew_seconds", 0.213, -90.4, None),
        ("agent_lag_seconds", 0.3, 312, None),
        ("agent_waiting_shipments", 0, 1_204, None),
        ("agent_sources", 4, 9, None),
        ("agent_unreadable_sources", 0, 5, None),
        ("agent_thinned_samples_total", 0, 40, 0),
        ("agent_lost_shipments_total", 0, 3, 0),
        ("agent_repeated_shipments_total", 2, 0, 0),
        ("agent_refused_requests_total", 0, 1, 0),
    ],
)
def test_each_agent_of_a_hub(name: str, first: float, second: float, unheard: float | None) -> None:
    told = [value(hub_status(), name, agent=agent) for agent in ("node1", "node2", "node3")]
    assert told == [first, second, unheard]


def test_a_hub_counts_strangers_and_whoever_has_no_agents_tells_of_none() -> None:
    assert value(hub_status(), "stranger_requests_total") == 6
    assert value(hub_status(), "build_info", version="0.1.0", role="hub") == 1
    assert [key for key, _ in series(status()) if "agent" in key or "stranger" in key] == []


def test_a_refused_reload_and_a_failing_store_show() -> None:
    now = replace(status(), config=ConfigStatus(reload_ok=False), store=StoreStatus(ok=False, error="disk full"))
    assert (value(now, "config_last_reload_successful"), value(now, "store_up")) == (0, 0)


def test_unknown_is_no_series() -> None:
    phases = (PhaseStatus(name="gen", now_s=math.nan), PhaseStatus(name="ref", now_s=None))
    now = replace(status(), runs=(RunStatus(name="r", phases=phases),))
    assert value(now, "phase_seconds", run="r", phase="gen") is None
    assert value(now, "phase_seconds", run="r", phase="ref") is None
    assert value(now, "run_step", run="r") is None


@pytest.mark.parametrize("name", ['a"b\\c\nd', "\x1b[31m\u202e", 'x"} 1\nverlwatch_ready 1', "caf\udce9"])
def test_a_hostile_name_stays_one_label(name: str) -> None:
    now = replace(status(), runs=(RunStatus(name=name, step=7),))
    shown = name.encode("utf-8", "backslashreplace").decode()
    assert value(now, "run_step", run=shown) == 7
    assert value(now, "ready") == 0


def crowd(runs: int) -> Status:
    finished = [replace(slow_run(), name=f"run-{i}", state="finished") for i in range(runs)]
    sources = [SourceStatus(source=f"/log/{i}", run=f"run-{i}", state="live", readable=True) for i in range(20)]
    return replace(
        status(),
        runs=(*finished, replace(slow_run(), name="the-one-that-runs")),
        sources=tuple(sources),
        receivers=(ReceiverStatus(name="team-slack", type="slack"),),
    )


def test_series_are_capped_and_what_is_left_out_is_counted() -> None:
    all_series = 1000 * 26
    now = crowd(1000)
    own = [key for key in series(now) if key[0].startswith("verlwatch_") and "metrics_" not in key[0]]
    assert metrics.SERIES_LIMIT - 100 < len(own) <= metrics.SERIES_LIMIT
    dropped = value(now, "metrics_dropped")
    assert dropped is not None
    assert all_series - metrics.SERIES_LIMIT < dropped < all_series + 500


def test_what_concerns_the_process_is_never_left_out() -> None:
    now = crowd(1000)
    assert value(now, "store_up") == 1
    assert value(now, "outbox_pending", receiver="team-slack") == 0
    assert value(now, "source_up", source="/log/19", run="run-19") == 1
    assert value(now, "run_step", run="the-one-that-runs") == 213
    assert value(now, "phase_seconds", run="the-one-that-runs", phase="gen") == 83.21
    assert value(now, "gpu_memory_used_bytes", **{**CARD, "run": "the-one-that-runs"}) == 68.3 * 2**30


def test_a_finished_run_is_shown_whole_or_not_at_all() -> None:
    shown = series(crowd(1000))
    steps = {dict(labels)["run"] for name, labels in shown if name == "verlwatch_run_step"}
    phases = {dict(labels)["run"] for name, labels in shown if name == "verlwatch_phase_seconds"}
    assert steps == phases
    assert 20 < len(steps) < 100


def test_cards_of_a_thousand_runs_stay_within_the_limit_and_it_is_said_what_is_left_out() -> None:
    cards = tuple(card(gpu, 46.0, 0.0) for gpu in range(8))
    runs = tuple(RunStatus(name=f"run-{i}", step=1, gpus=cards) for i in range(1000))
    now = replace(status(), runs=runs)
    own = [key for key in series(now) if key[0].startswith("verlwatch_") and "metrics_" not in key[0]]
    assert len(own) == metrics.SERIES_LIMIT
    assert value(now, "store_up") == 1
    left_out = value(now, "metrics_left_out", metric="verlwatch_gpu_memory_used_bytes")
    assert left_out is not None
    assert 7_000 < left_out <= 8_000
    assert value(now, "metrics_left_out", metric="verlwatch_gpu_utilization_ratio") == 8_000
    told = sum(number for (name, _), number in series(now).items() if name == "verlwatch_metrics_left_out")
    assert told == value(now, "metrics_dropped")


def test_processes_that_only_a_log_tells_of_are_series_of_their_own() -> None:
    cards = tuple(GpuStatus(host="", pid=pid, used_gb=float(pid)) for pid in (71, 72))
    now = replace(status(), runs=(RunStatus(name="r", gpus=cards),))
    told = [value(now, "gpu_memory_used_bytes", run="r", host="", gpu=f"pid {pid}", rank="") for pid in (71, 72)]
    assert told == [71 * 2**30, 72 * 2**30]


def test_what_was_sampled_long_ago_is_no_series() -> None:
    old = replace(status(), runs=(RunStatus(name="r", gpus=(card(0, 46.0, 0.0, at=NOW - 700),)),))
    assert value(old, "gpu_memory_used_bytes", run="r", host="node-1", gpu="0", rank="8") is None
    assert value(old, "gpu_up", run="r", host="node-1", gpu="0", rank="8") == 0


def test_the_limit_itself_drops_nothing() -> None:
    assert value(crowd(60), "metrics_dropped") == 0


async def test_the_process_tells_of_itself_and_python_of_nothing(server: Server, client: aiohttp.ClientSession) -> None:
    async with client.get(server.url + "metrics") as response:
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        body = await response.text()
    assert "\nprocess_resident_memory_bytes " in body
    assert "python_" not in body


def test_promtool_finds_nothing_to_say() -> None:
    promtool = need("promtool", package="prometheus")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=exposition(hub_status()).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
