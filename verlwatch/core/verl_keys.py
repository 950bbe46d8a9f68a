"""Which keys of verl's configuration a release reads, and in which block: as far as its own defaults show it.

Source: the resolved defaults (``trainer/config/ppo_trainer.yaml``, ``ppo_megatron_trainer.yaml`` and what they are
composed of) of the releases 0.2.0.post2, 0.3.0.post1, 0.4.1, 0.5.0, 0.6.1, 0.7.1, 0.8.0 and 0.9.1.  A key that stands
in another block is read by nobody: Hydra takes it with ``+``, and nothing says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

Value = str | int | float
Config = Mapping[str, Value]
"""Values by dotted key: truth values are the words true and false (see `core.lines`, event ``config``)."""

RELEASES = ("0.1", "0.2-0.3", "0.4.x", "0.5", "0.6-0.7.0", ">=0.7.1", ">=0.8")
"""As `core.steps` tells them, oldest first."""
ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"
CRITIC = "critic"

_ENGINES = (ROLLOUT, "reward.reward_model.rollout", "reward_model.rollout", "distillation.")
_FSDP = (f"{ACTOR}.fsdp_config", f"{REF}.fsdp_config", "critic.model.fsdp_config", "critic.fsdp", "reward_model.model")
_MEGATRON = (f"{ACTOR}.megatron", f"{REF}.megatron", "critic.megatron", "reward_model.megatron")
BLOCKS: Mapping[str, tuple[str, ...]] = {
    "tensor_model_parallel_size": (*_ENGINES, *_MEGATRON),
    "pipeline_model_parallel_size": (*_ENGINES, *_MEGATRON),
    "gpu_memory_utilization": _ENGINES,
    "max_num_seqs": _ENGINES,
    "max_num_batched_tokens": _ENGINES,
    "enforce_eager": _ENGINES,
    "free_cache_engine": _ENGINES,
    "enable_chunked_prefill": _ENGINES,
    "disable_log_stats": _ENGINES,
    "ulysses_sequence_parallel_size": (ACTOR, REF, CRITIC, "reward_model", *_FSDP),
    "param_offload": (*_FSDP, *_MEGATRON, REF, "reward_model"),
    "optimizer_offload": (*_FSDP, *_MEGATRON),
    "fsdp_size": _FSDP,
    "ppo_mini_batch_size": (ACTOR, CRITIC),
    "ppo_micro_batch_size_per_gpu": (ACTOR, CRITIC),
    "log_prob_micro_batch_size_per_gpu": (ROLLOUT, REF, "reward.reward_model.rollout", "reward_model.rollout"),
    "train_batch_size": ("data",),
    "max_response_length": ("data", *_ENGINES),
}
"""Last part of a key -> the blocks in which any release reads it; a block that ends in a dot stands for all below."""
_ITSELF = frozenset({REF, "reward_model", ACTOR, CRITIC})
"""Blocks that read such a key themselves, and not in what is below them."""


class Moved(NamedTuple):
    """A key that came or went: ``since`` and ``until`` are the first and the last of RELEASES that have it."""

    since: str
    until: str
    instead: str


MOVED: Mapping[str, Moved] = {
    f"{ACTOR}.fsdp_config.grad_offload": Moved("0.1", "0.2-0.3", ""),
    "critic.model.fsdp_config.grad_offload": Moved("0.1", "0.2-0.3", ""),
    f"{ROLLOUT}.data_parallel_size": Moved("0.6-0.7.0", ">=0.8", ""),
    f"{ROLLOUT}.expert_parallel_size": Moved("0.6-0.7.0", ">=0.8", ""),
    f"{ROLLOUT}.pipeline_model_parallel_size": Moved("0.6-0.7.0", ">=0.8", ""),
    f"{ROLLOUT}.update_weights_bucket_megabytes": Moved(
        "0.5", "0.6-0.7.0", f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes"
    ),
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": Moved(
        ">=0.7.1", ">=0.8", f"{ROLLOUT}.update_weights_bucket_megabytes"
    ),
    f"{ACTOR}.fsdp_config.use_orig_params": Moved("0.6-0.7.0", ">=0.8", ""),
    f"{REF}.fsdp_config.use_orig_params": Moved("0.6-0.7.0", ">=0.8", ""),
    f"{REF}.param_offload": Moved("0.1", "0.2-0.3", f"{REF}.megatron.param_offload"),
    "critic.fsdp.param_offload": Moved(">=0.8", ">=0.8", "critic.model.fsdp_config.param_offload"),
    "critic.fsdp.optimizer_offload": Moved(">=0.8", ">=0.8", "critic.model.fsdp_config.optimizer_offload"),
    "critic.model.fsdp_config.param_offload": Moved("0.1", ">=0.7.1", "critic.fsdp.param_offload"),
    "critic.model.fsdp_config.optimizer_offload": Moved("0.1", ">=0.7.1", "critic.fsdp.optimizer_offload"),
    "reward_model.micro_batch_size_per_gpu": Moved("0.1", "0.6-0.7.0", ""),
    "reward_model.use_dynamic_bsz": Moved("0.1", "0.6-0.7.0", ""),
    "reward_model.launch_reward_fn_async": Moved("0.4.x", "0.6-0.7.0", ""),
}
"""Keys that people set to make a run faster or smaller, and that not every release has."""


class Ignored(NamedTuple):
    """A key of a configuration that nothing reads, and where the like of it is read (empty: nowhere)."""

    key: str
    value: Value
    instead: str


def misplaced(config: Config) -> Iterator[Ignored]:
    """Keys that stand in a block in which no release reads them."""
    for key, value in config.items():
        block, _, name = key.rpartition(".")
        blocks = BLOCKS.get(name)
        if blocks is None or not block or not _is_of_training(key) or any(_holds(known, block) for known in blocks):
            continue
        yield Ignored(key, value, _where_it_belongs(block, name, blocks))


def unknown(config: Config, release: str) -> Iterator[Ignored]:
    """Keys that the detected release does not have, switches that are off apart; none where it is not known."""
    if release not in RELEASES:
        return
    at = RELEASES.index(release)
    for key, moved in MOVED.items():
        if config.get(key, "false") != "false" and not RELEASES.index(moved.since) <= at <= RELEASES.index(moved.until):
            yield Ignored(key, config[key], moved.instead)


def _is_of_training(key: str) -> bool:
    """Whether it belongs to what trains; other sections may use the same words for their own."""
    return key.startswith(("actor_rollout_ref.", "trainer.", "data.", "algorithm.", "critic."))


def _holds(known: str, block: str) -> bool:
    if known.endswith("."):
        return block.startswith(known)
    return block == known or (known not in _ITSELF and block.startswith(f"{known}."))


def _where_it_belongs(block: str, name: str, blocks: tuple[str, ...]) -> str:
    """The block of the same role that reads it, else the first one."""
    role = next((r for r in (REF, ACTOR, CRITIC) if block.startswith(r)), "")
    if name == "tensor_model_parallel_size" or role == "":
        return f"{blocks[0]}.{name}"
    return f"{next((known for known in blocks if known.startswith(role)), blocks[0])}.{name}"


def find(config: Config, *keys: str) -> tuple[str, Value] | None:
    """The first of ``keys`` that the configuration has, with its value; ``*.NAME`` is any key that ends so."""
    for key in keys:
        if key in config:
            return key, config[key]
        if key.startswith("*.") and (long := next((k for k in config if k.endswith(key[1:])), None)):
            return long, config[long]
    return None


def whole(config: Config, *keys: str) -> int | None:
    """The first of ``keys`` that holds a positive whole number."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            return value
    return None


def is_on(config: Config, *keys: str) -> bool:
    """Whether any of ``keys`` is true."""
    return any(config.get(key) == "true" for key in keys)
