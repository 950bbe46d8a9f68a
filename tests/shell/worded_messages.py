"""What every rule that words its messages itself says, on views made for it: each sentence that it has, at least once.

Texts of others (lines of a log, names of exceptions) begin with QUOTE.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from verlwatch.core import rules
from verlwatch.core.rules import LIFE_RULES, MEMORY_RULES, RULES
from verlwatch.core.rules._ahead import Ahead, Arrival, Filling, Room, Span
from verlwatch.core.rules._life_view import Allowance, Attributes, Fault, LifeView, Printing, Stage
from verlwatch.core.rules._memory_view import Apart, CardFault, CardView, GroupFilling, Growth, Idle, MemoryView
from verlwatch.core.rules._view import NotFinite, View
from verlwatch.core.rules.gpu_fault import _KINDS, XIDS
from verlwatch.core.types import ChangePoint, SeriesKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verlwatch.core.types import Diagnosis

QUOTE = "«quoted»"
NOW = 10_000.0


# ---------------------------------------------------------------------------------------------------- life
def fault(kind: str, severity: Any = "critical", **said: str | float) -> Fault:
    return Fault(kind, {"class": kind, **said}, f"{QUOTE} the words of a log", severity, "WorkerDict", NOW - 5)


ALIVE = LifeView("run-a", NOW, step=7, planned=100, lived_s=7200.0, stage=Stage("gen", 9000.0, "gen (12 of 40)"))
DEAD = replace(ALIVE, stage=Stage("step", 9000.0, "the step after step 7"))
LATE = replace(
    ALIVE,
    waited_s=900.0,
    allowed=Allowance(310.0, "2.5× the 95th percentile of its steps, 124 s"),
    heard_s=3.0,
    quiet_s=400.0,
    printing=(
        Printing("", 9, f"{QUOTE} the last line", NOW - 4),
        Printing("vLLMHttpServer pid=7", 9, f"{QUOTE} GET /health", NOW - 40),
    ),
)
STAGES = (
    ("start", "starting"),
    ("loading", "loading a checkpoint"),
    ("first step", "the first step (progress bar at 0 of 100)"),
    ("first step", "the first step, after the initial validation"),
    ("validation", "validation, begun"),
    ("validation", "validation, its responses are generated, their scores come next: the engines work on 12 requests"),
    ("checkpoint", "saving a checkpoint to /ckpt/global_step_8"),
    ("update_actor", "update_actor has begun"),
    ("step", "update_actor has ended"),
    ("reward", "reward: calls have run into their time limit"),
    ("step", "the step after step 7: the engines are idle, so it is behind generation"),
    ("gen", "the step after step 7: the engines work on 12 requests"),
    ("gen", "the step after step 7: the engines work on 1 request"),
)
WHYS = (
    "the limit for start",
    "the limit for loading",
    "the limit for the first validation",
    "the limit for the first step",
    "4× the longest of its few steps, 31 s",
    "2.5× the 95th percentile of its steps, 31 s, and the limit for the first checkpoint",
    "2.5× the 95th percentile of its steps, 31 s, and 2.5× its longest validation, and 2.5× its longest checkpoint",
)
DEATHS = (
    (fault("exception", exception="RuntimeError", text=f"{QUOTE} no", file="a.py", line=3, function="f", rank=3),),
    (fault("exception", exception="RuntimeError", task=f"{QUOTE}_task", pid=7),),
    (fault("crash", signal="SIGSEGV"),),
    (fault("crash", text=f"{QUOTE} fatal", cause="thread limit"),),
    (fault("child_failed", exit_code=1, rank=2),),
    (fault("child_failed", exit_code=1),),
    (fault("crash"),),
    (fault("actor_died", actor_class="WorkerDict", name="wg_1", pid=7, ip="10.0.0.1", exit_type="SYSTEM_ERROR"),),
    (fault("actor_died", actor_class="WorkerDict"),),
    (fault("worker_died", pid=7),),
    (fault("worker_died"),),
    (fault("collective_timeout", rank=0, seq=5, op="ALLREDUCE", ran_s=600.0), fault("collective_timeout", rank=1)),
    (fault("collective_timeout", rank=3),),
    (fault("npu_error", collective_timeout=1),),
    (fault("npu_error", code="EI0002"),),
    (fault("npu_error"),),
    (fault("engine_dead", backend="vllm"), fault("exception", exception="ValueError")),
    (fault("engine_dead", backend="sglang", exception="EngineError"),),
    (fault("engine_dead"),),
    (fault("device_oom", rank=3, phase="gen", tried_gb=2.0, free_gb=1.0, total_gb=80.0, allocated_gb=70.0),),
    (fault("device_oom", unused_gb=9.0),),
    (fault("device_oom", device="npu", holder_pid=7, holder_gb=40.0, free_gb=1.0),),
    (fault("device_oom", device="cuda:3", rank=3),),
    *((fault("device_oom", phase=phase),) for phase in ("old_log_prob", "ref", "update_actor", "update_critic")),
    (fault("host_oom", victim="task", victim_name="f", victim_pid=7, victim_gb=10.0, used_gb=891.0, total_gb=937.5),),
    (fault("host_oom", largest_command="python", largest_gb=40.0, ip="10.0.0.1"),),
    (fault("node_died", host="node-3"),),
    (fault("killed", signal="SIGKILL"),),
    (fault("killed", text=f"{QUOTE} words"),),
    (fault("slurm", what="cancelled", reason="due to time limit", job=4711, host="node-3"),),
    (fault("slurm", what="cancelled"),),
)  # fmt: skip
JOBS = ("TIMEOUT", "CANCELLED", "PREEMPTED", "DEADLINE", "BOOT_FAIL", "NODE_FAIL", "OUT_OF_MEMORY", "FAILED")
NO_EXIT: tuple[Attributes, ...] = ({"name": "python train.py", "pid": 7}, {"pid": 7})
ENDED: Attributes = {"name": "python train.py", "pid": 7, "lasted_s": 7200.0}


def lives() -> Iterator[LifeView]:
    yield replace(LATE, printing=())
    yield replace(LATE, step=-1, trainer="pid 7 on node-1")
    yield from (replace(LATE, stage=Stage(name, 9000.0, words)) for name, words in STAGES)
    yield from (replace(LATE, allowed=Allowance(310.0, why)) for why in WHYS)
    yield replace(LATE, heard_s=850.0)
    yield replace(ALIVE, unseen=(f"{QUOTE}/a.log: denied",), unseen_s=90.0)
    yield replace(ALIVE, unseen=(f"{QUOTE}/a.log", f"{QUOTE}/b.log"), unseen_s=90.0)
    yield from (replace(DEAD, faults=faults) for faults in DEATHS)
    yield replace(DEAD, step=-1, planned=None, faults=DEATHS[0])
    yield from (replace(DEAD, job={"job": "4711", "state": state, "exit": "code 1"}) for state in JOBS)
    yield from (replace(DEAD, gone={**ENDED, "exit": how}) for how in ("signal 9", "code 1", "code 0"))
    yield replace(DEAD, gone={"pid": 7, "oom_kills": 1})
    yield replace(DEAD, gone={"pid": 7, "exit": "code 1"})
    yield from (replace(DEAD, gone=gone) for gone in NO_EXIT)
    yield replace(DEAD, ended="wandb's summary")
    yield replace(DEAD, job={"job": "4711", "state": "COMPLETED"})
    ledger = (
        ("Steps", "100"), ("Duration", "3.4 h"), ("GPU-hours", "27"), ("Time by phase", "gen 45%, ref 9%, other 3%"),
        ("Best validation", "test_score/gsm8k 0.81 at step 90, 0.8 at the end"),
    )  # fmt: skip
    yield replace(ALIVE, step=100, is_over=True, ledger=ledger)
    yield replace(ALIVE, step=100, planned=None, is_over=True)


# ---------------------------------------------------------------------------------------------------- steps
def change(metric: str, kind: Any, after: float, before: float) -> ChangePoint:
    return ChangePoint(SeriesKey("run-a", metric), kind, "opened", 210, 200, after / before, "ratio", before, after)


MOVED = {
    "aborted": (30.0, 2.0), "preemptions": (2.0, 0.1), "clipped": (60.0, 10.0), "grad_norm": (9.0, 0.5),
    "critic_grad_norm": (9.0, 0.5), "entropy": (0.05, 0.5), "kl": (2.0, 0.1), "score": (0.1, 0.8),
    "response_length": (200.0, 900.0), "tool_wait": (60.0, 20.0), "slowest_sample": (6.0, 2.0),
}  # fmt: skip
LOOP = "timing_s/agent_loop"
SAMPLES = {
    f"{LOOP}/slowest/generate_sequences": 90.0, f"{LOOP}/generate_sequences/mean": 20.0,
    f"{LOOP}/slowest/tool_calls": 30.0, f"{LOOP}/tool_calls/mean": 5.0, f"{LOOP}/slowest/num_preempted": 2.0,
    f"{LOOP}/slowest/response_length": 8000.0, "response_length/mean": 900.0,
}  # fmt: skip
RANKS = {"timing_s/generation_timing/max": 90.0, "timing_s/generate_sequences": 20.0}
SEVERAL = {f"actor/{name}": "nan" for name in ("a_loss", "b_loss", "c", "d", "e", "grad_norm")}
NAN = (
    NotFinite({"actor/pg_loss": "nan"}, {}, 210, 1),
    NotFinite(SEVERAL, {"3": "inf", "5": "inf"}, 208, 3),
    NotFinite({"critic/vf_loss": "-inf", "actor/grad_norm": "inf"}, {"": "nan"}, 210, 1),
    NotFinite({}, {"3": "inf"}, 210, 1),
)
SLOPE = Span(0.3, 0.5, 0.8)
HOSTS = (
    "95% of 1,800 GB by runs[].host_memory, where Ray kills (RAY_memory_usage_threshold)",
    "95% of 937.5 GB as Ray has told, where Ray kills (RAY_memory_usage_threshold)",
    "95% of 1,800 GB of node-1, where Ray kills (RAY_memory_usage_threshold)",
    "95% of 1,800 GB of this host, where Ray kills (RAY_memory_usage_threshold)",
)
DEVICES = ("80 GB of the card", "80 GB of the card less 3.1 GB outside PyTorch's allocator")


def fillings() -> Iterator[Filling]:
    for subject, limits in (
        ("cpu_memory_used_gb", HOSTS),
        ("max_memory_allocated_gb", DEVICES),
        ("max_memory_reserved_gb", DEVICES),
    ):
        for limit in limits:
            yield Filling(subject, 1710.0, limit, SLOPE, Span(12.0, 15.0, 18.0), 1700.0, 1500.0, 40, 60, 100.0)
    yield Filling("cpu_memory_used_gb", 76.0, HOSTS[0], SLOPE, Span(0.4, 1.0, 80.0), 75.5, 15.0, 40, 60)
    for step_s in (0.0, 100.0):
        for steps in (Span(12.0, 15.0, 18.0), Span(1.0, 1.0, 1.0), Span(7.0, 7.0, 7.0)):
            yield Filling("cpu_memory_used_gb", 76.0, HOSTS[0], SLOPE, steps, 70.0, 15.0, 40, 60, step_s)
    there = (("host", "node-1"),)
    yield Filling("cpu_memory_used_gb", 76.0, HOSTS[2], SLOPE, Span(0.0, 0.0, 0.0), 77.0, 15.0, 40, 60, scope=there)


ROOMS = (
    Room("/ckpt", 40.0, 2000.0, 12.0, 60.0, 20.0, 0, 9.0, 4, 100.0),
    Room("/ckpt", 70.0, 2000.0, 12.0, 60.0, 20.0, 1, 29.0, 4),
    Room("/ckpt", 90.0, 2000.0, 12.0, 12.0, 20.0, 3, 59.0, 4, 600.0),
)
SLURM = "Slurm's time limit"
ARRIVALS = (
    Arrival(400, Span(300.0, 320.0, 340.0), 86_000.0, Span(9e4, 1.2e5, 2e5), 300.0, 0.5, SLURM),
    Arrival(400, Span(300.0, 300.0, 300.0), 86_000.0, Span(9e4, 9e4, 9e4), 300.0, 0.0, SLURM),
    Arrival(400, Span(210.0, 210.0, 210.0), 0.0, Span(900.0, 1200.0, 2000.0), 30.0, 0.0, SLURM),
)


def steps() -> Iterator[View]:
    view = View("run-a", 210, {}, {}, {})
    for kind in ("level", "drift"):
        changes = {metric: change(metric, kind, after, before) for metric, (after, before) in MOVED.items()}
        now = {metric: after for metric, (after, _) in MOVED.items()}
        yield replace(view, changes=changes, now={**now, "gen": 110.0}, values=SAMPLES)
        yield replace(view, changes=changes, now=now, values=RANKS)
        gen = change("gen", "level", 161.0, 100.0)
        slower = {**changes, "gen": gen}
        yield replace(view, changes=slower, now={"gen": 161.0}, expected={"gen": 100.0, "step": 200.0})
        yield replace(view, changes=slower, now={"gen": 161.0}, expected={"gen": 100.0}, is_async=True)
    yield from (replace(view, not_finite=found) for found in NAN)
    yield from (replace(view, ahead=Ahead(fillings=(one,))) for one in fillings())
    yield from (replace(view, ahead=Ahead(rooms=(one,))) for one in ROOMS)
    yield from (replace(view, ahead=Ahead(arrival=one)) for one in ARRIVALS)


# ---------------------------------------------------------------------------------------------------- cards
COVERS = (
    "memory that PyTorch's allocator holds, as each process prints it at the same stage of a step",
    "all memory in use on the card, whoever holds it",
)
PLACE = (("host", "node-1"), ("gpu", "3"), ("rank", "7"))
CARD = CardView(
    "rank 7", "memory rank 7", PLACE, "8 cards", 8, 48.0, 80.0, 40.0, 8.0, 0.05, settled=True, rank="7", actor="Worker"
)
NAMELESS = replace(CARD, name="GPU 3 on node-1", scope=PLACE[:2], rank=None, actor=None, group="WorkerDict")
GROWTHS = (
    None,
    Growth(1.1, 0.01, 14.0, 1260.0),
    Growth(1.1, None, 0.4, None),
    Growth(None, 0.01, None, 1260.0),
    Growth(1.1, None, 1.0, None),
    Growth(-1.1, None, None, None),
)
PHASES = (("reward", 12.0, 0.3), ("gen", 40.0, 0.5), ("update_actor", 90.0, 0.2))


def apart(card: CardView, before: float | None, offset: float, growth: Growth | None = None) -> CardView:
    return replace(card, apart=Apart(200, before, offset, growth))


def cards() -> Iterator[MemoryView]:
    view = MemoryView("run-a", 210, covers=COVERS[0])
    for card in (CARD, NAMELESS):
        yield replace(view, cards=(apart(card, None, 8.0),))
        yield replace(view, cards=(apart(card, None, -8.0),), covers=COVERS[1])
        for growth in GROWTHS:
            yield replace(view, cards=(apart(card, 0.1, 8.0, growth),))
        yield replace(view, cards=(apart(card, 0.1, -8.0),))
    spread = (CARD, replace(CARD, name="rank 6", offset_gb=-1.0))
    yield replace(view, cards=spread)
    for growth in GROWTHS[1:4]:
        yield replace(view, filling=(GroupFilling("8 cards", 8, ("node-1",), 150, 75.0, 80.0, growth),))
    yield replace(view, idle=(Idle("", (), 200, 31.0, None, 1200.0, PHASES), Idle("", (), 200, 31.0, None, 1200.0, ())))
    yield replace(view, idle=(Idle("idle rank 7", PLACE, 200, 31.0, 95.0, 1200.0, ()),))
    yield replace(view, idle=(Idle("idle gpu 3@node-1", PLACE[:2], 200, 31.0, 95.0, 1200.0, PHASES),))
    for scope in (PLACE, PLACE[:2], PLACE[:1], ()):
        yield replace(view, missing=(CardFault("gpu 3@node-1", scope, "missing", "", 200),))
        for kind in (*_KINDS, "unknown_kind"):
            yield replace(view, faults=(CardFault("gpu 3@node-1", scope, kind, "", 200),))
    yield replace(view, missing=(CardFault("gpu 3@node-1", PLACE, "missing", "its host tells its other cards", 200),))
    for code in (*XIDS, 999):
        yield replace(view, faults=(CardFault("gpu 3@node-1", PLACE, "xid", f"{QUOTE} NVRM", 200, 3, code),))
    yield replace(view, faults=(CardFault("gpu 3@node-1", PLACE, "nvlink", "12 more", 200),))


@cache
def diagnoses() -> dict[str, tuple[Diagnosis, ...]]:
    """By rule: what each says of all views, of those that have a title of their own."""
    found: dict[str, list[Diagnosis]] = {}
    for asked, views in ((RULES, steps()), (LIFE_RULES, lives()), (MEMORY_RULES, cards())):
        for view in views:
            for rule in asked:
                for diagnosis in rule.diagnose(view):  # type: ignore[arg-type]
                    found.setdefault(rule.NAME, []).append(diagnosis)
    return {name: tuple(all_of_it) for name, all_of_it in found.items()}


def sentences(module: ModuleType) -> Iterator[str]:
    """The advice that a rule's module holds: every constant that is, or holds, sentences."""
    for name, value in vars(module).items():
        if name.isupper() and name not in {"NAME", "NEEDS", "TURN_ON"}:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if " " in value and value.rstrip().endswith("."):
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _texts(each)


def module_of(name: str) -> ModuleType:
    module = getattr(rules, name)
    assert isinstance(module, ModuleType)
    return module
