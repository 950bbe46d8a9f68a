"""A status as a real day shows it: a run with a lasting slowdown, one that starts, one that is over."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from prometheus_client.parser import text_string_to_metric_families

from verlwatch.shell.http import metrics
from verlwatch.status import (
    AgentStatus,
    ConfigStatus,
    GpuStatus,
    IncidentCount,
    IncidentStatus,
    PhaseStatus,
    ReceiverStatus,
    RunStatus,
    SamplingStatus,
    SourceStatus,
    Status,
    StoreStatus,
)

NOW = 1_772_370_202.0
"""2026-03-01 13:03:22 UTC."""


def recent(level: float, after: float | None = None, gap: int | None = None) -> tuple[float | None, ...]:
    """Sixty steps around ``level``, the last twelve at ``after``; step ``gap`` unknown."""
    values: list[float | None] = [
        (level if after is None or i < 48 else after) * (1 + 0.03 * math.sin(i * 1.7) + 0.02 * math.cos(i * 0.6))
        for i in range(60)
    ]
    if gap is not None:
        values[gap] = None
    return tuple(values)


def phase(name: str, now: float, baseline: float, share: float, **more: object) -> PhaseStatus:
    fields = {"state": "normal", "recent": recent(baseline), **more}
    return PhaseStatus(
        name=name,
        now_s=now,
        baseline_s=baseline,
        ratio=now / baseline,
        share=share,
        **fields,  # type: ignore[arg-type]
    )


def slow_run() -> RunStatus:
    return RunStatus(
        name="qwen2.5-7b-grpo",
        attempt=2,
        step=213,
        total_steps=300,
        step_at=NOW - 41,
        age_s=41.0,
        state="running",
        steps_seen=213,
        verl_version="0.4.1",
        phases=(
            phase("gen", 83.21, 53.4, 0.5712, state="shift", recent=recent(53.4, 83.2)),
            phase("reward", 1.31, 1.28, 0.009),
            phase("old_log_prob", 11.92, 12.04, 0.0818, recent=recent(12.0, gap=30)),
            phase("ref", 10.77, 10.81, 0.0739),
            phase("adv", 0.094, 0.091, 0.0006),
            phase("update_actor", 37.63, 36.9, 0.2583),
            phase("step", 145.68, 115.1, 1.0, state="shift", recent=recent(115.1, 145.0)),
        ),
        gpus=(card(0, 46.2, -0.1), card(1, 68.3, 22.0), card(2, 46.4, 0.1), card(3, 46.3, 0.0, missing=True)),
        ranks_compared=True,
    )


def card(gpu: int, used_gb: float, offset_gb: float, **more: object) -> GpuStatus:
    fields = {"host": "node-1", "rank": str(8 + gpu), "actor": "WorkerDict", "total_gb": 79.65, "at": NOW - 2, **more}
    return GpuStatus(
        gpu=str(gpu),
        pid=70_000 + gpu,
        used_gb=used_gb,
        utilization=97.0,
        power_w=412.3,
        temperature_c=61.0,
        offset_gb=offset_gb,
        group="WorkerDict",
        recent=tuple(used_gb - 22.0 + i for i in range(23)),
        **fields,  # type: ignore[arg-type]
    )


def status() -> Status:
    return Status(
        version="0.1.0",
        started_at=NOW - 93_784,
        now=NOW,
        ready=False,
        not_ready=("source /home/ada/runs/llama-ppo/train.log",),
        runs=(
            slow_run(),
            RunStatus(
                name="llama3-8b-ppo",
                step=3,
                step_at=NOW - 190,
                age_s=190.0,
                state="running",
                steps_seen=3,
                ranks_hint="Ranks cannot be compared: nothing tells the memory of the cards. Sample the GPUs.",
                phases=(
                    PhaseStatus(name="gen", now_s=20.1, share=0.31, recent=(22.0, 20.5, 20.1)),
                    PhaseStatus(name="update_critic", now_s=9.4, share=0.15, recent=(9.2, None, 9.4)),
                    PhaseStatus(name="step", now_s=64.9, share=1.0, recent=(66.0, 65.0, 64.9)),
                ),
            ),
            RunStatus(
                name="sanity-check", step=50, total_steps=50, step_at=NOW - 86_000, age_s=86_000, state="finished"
            ),
        ),
        incidents=(
            IncidentStatus(
                id="qwen2.5-7b-grpo/2/phase_shift/gen@201",
                run="qwen2.5-7b-grpo",
                rule="phase_shift",
                phase="gen",
                state="firing",
                severity="critical",
                opened_step=205,
                onset_step=201,
                ratio=1.56,
                before=53.4,
                after=83.2,
                summary="gen takes 1.56× as long since step 201 and adds 30 s to each step",
                opened_at=NOW - 1210,
            ),
            IncidentStatus(
                id="qwen2.5-7b-grpo/2/phase_spike/old_log_prob@150",
                run="qwen2.5-7b-grpo",
                rule="phase_spike",
                phase="old_log_prob",
                state="closed",
                severity="warning",
                opened_step=150,
                onset_step=150,
                ratio=2.94,
                before=12.1,
                after=35.6,
                summary="old_log_prob took 2.94× as long in steps 150 to 151",
                opened_at=NOW - 9_400,
                closed_as="resolved",
                closed_step=155,
            ),
        ),
        incident_counts=(
            IncidentCount(run="qwen2.5-7b-grpo", rule="phase_shift", opened=1),
            IncidentCount(run="qwen2.5-7b-grpo", rule="phase_spike", opened=2, closed=(("resolved", 2),)),
        ),
        sources=(
            SourceStatus(
                source="/data/experiments/2026-02-28_qwen2.5-7b-grpo/logs/console.log",
                run="qwen2.5-7b-grpo",
                state="live",
                readable=True,
                position=182_233_112,
                size=182_240_400,
                lag_bytes=7_288,
                lag_s=0.2,
                lines=1_204_882,
                cut_lines=2,
                broken_lines=1,
                undecodable_lines=3,
                nul_bytes=16,
                last_read_at=NOW - 1,
            ),
            SourceStatus(
                source="/home/ada/runs/llama-ppo/train.log",
                run="llama3-8b-ppo",
                state="unreadable",
                readable=False,
                error="permission denied; let the user verlwatch runs as read it",
                last_read_at=None,
            ),
        ),
        receivers=(
            ReceiverStatus(name="team-slack", type="slack", delivered=6),
            ReceiverStatus(
                name="oncall",
                type="webhook",
                pending=2,
                dead=1,
                delivered=3,
                oldest_pending_at=NOW - 754,
                last_error="HTTP 503 from hooks.example.com",
            ),
        ),
        config=ConfigStatus(path="/etc/verlwatch/verlwatch.yaml", loaded_at=NOW - 93_784),
        store=StoreStatus(bytes=8_421_376),
        sampling=SamplingStatus(late=3, missed=2, refused=1),
    )


def hub_status() -> Status:
    """The same as a hub sees it: one agent in good order, one in trouble, one not heard since the hub's start."""
    agents = (
        AgentStatus(
            name="node1", version="0.1.0", seen_at=NOW - 4, skew_s=0.213, taken=5_812, sources=4, lag_s=0.3, repeated=2
        ),
        AgentStatus(
            name="node2",
            version="0.2.0",
            seen_at=NOW - 754,
            skew_s=-90.4,
            taken=77,
            waiting=1_204,
            sources=9,
            unreadable=tuple(f"/data/run7/worker-{i}.log" for i in range(5)),
            lag_s=312.0,
            thinned=40,
            lost=3,
            refused=1,
        ),
        AgentStatus(name="node3", taken=12),
    )
    return replace(status(), role="hub", agents=agents, strangers=6)


@dataclass
class FakeSource:
    """A StatusSource that says what a test wants it to say."""

    now: Status = field(default_factory=status)
    stall: str | None = None
    error: Exception | None = None

    def status(self) -> Status:
        if self.error:
            raise self.error
        return self.now

    def stalled(self) -> str | None:
        return self.stall


def exposed() -> dict[str, set[str]]:
    """Every series name of /metrics with the labels it has."""
    text = metrics.render(metrics.registry(FakeSource(hub_status()))).decode()
    names: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            names.setdefault(sample.name, set()).update(sample.labels)
    return names
