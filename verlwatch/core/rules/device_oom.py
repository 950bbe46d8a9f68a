"""A GPU or NPU without memory: on which rank, in which phase, how much was wanted and who holds it."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import death, gb, of
from verlwatch.core.rules._life_view import Fault, LifeView
from verlwatch.core.types import Diagnosis
from verlwatch.core.words import listed

NAME = "device_oom"
NEEDS = "torch's or vLLM's `out of memory` line"
TURN_ON = ""
BY_PHASE = {
    "gen": "Give the engine less or more room: rollout.gpu_memory_utilization; fewer requests at once: "
    "rollout.max_num_seqs.",
    "old_log_prob": "Lower rollout.log_prob_micro_batch_size_per_gpu, or bound it by tokens: log_prob_use_dynamic_bsz.",
    "ref": "Lower ref.log_prob_micro_batch_size_per_gpu, or offload the reference: ref.fsdp_config.param_offload.",
    "update_actor": "Lower actor.ppo_micro_batch_size_per_gpu, or bound it by tokens: actor.use_dynamic_bsz with "
    "ppo_max_token_len_per_gpu.",
    "update_critic": "Lower critic.ppo_micro_batch_size_per_gpu.",
}
OTHERWISE = "Lower the micro batch size of the phase that it was in, and look whether the longest responses have grown."
FRAGMENTED = "Much is reserved but unallocated: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help."
FRAGMENTS_GB = 2.0


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where a device ran out of memory, whoever else died of that."""
    faults = of(view, "device_oom") or tuple(
        f for f in view.faults if "OutOfMemory" in str(f.said.get("exception", ""))
    )
    if not faults:
        return ()
    phase = next((str(f.said["phase"]) for f in (*faults, *view.faults) if "phase" in f.said), "")
    ranks = sorted({int(f.said["rank"]) for f in faults if "rank" in f.said})
    device = str(faults[0].said.get("device", "gpu")).replace("cuda", "GPU").upper()
    where = f" on rank {listed(map(str, ranks))}" if ranks else ""
    title = f"{device} out of memory{where}" + (f" in {phase}" if phase else "")
    return (
        death(NAME, view, title, faults=faults, facts=_facts(faults[0], phase), advice=tuple(_advice(faults, phase))),
    )


def _facts(fault: Fault, phase: str) -> Iterator[tuple[str, str]]:
    said = fault.said
    yield "Phase", phase
    yield "Wanted", gb(said, "tried_gb")
    free, total = gb(said, "free_gb"), gb(said, "total_gb")
    yield "Free", f"{free} of {total}" if free and total else free
    yield "Allocated by PyTorch", gb(said, "allocated_gb")
    holder = gb(said, "holder_gb")
    yield "Largest holder", f"pid {said.get('holder_pid', '?')}, {holder}" if holder else ""
    yield "Process", fault.writer


def _advice(faults: tuple[Fault, ...], phase: str) -> Iterator[str]:
    yield BY_PHASE.get(phase, OTHERWISE)
    if any(float(f.said.get("unused_gb", 0.0)) >= FRAGMENTS_GB for f in faults):
        yield FRAGMENTED
