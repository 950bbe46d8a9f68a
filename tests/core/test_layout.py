"""Layouts as configured and as printed; each mismatch with a near miss that is none."""

from __future__ import annotations

from typing import Any

import pytest

from verlwatch.core.layout import Mesh, Shape, layout, mismatches
from verlwatch.core.verl_keys import MOVED, RELEASES

RIGHT: dict[str, Any] = {
    "trainer.nnodes": 2,
    "trainer.n_gpus_per_node": 8,
    "data.train_batch_size": 64,
    "actor_rollout_ref.actor.strategy": "fsdp",
    "actor_rollout_ref.actor.ppo_mini_batch_size": 32,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
    "actor_rollout_ref.actor.use_dynamic_bsz": "false",
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size": 1,
    "actor_rollout_ref.actor.fsdp_config.param_offload": "false",
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.n": 4,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 2,
}
MESH = Mesh("rollout_device_mesh", (8, 2), ("dp", "infer_tp"), 0)
SHAPES = (Shape("gen_batch", (64, 8192), 0), Shape("gen_batch_output.batch['prompt_token_ids']", (256, 8192), 0))


def names(config: dict[str, Any], release: str = "0.5", **more: Any) -> list[str]:
    return [found.name for found in mismatches(config, release, **more)]


def test_what_fits_is_no_mismatch() -> None:
    assert names(RIGHT, meshes=[MESH], shapes=SHAPES, offloads={"param": False}) == []
    assert names({}, "") == []


def test_sizes_of_fsdp() -> None:
    found = layout(RIGHT | {"actor_rollout_ref.actor.ulysses_sequence_parallel_size": 2})
    assert (found.world, found.actor, found.rollout) == (16, {"dp": 8, "sp": 2}, {"tp": 2, "pp": 1, "copies": 8})
    assert (found.prompts_per_copy, found.mini_batch_per_rank) == (8.0, 16.0)


def test_sizes_of_megatron() -> None:
    megatron = {
        "actor_rollout_ref.actor.strategy": "megatron",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size": 2,
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size": 2,
        "actor_rollout_ref.actor.megatron.context_parallel_size": 2,
    }
    assert layout(RIGHT | megatron).actor == {"dp": 2, "tp": 2, "pp": 2, "cp": 2}


def test_a_rollout_on_gpus_of_its_own() -> None:
    apart = {"actor_rollout_ref.rollout.nnodes": 1, "actor_rollout_ref.rollout.n_gpus_per_node": 4}
    assert layout(RIGHT | apart).rollout["copies"] == 2
    assert layout(RIGHT | {"actor_rollout_ref.rollout.nnodes": 0}).rollout["copies"] == 8


@pytest.mark.parametrize(
    ("name", "wrong", "near"),
    [
        (
            "misplaced_key",
            {"actor_rollout_ref.actor.tensor_model_parallel_size": 2},
            {"actor_rollout_ref.actor.megatron.tensor_model_parallel_size": 2},
        ),
        ("misplaced_key", {"actor_rollout_ref.max_num_seqs": 64}, {"actor_rollout_ref.rollout.max_num_seqs": 64}),
        (
            "misplaced_key",
            {"actor_rollout_ref.actor.param_offload": "true"},
            {"actor_rollout_ref.ref.fsdp_config.param_offload": "true"},
        ),
        (
            "unknown_key",
            {"actor_rollout_ref.rollout.data_parallel_size": 2},
            {"actor_rollout_ref.rollout.update_weights_bucket_megabytes": 512},
        ),
        (
            "tensor_parallel_does_not_divide",
            {"actor_rollout_ref.rollout.tensor_model_parallel_size": 3},
            {"actor_rollout_ref.rollout.tensor_model_parallel_size": 4},
        ),
        (
            "tensor_parallel_across_nodes",
            {"actor_rollout_ref.rollout.tensor_model_parallel_size": 16},
            {"actor_rollout_ref.rollout.tensor_model_parallel_size": 8},
        ),
        ("world_does_not_divide", {"trainer.nnodes": 1, "trainer.n_gpus_per_node": 7}, {"trainer.nnodes": 1}),
        (
            "mini_batch_does_not_divide",
            {"actor_rollout_ref.actor.ppo_mini_batch_size": 33},
            {"actor_rollout_ref.actor.ppo_mini_batch_size": 64},
        ),
        (
            "micro_batch_does_not_divide",
            {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 3},
            {
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 3,
                "actor_rollout_ref.actor.use_dynamic_bsz": "true",
            },
        ),
        ("batch_does_not_divide", {"data.train_batch_size": 48}, {"data.train_batch_size": 96}),
        (
            "offload_with_sequence_parallel",
            {
                "actor_rollout_ref.actor.fsdp_config.param_offload": "true",
                "actor_rollout_ref.actor.ulysses_sequence_parallel_size": 2,
            },
            {"actor_rollout_ref.actor.fsdp_config.param_offload": "true"},
        ),
    ],
)
def test_a_mismatch_is_told_and_its_neighbour_is_not(name: str, wrong: dict[str, Any], near: dict[str, Any]) -> None:
    assert name in names(RIGHT | wrong)
    assert name not in names(RIGHT | near)


