"""What to try because of a finding: keys of this run's own configuration, and the direction in which to turn them.

One table.  A row belongs to a finding, names the keys in the spellings that releases have, and says what to try given
the value in force; where it is set that way already, or the run has no such key, it says nothing.  Source: verl's
performance tuning guide and the method in docs/REPORT.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from verlwatch.core.layout import SEQUENCE_PARALLEL, Layout
from verlwatch.core.statement import Statement, state
from verlwatch.core.verl_keys import ACTOR, REF, ROLLOUT, Config, Value, find, misplaced

Confidence = Literal["likely", "possible"]


class Advice(NamedTuple):
    """``key`` stands in the run's configuration with ``value``; ``proof`` is what would show that it helped."""

    finding: str
    key: str
    value: Value
    attempt: Statement
    why: Statement
    confidence: Confidence
    proof: Statement


class Turn(NamedTuple):
    """A row of the table.  ``to`` says what to try for a value in this layout, None for nothing."""

    finding: str
    keys: tuple[str, ...]
    to: Callable[[Value, Layout], Statement | None]
    why: str
    confidence: Confidence = "possible"
    proof: str = "{phase} per token falls in the next ten steps"


def _more(factor: float, word: str = "more: {value}") -> Callable[[Value, Layout], Statement | None]:
    def to(value: Value, _: Layout) -> Statement | None:
        return None if isinstance(value, str) or value <= 0 else state(word, value=int(value * factor))

    return to


def _less(factor: float) -> Callable[[Value, Layout], Statement | None]:
    return _more(factor, "less: {value}")


def _switch(wanted: str) -> Callable[[Value, Layout], Statement | None]:
    def to(value: Value, _: Layout) -> Statement | None:
        return None if value == wanted or value not in {"true", "false"} else state(wanted)

    return to


def _look(text: str) -> Callable[[Value, Layout], Statement | None]:
    return lambda _value, _layout: state(text)


def _zero(value: Value, _: Layout) -> Statement | None:
    """Off, where it is on: environment variables are numbers in texts."""
    return state("0") if str(value) not in {"0", "false", ""} else None


def _utilization(by: float) -> Callable[[Value, Layout], Statement | None]:
    """A share of the card, kept between 0.3 and 0.95."""

    def to(value: Value, _: Layout) -> Statement | None:
        if isinstance(value, str) or not 0.0 < value <= 1.0:
            return None
        wanted = round(min(0.95, max(0.3, value + by)), 2)
        if wanted == value or (wanted > value) != (by > 0):
            return None
        return state("more: {value}" if by > 0 else "less: {value}", value=f"{wanted:g}")

    return to


def _tensor_parallel(value: Value, layout: Layout) -> Statement | None:
    """The sizes beside the one in force that divide the GPUs of a node."""
    each = layout.gpus_per_node
    if not isinstance(value, int) or not each:
        return None
    sizes = [size for size in range(1, each + 1) if each % size == 0]
    nearest = [
        s
        for s in (
            max([s for s in sizes if s < value], default=None),
            min([s for s in sizes if s > value], default=None),
        )
        if s
    ]
    if not nearest:
        return None
    return state("{sizes} (it must divide the {each} GPUs of a node)", sizes=" / ".join(map(str, nearest)), each=each)


def _tensor_parallel_up(value: Value, layout: Layout) -> Statement | None:
    each = layout.gpus_per_node
    larger = [
        size
        for size in range(1, (each or 0) + 1)
        if each and each % size == 0 and isinstance(value, int) and size > value
    ]
    return state("more: {value}", value=larger[0]) if larger else None


