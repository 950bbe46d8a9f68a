"""Whether two attempts of a run do the same work: only then does the baseline of one say anything of the other.

The resolved configuration tells, where the log or Hydra's file beside it has it.  What is not known is no difference.
"""

from __future__ import annotations

from collections.abc import Mapping

KEYS: tuple[str, ...] = (
    "actor_rollout_ref.model.path",
    "trainer.nnodes",
    "trainer.n_gpus_per_node",
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "algorithm.adv_estimator",
    "actor_rollout_ref.rollout.name",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.tensor_model_parallel_size",
    "actor_rollout_ref.rollout.data_parallel_size",
    "actor_rollout_ref.actor.strategy",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.ppo_epochs",
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
    "actor_rollout_ref.actor.megatron.tensor_model_parallel_size",
    "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size",
    "actor_rollout_ref.actor.megatron.context_parallel_size",
    "actor_rollout_ref.actor.fsdp_config.param_offload",
)
"""World size, batch, lengths and parallel sizes: what a second of a phase depends on most."""

Work = dict[str, str | int | float]


def work(config: Mapping[str, str | int | float]) -> Work:
    """What a configuration says of the work."""
    return {key: config[key] for key in KEYS if key in config}


def differences(before: Work, after: Work) -> dict[str, tuple[str | int | float, str | int | float]]:
    """Key -> (before, after) where both are known and differ."""
    both = [key for key in KEYS if key in before and key in after]
    return {key: (before[key], after[key]) for key in both if before[key] != after[key]}
