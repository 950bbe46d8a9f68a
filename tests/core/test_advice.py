"""Advice names keys of this run alone, and only a value that is another than the one in force."""

from __future__ import annotations

from typing import Any

import pytest

from verlwatch.core.advice import TABLE, advise, moves
from verlwatch.core.layout import layout
from verlwatch.core.verl_keys import Config

CONFIG: dict[str, Any] = {
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 8,
    "trainer.test_freq": 5,
    "data.max_response_length": 4096,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 2,
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "actor_rollout_ref.rollout.max_num_seqs": 256,
    "actor_rollout_ref.rollout.enforce_eager": "true",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
    "actor_rollout_ref.actor.use_dynamic_bsz": "false",
    "actor_rollout_ref.actor.fsdp_config.param_offload": "true",
}


def tried(finding: str, config: Config = CONFIG) -> dict[str, str]:
    return {a.key.rpartition(".")[2]: str(a.attempt) for a in advise([(finding, "gen")], config, layout(config))}


def test_slow_generation() -> None:
    assert tried("gen_slow") == {
        "tensor_model_parallel_size": "1 / 4 (it must divide the 8 GPUs of a node)",
        "max_num_seqs": "more: 512",
        "gpu_memory_utilization": "more: 0.7",
        "enforce_eager": "false",
    }


def test_a_full_cache_wants_the_opposite() -> None:
    assert tried("kv_cache_full") == {
        "gpu_memory_utilization": "more: 0.7",
        "max_num_seqs": "less: 128",
        "tensor_model_parallel_size": "more: 4",
    }


def test_only_keys_that_the_run_has_are_named() -> None:
    assert tried("gen_slow", {}) == {}
    assert tried("logprob_slow") == {"param_offload": "false"}
    assert tried("nobody_found_this") == {}


@pytest.mark.parametrize(
    ("finding", "key", "value"),
    [
        ("gen_slow", "actor_rollout_ref.rollout.enforce_eager", "false"),
        ("gen_slow", "actor_rollout_ref.rollout.gpu_memory_utilization", 0.95),
        ("gen_slow", "actor_rollout_ref.rollout.max_num_seqs", "${oc.env:SEQS}"),
        ("update_actor_slow", "actor_rollout_ref.actor.use_dynamic_bsz", "true"),
        ("kv_cache_full", "actor_rollout_ref.rollout.tensor_model_parallel_size", 8),
        ("interruptions", "trainer.test_freq", -1),
    ],
)
def test_what_is_set_that_way_already_is_not_named(finding: str, key: str, value: Any) -> None:
    assert key.rpartition(".")[2] in tried(finding)
    assert key.rpartition(".")[2] not in tried(finding, CONFIG | {key: value})


def test_a_misplaced_key_is_to_be_set_where_it_is_read() -> None:
    (move,) = moves(CONFIG | {"actor_rollout_ref.actor.tensor_model_parallel_size": 4})
    assert (move.key, move.value, str(move.attempt)) == (
        "actor_rollout_ref.rollout.tensor_model_parallel_size", 2, "4",
    )  # fmt: skip
    assert list(moves(CONFIG | {"actor_rollout_ref.actor.tensor_model_parallel_size": 2})) == []
    assert list(moves({"actor_rollout_ref.actor.max_num_seqs": 4})) == []


def test_every_row_of_the_table_can_speak() -> None:
    values: list[Any] = [2, 0.5, "true", "false", "sync"]
    for turn in TABLE:
        said = [turn.to(value, layout(CONFIG)) for value in values]
        assert any(said), turn
        assert turn.why
        assert turn.proof
