"""Lines of memory and of engines: what a cut leaves of them, who may print them, and which phase they belong to."""

from __future__ import annotations

from typing import Any

import pytest

from verlwatch.core.lines import Fact, Line, engine_memory, gpu_memory, preemption, sglang_stats, vllm_stats
from verlwatch.core.types import Writer

MEMORY = "{}, memory allocated (GB): 1.25, memory reserved (GB): 2.50, device memory used/total (GB): 3.50/79.11"
STATS = "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.5 tokens/s, Running: 3 reqs"
DECODE = "Decode batch. #running-req: 1, #token: 60, token usage: 0.25, gen throughput (token/s): 5.91, #queue-req: 12"
PREEMPTED = (
    "Sequence group 0 is preempted by PreemptionMode.SWAP mode because of x. total_num_cumulative_preemption=101"
)


def told(said: object) -> dict[str, Any]:
    assert isinstance(said, Fact)
    assert said.severity == "info"
    return dict(said.attributes)


@pytest.mark.parametrize(
    ("head", "phase"),
    [
        ("update_actor Before update_actor", "update_actor"),
        ("dp actor After update_policy", "update_actor"),
        ("After update policy", "update_actor"),
        ("After load actor params and grad during update_actor", "update_actor"),
        ("generate_sequences After generate_sequences", "gen"),
        ("compute_log_prob Before compute_log_prob", "old_log_prob"),
        ("After recompute log prob", "old_log_prob"),
        ("compute_ref_log_prob After compute_ref_log_prob", "ref"),
        ("dp critic Before compute_values", "values"),
        ("dp critic After update_critic", "update_critic"),
        ("After sync model weights in sharding manager", "update_weights"),
        ("dp actor Before compute_log_prob", None),
        ("megatron actor Before compute_log_prob", None),
        ("After building vllm rollout", None),
    ],
)
def test_a_head_names_its_phase_where_only_one_phase_prints_it(head: str, phase: str | None) -> None:
    assert told(gpu_memory.parse(Line(MEMORY.format(head)))).get("phase") == phase


def test_a_role_is_what_stands_before_the_moment_and_a_function() -> None:
    said = told(gpu_memory.parse(Line(MEMORY.format("dp critic Before compute_values"))))
    assert (said["role"], said["when"]) == ("dp critic", "before")
    assert "role" not in told(gpu_memory.parse(Line(MEMORY.format("After building sharding manager"))))


def test_no_number_is_read_that_may_miss_digits() -> None:
    """Every cut of a line gives a part of what the whole line says, and never another number."""
    for text, parse in (
        (MEMORY.format("update_actor Before update_actor"), gpu_memory.parse),
        ("After x, memory allocated (GB): 55.34482717514038, memory reserved (GB): 61.265625", gpu_memory.parse),
        ("before init cache memory allocated: 5.96GB, reserved: 6.07GB", gpu_memory.parse),
        ("Sleep mode freed 19.49 GiB memory, 26.33 GiB memory is still in use.", engine_memory.parse),
        ("Load weight end. type=X, avail mem=62.94 GB, mem usage=14.87 GB.", engine_memory.parse),
        (STATS + ", Waiting: 10 reqs, Preemptions: 12, GPU KV cache usage: 13.25%", vllm_stats.parse),
        (DECODE, sglang_stats.parse),
        (PREEMPTED, preemption.parse),
    ):
        whole = told(parse(Line(text)))
        for end in range(len(text)):
            said = parse(Line(text[:end], cut=True))
            assert said is None or told(said).items() <= whole.items(), text[:end]


def test_a_line_of_two_decimals_that_ends_early_gives_no_shortened_number() -> None:
    """All four numbers have two decimals since 0.4: one decimal at the end is half a number."""
    said = told(gpu_memory.parse(Line("After x, memory allocated (GB): 30.12, memory reserved (GB): 37.6")))
    assert "reserved_gb" not in said
    said = told(gpu_memory.parse(Line("After x, memory allocated (GB): 36.0, memory reserved (GB): 45.0")))
    assert said["reserved_gb"] == 45.0


@pytest.mark.parametrize("name", ["AgentLoopWorker", "RewardLoopWorker", "RewardManager", "BatchFunctionRewardManager"])
def test_who_prints_samples_is_no_engine(name: str) -> None:
    writer = Writer(name, 7)
    assert gpu_memory.parse(Line(MEMORY.format("After x"), writer)) is None
    assert engine_memory.parse(Line("1.5 GiB memory is still in use", writer)) is None
    assert vllm_stats.parse(Line(STATS, writer)) is None
    assert sglang_stats.parse(Line(DECODE, writer)) is None
    assert preemption.parse(Line(PREEMPTED, writer)) is None


@pytest.mark.parametrize(
    "head",
    [
        "",
        "INFO 05-09 00:49:33 metrics.py:455] ",
        "INFO 02-12 14:27:01 [loggers.py:257] ",
        "INFO 09-02 08:46:23 [v1/metrics/loggers.py:271] ",
        "(EngineCore_DP0 pid=12) INFO 02-12 14:27:01 [loggers.py:257] ",
        "(Worker_TP0 pid=12) WARNING 02-12 14:27:01 scheduler.py:1057 ",
    ],
)
def test_the_head_of_an_engine_is_no_part_of_its_message(head: str) -> None:
    assert told(vllm_stats.parse(Line(head + STATS)))["running"] == 3
    assert preemption.parse(Line(f"It says: {head}{PREEMPTED}")) is None