_TP = (f"{ROLLOUT}.tensor_model_parallel_size",)
_UTILIZATION = (f"{ROLLOUT}.gpu_memory_utilization",)
_SEQS = (f"{ROLLOUT}.max_num_seqs",)
_BATCHED = (f"{ROLLOUT}.max_num_batched_tokens",)
_EAGER = (f"{ROLLOUT}.enforce_eager",)
_MICRO = (f"{ACTOR}.ppo_micro_batch_size_per_gpu",)
_DYNAMIC = (f"{ACTOR}.use_dynamic_bsz",)
_LOGPROB_MICRO = (f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",)
_ACTOR_OFFLOAD = (f"{ACTOR}.fsdp_config.param_offload", f"{ACTOR}.megatron.param_offload")
_OPTIMIZER_OFFLOAD = (f"{ACTOR}.fsdp_config.optimizer_offload", f"{ACTOR}.megatron.optimizer_offload")
_REF_OFFLOAD = (f"{REF}.fsdp_config.param_offload", f"{REF}.megatron.param_offload", f"{REF}.param_offload")
_KV = "the KV cache usage and the preemptions of the engine fall"
_MEMORY = "the cards hold the same after the next generation"
_FEWER_COPIES = "parameters do not have to come back from the host for each forward pass"

TABLE: tuple[Turn, ...] = (
    Turn("gen_slow", _TP, _tensor_parallel,
         "fewer or more GPUs for each copy of the model: less waiting for one another, or more room for the KV cache"),
    Turn("gen_slow", _SEQS, _more(2), "more sequences are decoded at once where memory allows it"),
    Turn("gen_slow", _UTILIZATION, _utilization(0.1), "more KV cache, so that more sequences run at once"),
    Turn("gen_slow", _EAGER, _switch("false"), "CUDA graphs save the launch of each kernel", "likely"),
    Turn("gen_slow", _BATCHED, _more(2), "longer prefill batches"),
    Turn("gen_slow", (f"{ROLLOUT}.enable_chunked_prefill",), _switch("true"), "prefill does not hold up decoding"),
    Turn("gen_slow", ("actor_rollout_ref.model.mtp.speculative_algorithm",),
         _look("speculative decoding, if the model has a draft head"), "several tokens a forward pass"),
    Turn("gen_long_tail", (f"{ROLLOUT}.n",), _look("fewer answers, or keep them and let late ones go"),
         "all wait for the slowest sample", proof="slowest ÷ mean of the samples falls"),
    Turn("responses_clipped", ("data.max_response_length",), _less(0.75),
         "the longest responses reach it: they alone set the end of generation", "possible",
         "slowest ÷ mean of the samples falls"),
    Turn("gen_long_tail", (f"{ROLLOUT}.mode",), lambda value,
         _: None if value == "async" else state("async, or a partial rollout"),
         "short samples need not wait for the longest ones", proof="gen falls, and slowest ÷ gen too"),
    Turn("tool_calls_slow", (f"{ROLLOUT}.multi_turn.max_tool_response_length",
         f"{ROLLOUT}.multi_turn.max_parallel_calls", f"{ROLLOUT}.agent.num_workers"),
         _look("more workers, and time-outs for tools"), "samples wait for their tools",
         proof="the share of tool calls in gen falls"),
    Turn("kv_cache_full", _UTILIZATION, _utilization(0.1), "more KV cache", "likely", _KV),
    Turn("kv_cache_full", _SEQS, _less(0.5), "fewer sequences share the cache", "likely", _KV),
    Turn("kv_cache_full", _TP, _tensor_parallel_up,
         "the weights are spread over more GPUs, which leaves more room for the cache", "possible", _KV),
    Turn("requests_waiting", _SEQS, _more(2), "requests wait although the KV cache has room", "likely",
         "fewer requests wait"),
    Turn("logprob_slow", _LOGPROB_MICRO, _more(2), "larger batches for each forward pass",
         proof="old_log_prob per token falls"),
    Turn("logprob_slow", (f"{ROLLOUT}.log_prob_use_dynamic_bsz",), _switch("true"),
         "batches filled up to a number of tokens instead of samples", proof="old_log_prob per token falls"),
    Turn("logprob_slow", _ACTOR_OFFLOAD, _switch("false"), _FEWER_COPIES, "likely", "old_log_prob per token falls"),
    Turn("logprob_slow", (f"{ACTOR}.fsdp_config.use_orig_params",), _switch("false"),
         "one flat parameter a unit is gathered faster", proof="old_log_prob per token falls"),
    Turn("ref_slow", (f"{REF}.log_prob_micro_batch_size_per_gpu",), _more(2), "larger batches for each forward pass",
         proof="ref per token falls"),
    Turn("ref_slow", (f"{REF}.log_prob_use_dynamic_bsz",), _switch("true"),
         "batches filled up to a number of tokens instead of samples", proof="ref per token falls"),
    Turn("ref_slow", _REF_OFFLOAD, _switch("false"), _FEWER_COPIES,
         proof="ref per token falls; memory of the cards rises"),
    Turn("update_actor_slow", _MICRO, _more(2), "larger batches for each pass where memory allows it",
         proof="update_actor per token falls"),
    Turn("update_actor_slow", _DYNAMIC, _switch("true"),
         "batches filled up to a number of tokens instead of samples: less padding", "likely",
         "update_actor per token falls"),
    Turn("update_actor_slow", (f"{ACTOR}.ppo_max_token_len_per_gpu",), _more(2),
         "more tokens for each pass where memory allows it", proof="update_actor per token falls"),
    Turn("update_actor_slow", _ACTOR_OFFLOAD, _switch("false"), _FEWER_COPIES, "likely",
         "update_actor per token falls"),
    Turn("update_actor_slow", _OPTIMIZER_OFFLOAD, _switch("false"), "the optimizer's state stays on the card",
         "possible", "update_actor per token falls"),
    Turn("update_actor_slow", (f"{ACTOR}.fsdp_config.fsdp_size",), _look("the GPUs of a node, if the model fits"),
         "parameters are gathered within a node and not over the network", proof="update_actor per token falls"),
    Turn("update_actor_slow", ("actor_rollout_ref.model.enable_gradient_checkpointing",), _switch("false"),
         "activations are not computed again, where memory allows it",
         proof="update_actor per token falls; memory rises"),
    Turn("update_actor_slow", ("*.NCCL_IB_DISABLE",), _zero, "collectives then go over InfiniBand where there is any",
         "likely", "update_actor per token falls"),
    Turn("update_actor_slow", ("*.NCCL_SOCKET_IFNAME",), _look("the fastest interface between the nodes"),
         "collectives go over the interface that it names", proof="update_actor per token falls"),
    Turn("reward_slow", ("reward_model.launch_reward_fn_async",), _switch("true"),
         "rewards are computed beside the next phase", "likely", "reward falls to nearly nothing"),
    Turn("reward_slow", ("reward.num_workers", "reward_model.num_workers"), _more(2), "more samples are scored at once",
         "likely", "reward falls"),
    Turn("update_weights_slow", (f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes",
         f"{ROLLOUT}.update_weights_bucket_megabytes"), _more(2), "fewer and larger transfers",
         proof="update_weights falls"),
    Turn("update_weights_slow", (f"{ROLLOUT}.layered_summon",), _switch("false"),
         "weights are gathered at once and not layer by layer, where memory allows it", proof="update_weights falls"),
    Turn("memory_unequal", _TP, _look("a look at whether it is taken up: one card holds what several should share"),
         "the shards are unequal", "likely", _MEMORY),
    Turn("memory_unequal", _UTILIZATION, _utilization(-0.1), "room until the cause is found", proof=_MEMORY),
    Turn("memory_high", _UTILIZATION, _utilization(-0.1), "the engine leaves more to training", "likely",
         "the peak memory of the cards falls"),
    Turn("memory_high", (f"{ROLLOUT}.free_cache_engine",), _switch("true"),
         "the engine gives its cache back while the model is trained", "likely", "the peak memory of the cards falls"),
    Turn("memory_high", _ACTOR_OFFLOAD, _switch("true"), "parameters leave the card while the engine generates",
         proof="the peak memory of the cards falls; update_actor takes longer"),
    Turn("memory_high", _OPTIMIZER_OFFLOAD, _switch("true"), "the optimizer's state leaves the card between updates",
         proof="the peak memory of the cards falls; update_actor takes longer"),
    Turn("memory_growing", (f"{ROLLOUT}.free_cache_engine",), _switch("true"),
         "the engine gives its cache back while the model is trained", proof="the peak memory of the cards falls"),
    Turn("memory_growing", _UTILIZATION, _utilization(-0.1), "room until the cause is found",
         proof="the peak memory of the cards falls"),
    Turn("memory_growing", _ACTOR_OFFLOAD, _switch("true"), "room until the cause is found",
         proof="the peak memory of the cards falls; update_actor takes longer"),
    Turn("memory_growing", _OPTIMIZER_OFFLOAD, _switch("true"), "room until the cause is found",
         proof="the peak memory of the cards falls; update_actor takes longer"),
    Turn("memory_growing", (f"{ACTOR}.ppo_max_token_len_per_gpu",), _less(0.5), "room until the cause is found",
         proof="the peak memory of the cards falls"),
    Turn("memory_high", (f"{ACTOR}.ppo_max_token_len_per_gpu",), _less(0.5), "fewer tokens for each pass",
         proof="the peak memory of the cards falls"),
    Turn("interruptions", ("trainer.test_freq",), _more(2, "more seldom: {value}"),
         "validation takes a share of the run that is worth saving", "likely", "the GPU-hours of validation halve"),
    Turn("interruptions", ("trainer.save_freq",), _more(2, "more seldom: {value}"),
         "checkpoints take a share of the run that is worth saving", proof="the GPU-hours of checkpoints halve"),
    Turn("data_supply", ("data.dataloader_num_workers",), _more(2), "batches are fetched beside the step", "likely",
         "the time to fetch a batch falls"),
    Turn("offload_with_sequence_parallel", _ACTOR_OFFLOAD, _switch("false"),
         "sequence parallelism gathers parameters more often, and each time from the host", "likely",
         "old_log_prob and update_actor per token fall"),
    Turn("offload_with_sequence_parallel", SEQUENCE_PARALLEL, lambda _value,
         _layout: state("1, if the longest sequence fits"), "parameters are gathered less often",
         proof="old_log_prob and update_actor per token fall"),
    Turn("tensor_parallel_does_not_divide", _TP, _tensor_parallel, "each copy of the model then lies within a node",
         "likely", "gen per token falls"),
    Turn("tensor_parallel_not_taken_up", _TP,
         _look("to find out why it is not in force: the order of overrides, or a key in another block"),
         "the mesh shows another size", "likely", "the next mesh shows the size configured"),
)  # fmt: skip
"""In the order in which things are worth trying."""


FIRST = frozenset({"tensor_parallel_not_taken_up", "misplaced_key", "memory_unequal"})
"""What has to be right before it is worth turning anything else because generation is slow."""


def moves(config: Config) -> Iterator[Advice]:
    """What stands in a block where nothing reads it, to be set where it is read, if the run shows that key."""
    for key, value, instead in misplaced(config):
        if instead in config and config[instead] != value:
            why = state("it stands under {key}, where nothing reads it", key=key)
            proof = state("the next log shows it in force")
            yield Advice("misplaced_key", instead, config[instead], state("{value}", value=value), why, "likely", proof)


def advise(findings: Iterable[tuple[str, str]], config: Config, layout: Layout) -> Iterator[Advice]:
    """What to try for ``findings`` (name, and the phase concerned), each key once for each finding."""
    for finding, phase in findings:
        for turn in TABLE:
            if turn.finding != finding or (found := find(config, *turn.keys)) is None:
                continue
            key, value = found
            attempt = turn.to(value, layout)
            if attempt is not None:
                proof = state(turn.proof, phase=phase) if "{phase}" in turn.proof else state(turn.proof)
                yield Advice(finding, key, value, attempt, state(turn.why), turn.confidence, proof)