def test_a_mesh_that_splits_otherwise_than_configured_is_told() -> None:
    flat = Mesh("rollout_device_mesh", (16, 1), ("dp", "infer_tp"), 7)
    (found,) = mismatches(RIGHT, meshes=[MESH, flat])
    assert (found.name, found.confidence) == ("tensor_parallel_not_taken_up", "certain")
    assert "is 2" in str(found.said)
    assert names(RIGHT | {"actor_rollout_ref.rollout.tensor_model_parallel_size": 1}, meshes=[flat]) == []


def test_without_a_configuration_an_earlier_mesh_is_what_a_later_one_is_judged_by() -> None:
    flat = Mesh("rollout_device_mesh", (16, 1), ("dp", "infer_tp"), 7)
    (found,) = mismatches({}, meshes=[MESH, flat])
    assert found.confidence == "likely"
    assert mismatches({}, meshes=[flat]) == ()
    assert mismatches({}, meshes=[Mesh("fsdp_mesh", (2, 8), ("ddp", "fsdp"), 0), flat]) == ()


def test_a_size_in_a_block_where_nothing_reads_it_is_what_was_meant() -> None:
    astray = RIGHT | {
        "actor_rollout_ref.actor.tensor_model_parallel_size": 2,
        "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
    }
    flat = Mesh("rollout_device_mesh", (16, 1), ("dp", "infer_tp"), 7)
    found = mismatches(astray, meshes=[flat])
    assert [each.name for each in found] == ["misplaced_key", "tensor_parallel_not_taken_up"]
    assert "actor_rollout_ref.rollout.tensor_model_parallel_size, which is 1" in str(found[0].said)
    assert names(astray, meshes=[MESH]) == ["misplaced_key"]


def test_answers_are_counted_by_the_shapes() -> None:
    assert names(RIGHT | {"actor_rollout_ref.rollout.n": 8}, shapes=SHAPES) == ["rollout_n_not_taken_up"]
    repeated = (Shape("gen_batch", (256, 8192), 0), Shape("gen_batch_output", (256, 8192), 0))
    assert names(RIGHT, shapes=repeated) == []
    assert names(RIGHT | {"data.train_batch_size": 128}, shapes=SHAPES) == ["batch_not_taken_up"]


def test_an_offload_that_nobody_configured_is_told() -> None:
    assert names(RIGHT, offloads={"param": True}) == ["offload_not_configured"]
    of_ref = RIGHT | {"actor_rollout_ref.ref.fsdp_config.param_offload": "true"}
    assert names(of_ref, offloads={"param": True}) == []


def test_keys_are_judged_only_by_a_release_that_is_known() -> None:
    old = RIGHT | {"actor_rollout_ref.actor.fsdp_config.grad_offload": "true"}
    assert names(old, "0.5") == ["unknown_key"]
    assert names(old, "0.2-0.3") == names(old, "") == names(old, "1.0") == []
    assert names(RIGHT | {"actor_rollout_ref.actor.fsdp_config.grad_offload": "false"}, "0.5") == []


def test_the_table_of_moved_keys_is_in_order() -> None:
    for key, moved in MOVED.items():
        assert RELEASES.index(moved.since) <= RELEASES.index(moved.until), key
