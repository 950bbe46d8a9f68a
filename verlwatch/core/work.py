"""Whether two attempts of a run do the same work: only then does the baseline of one say anything of the other.

The resolved configuration tells, where the log or Hydra's file beside it has it.  What is not known is no difference.
"""

from __future__ import annotations

from collections.abc import Mapping

from verlwatch.core.incidents import KEYS as BY_PHASE

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

EXPERIMENT = ("trainer.project_name", "trainer.experiment_name")
NAMED: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *KEYS,
            *EXPERIMENT,
            *("rollout.nnodes", "rollout.n_gpus_per_node"),
            *(key for keys in BY_PHASE.values() for key in keys),
        )
    )
)
"""What people are told of besides: how the run is called, the GPUs of a trainer that generates elsewhere, and what each
phase's time depends on."""

Work = dict[str, str | int | float]


def named(config: Mapping[str, str | int | float]) -> Work:
    """What a configuration says of the work, and of all that messages name."""
    return {key: config[key] for key in NAMED if key in config}


def gpus(config: Work) -> int | None:
    """How many GPUs the run has; of an asynchronous trainer those that generate, too.  None where it is not known."""
    training = _product(config, "trainer.nnodes", "trainer.n_gpus_per_node")
    rollout = _product(config, "rollout.nnodes", "rollout.n_gpus_per_node")
    return training + (rollout or 0) if training else None


def _product(config: Work, *keys: str) -> int | None:
    nodes, each = (config.get(key) for key in keys)
    return nodes * each if isinstance(nodes, int) and isinstance(each, int) and nodes > 0 < each else None


def experiment(config: Work) -> str:
    """``project/experiment``, as verl and its loggers call the run; empty where the configuration is not known."""
    names = [str(config[key]) for key in EXPERIMENT if key in config]
    return "/".join(names)


def differs(before: Work, after: Work) -> bool:
    """Whether the work is another: anything that both tell of it is not the same."""
    return any(before[key] != after[key] for key in KEYS if key in before and key in after)
